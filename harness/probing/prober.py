"""Runs the probe on a built side in a fresh, sandboxed process, and reads what it left, trusting nothing."""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from perfquarry.data.children import environment
from perfquarry.harness.contracts import (
    BuiltSide,
    Command,
    Completed,
    Limits,
    ProbeItem,
    ProbeReport,
    ProbeRequest,
    Sandbox,
)
from perfquarry.harness.leases.leases import leases_held, scratch_folder
from perfquarry.harness.measuring.callgrind import Callgrind
from perfquarry.harness.probing.known_reports import KnownReports
from perfquarry.harness.probing.live import LiveProcess
from perfquarry.harness.probing.recording import Recorded, Unrecorded
from perfquarry.harness.trees.foreign_files import Forged, content_of, files_below
from perfquarry.harness.trees.tree_copies import copied

PROBE = Path(__file__).resolve().parents[1] / "probe" / "probe.py"
"""The program; it imports what lies beside it."""
RESULT_BYTES = 64 * 1024**2
"""Largest result file that is read."""
STORE = "results"
OWN_TREES = "trees"
"""Folder of the outbox with the process's own copy of the tree; its path is as long at the head as at the base."""
LINE_BYTES = 8 * 1024**2
"""Longest line of it: parsed, a line can take thirty times its size in memory."""
OUTPUT_BYTES = 4096
STATUS_DONE = (0, 1, 5)
"""pytest's exit codes of a session that went through: passed, failed, nothing collected."""
Outcome = Literal["finished", "timeout", "crashed"]
INSTRUCTIONS_PER_SECOND = 5e10
COMPILE_SECONDS = 30.0
CLOCK_SLACK = 0.001
"""Seconds by which the inner clock's sum may exceed the outer wall time."""


@dataclass
class Prober:
    """Runs the probe in fresh processes: a crash or a timeout is a report, too."""

    sandbox: Sandbox
    scratch: Path
    overlay: Callable[[BuiltSide], Sequence[Path]] | None = None
    """Folders with coverage and yappi for a side's interpreter; asked for only when a request needs them."""
    under: Callgrind | None = None
    """Runs the interpreter, to count; None: the interpreter is run by itself."""
    known: KnownReports | None = None
    """Of a search that was cut; None: every report is of a process of its own."""

    def run(
        self, built: BuiltSide, request: ProbeRequest, *, limits: Limits, hash_seed: int = 0, core: int | None = None
    ) -> ProbeReport:
        """One process, one report; whatever the code under test does is a report.

        The side's tree, or the process's own copy of it, is the working folder; the tree itself is read-only where the
        sandbox can. `core` is what it is pinned to.

        Raises:
            SandboxUnavailable: the sandbox itself could not start.
        """
        if request.mode in ("coverage", "profile") and not request.extra_paths and self.overlay:
            request = request.model_copy(update={"extra_paths": [str(path) for path in self.overlay(built)]})
        if not self.known:
            return self._run(built, request, limits, hash_seed, core)
        name = self.known.name(built, request, limits, hash_seed, core)
        if not (report := self.known.get(name)):
            report = self._run(built, request, limits, hash_seed, core)
            self.known.keep(name, report)
        return report

    @leases_held()
    def _run(
        self, built: BuiltSide, request: ProbeRequest, limits: Limits, hash_seed: int, core: int | None
    ) -> ProbeReport:
        with self._folder() as folder:
            built = _with_own_tree(built, folder / "out")
            ended = self.sandbox.run(_command(built, request, folder, limits, hash_seed, core, under=self.under))
            report = _report(folder, request, ended)
            return self.under.with_counts(report, folder / "out") if self.under else report

    @contextlib.contextmanager
    def open(
        self, built: BuiltSide, request: ProbeRequest, *, limits: Limits, hash_seed: int = 0, core: int | None = None
    ) -> Iterator[LiveProcess]:
        """A process that begins to load its workloads, and calls them on request; the rest of it ends with the block.

        The request is of mode 'turns', and its `test_timeout` the limit of one call.

        Raises:
            PartnerFailed: it did not come so far.
            SandboxUnavailable: the sandbox itself could not start.
        """
        with leases_held(), self._folder() as folder:
            channel = folder / "ask", folder / "out" / "answer"
            built = _with_own_tree(built, folder / "out")
            command = _command(built, request, folder, limits, hash_seed, core, channel)
            process = LiveProcess(
                self.sandbox, command, channel, request.test_timeout, lambda ended: _report(folder, request, ended)
            )
            with process:
                yield process

    @contextlib.contextmanager
    def _folder(self) -> Iterator[Path]:
        with scratch_folder(self.scratch, "probe") as folder:
            (folder / "out").mkdir()
            yield folder


def _with_own_tree(built: BuiltSide, outbox: Path) -> BuiltSide:
    """The side in a copy of its tree, which the process may write into, where its tests do; else as it is."""
    return copied(built, outbox / OWN_TREES, built.tree.name) if built.writable_tree else built


def _command(
    built: BuiltSide,
    request: ProbeRequest,
    folder: Path,
    limits: Limits,
    hash_seed: int,
    core: int | None,
    channel: tuple[Path, Path] | None = None,
    under: Callgrind | None = None,
) -> Command:
    """The probe's command; writes what it reads into the folder."""
    compile_probe(built.python.resolve())
    outbox, asked = folder / "out", folder / "request.json"
    prefix, env, seen = (under.argv(request, outbox), under.env, under.readable) if under else ((), {}, ())
    message = _message(built, request, folder)
    if channel:
        message["channel"] = {"ask": str(channel[0]), "answer": str(channel[1])}
    asked.write_text(json.dumps(message))
    return Command(
        argv=(*prefix, str(built.python), "-s", str(PROBE), str(asked)),
        cwd=built.tree,
        env={**built.variables, **_environment(outbox, hash_seed), **env},
        writable=(outbox,),
        readable=(folder, PROBE.parent, *_visible(built), *map(Path, request.extra_paths), *seen),
        limits=limits,
        core=core,
    )


@functools.cache
def compile_probe(python: Path) -> None:
    """Leaves the probe's bytecode beside it where this user may: processes may not, and each would compile it anew.

    Args:
        python: an interpreter, not that of an environment; one of a container is not here, and nothing is done.
    """
    argv = [str(python), "-I", "-S", "-m", "compileall", "-q", str(PROBE.parent)]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(argv, env=environment(), capture_output=True, check=False, timeout=COMPILE_SECONDS)


def _report(folder: Path, request: ProbeRequest, ended: Completed) -> ProbeReport:
    report = read_report(folder / "out" / "result.jsonl", ended)
    return with_results(report, folder / "out" / STORE, request) if request.store else report


def _message(built: BuiltSide, request: ProbeRequest, folder: Path) -> dict[str, Any]:
    """The request as the probe reads it; references become files of the folder, which the process cannot write."""
    references = folder / "references"
    for name, files in request.references.items():
        (references / name).mkdir(parents=True)
        for file, content in files.items():
            (references / name / file).write_bytes(content)
    return {
        **request.model_dump(mode="json", exclude={"references"}),
        "tree": str(built.tree),
        "test_arguments": list(built.test_arguments),
        "source_roots": [str(root) for root in built.source_roots],
        "result": str(folder / "out" / "result.jsonl"),
        "store": str(folder / "out" / STORE) if request.store else "",
        "counts": str(folder / "out"),
        "references": str(references) if request.references else "",
    }


def _environment(home: Path, hash_seed: int) -> dict[str, str]:
    """All that the process sees; PYTHONPATH is set by the probe once its own parts are loaded."""
    return {
        "HOME": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": f"{home}/hypothesis",  # it would write into the tree
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def _visible(built: BuiltSide) -> list[Path]:
    """The tree, the environment, and the interpreter that the environment was made from."""
    return [built.tree, built.python.parent.parent, built.python.resolve().parent.parent, *built.source_roots]


def read_report(result: Path, ended: Completed) -> ProbeReport:
    """The report of a process from its result file and its end; garbage makes it 'crashed', never an exception."""
    output = (ended.stdout + ended.stderr)[-OUTPUT_BYTES:].decode(errors="replace")
    facts: dict[str, Any] = {"wall_seconds": ended.wall_seconds, "cpu_seconds": ended.cpu_seconds}
    try:
        lines = _lines(result)
        entries = _Entries.of(lines)
        entries.check(ended.wall_seconds)
    except Forged as error:
        return ProbeReport(outcome="crashed", output=f"result refused: {error}\n{output}"[-OUTPUT_BYTES:], **facts)
    done = entries.status in STATUS_DONE
    outcome: Outcome = "timeout" if ended.timed_out else "finished" if done else "crashed"
    if outcome != "finished":
        entries.blame(ended)
    return ProbeReport(
        outcome=outcome,
        items=list(entries.items.values()),
        collect_errors=entries.collect_errors,
        collect_skips=entries.collect_skips,
        not_begun=entries.not_begun,
        recorded=entries.recorded,
        unrecorded=entries.unrecorded,
        python=entries.python,
        waited_seconds=min(entries.waited, ended.wall_seconds),
        output=output,
        **facts,
    )


def with_results(report: ProbeReport, store: Path, request: ProbeRequest) -> ProbeReport:
    """The report with the stored results of the scripts that passed; a script without a good one has failed."""
    items, results = [], {}
    for item in report.items:
        if item.node in request.scripts and item.outcome == "passed":
            try:
                results[item.node] = files_below(store, item.node, request.result_bytes)
            except Forged as error:
                item = item.model_copy(
                    update={"outcome": "failed", "phase": "store", "message": f"its stored result: {error}"}
                )
        items.append(item)
    return report.model_copy(update={"items": items, "results": results})


def _lines(path: Path) -> list[bytes]:
    """Lines of the result file; what a hostile test may have put in its place is not followed or waited for."""
    try:
        data = content_of(path, RESULT_BYTES)
    except FileNotFoundError:
        return []
    lines = data.split(b"\n")[:-1]  # a last line without its end was cut off by a kill
    if any(len(line) > LINE_BYTES for line in lines):
        raise Forged(f"it has a line of more than {LINE_BYTES} bytes")
    return lines


@dataclass
class _Entries:
    """What the lines of a result file say."""

    items: dict[str, ProbeItem]
    collect_errors: dict[str, str]
    collect_skips: dict[str, str] = field(default_factory=dict)
    not_begun: dict[str, int] = field(default_factory=dict)
    recorded: list[Recorded] = field(default_factory=list)
    unrecorded: list[Unrecorded] = field(default_factory=list)
    running: str | None = None
    status: int | None = None
    python: str = ""
    waited: float = 0.0

    @classmethod
    def of(cls, lines: list[bytes]) -> _Entries:
        found = cls({}, {})
        for line in lines:
            try:
                entry = json.loads(line)
                if b"\\ud" in line.lower():  # halves of characters, which no table can hold
                    json.dumps(entry, ensure_ascii=False).encode()
                ((kind, value),) = entry.items()
                getattr(found, f"_take_{kind}")(value)
            except (ValueError, AttributeError, TypeError, KeyError, OverflowError, RecursionError) as error:
                raise Forged(f"not a line of the probe: {type(error).__name__}") from error
        return found

    def _take_begin(self, node: str) -> None:
        self.running = str(node)

    def _take_item(self, value: dict[str, Any]) -> None:
        item = ProbeItem.model_validate(value)
        if item.node in self.items:
            raise Forged(f"{item.node} was reported twice")
        self.items[item.node] = item
        self.running = None

    def _take_lines(self, value: dict[str, Any]) -> None:
        item = self.items[value["node"]]
        call = "again" if value["again"] else "lines"
        merged = {**getattr(item, call), str(value["file"]): [int(line) for line in value["lines"]]}
        self.items[item.node] = item.model_copy(update={call: merged})

    def _take_collect(self, value: dict[str, str]) -> None:
        self.collect_errors.update({str(node): str(text) for node, text in value.items()})

    def _take_skipped(self, value: dict[str, str]) -> None:
        self.collect_skips.update({str(node): str(text) for node, text in value.items()})

    def _take_not_begun(self, value: dict[str, int]) -> None:
        self.not_begun.update({str(file): int(count) for file, count in value.items()})

    def _take_recorded(self, value: dict[str, Any]) -> None:
        self.recorded.append(Recorded.model_validate(value))

    def _take_unrecorded(self, value: dict[str, Any]) -> None:
        self.unrecorded.append(Unrecorded.model_validate(value))

    def _take_end(self, value: dict[str, Any]) -> None:
        self.status, self.python = int(value["status"]), str(value["python"])
        self.waited = float(value.get("waited", 0.0))

    def check(self, wall_seconds: float) -> None:
        """Inner times must be possible in the time that passed outside."""
        items = self.items.values()
        times = [time for item in items for time in [item.setup_seconds, *(item.samples or [item.seconds])]]
        if not all(0 <= time < float("inf") for time in times) or sum(times) > wall_seconds + CLOCK_SLACK:
            raise Forged("its times do not fit into the wall time of the process")
        others = [self.waited, *(one.call_seconds for one in items), *(one.first_seconds for one in items)]
        if not all(0 <= seconds < float("inf") for seconds in others):
            raise Forged("seconds that are no length of time")
        if any(item.calls != len(item.samples) for item in items):
            raise Forged("the number of calls is not the number of samples")
        if sum(sum(item.instructions) for item in self.items.values()) > wall_seconds * INSTRUCTIONS_PER_SECOND:
            raise Forged("it counts more instructions than a processor executes in that time")

    def blame(self, ended: Completed) -> None:
        """Adds the test that was running when the process ended."""
        if self.running is None:
            return
        how = f"signal {ended.signal}" if ended.signal else f"exit code {ended.exit_code}"
        why = f" ({ended.exceeded} limit)" if ended.exceeded else ""
        self.items[self.running] = ProbeItem(
            node=self.running,
            outcome="timeout" if ended.timed_out else "crashed",
            message=f"the process ended with {how}{why} while this test ran",
        )
