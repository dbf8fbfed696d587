"""`python -m tests.system.hostile [BACKEND...]` runs the corpus and prints how each program ended, as Markdown."""

from __future__ import annotations

import sys

from perfquarry.data.errors import InputError, SandboxUnavailable
from perfquarry.harness.sandbox import choose_sandbox
from tests.system.hostile.host import Host, visible_folder
from tests.system.hostile.programs import corpus
from tests.system.hostile.trials import Outcome, Range


def outcomes(backend: str) -> tuple[list[Outcome], dict[str, object]]:
    """Of all programs that can be run on the backend, and what they changed of the machine.

    Raises:
        InputError, SandboxUnavailable: it is not there.
    """
    sandbox = choose_sandbox(backend)
    with visible_folder() as folder, Host(folder).baited() as host:
        place = Range(sandbox, host)
        with place.running() as submit:
            running = [submit(program) for program in corpus() if program.runs_in(sandbox.isolation)]
        return [outcome for one in running for outcome in one.result()], place.changes()


def main(backends: list[str]) -> int:
    """Prints the table; 1 when a program did not end as it must, or changed the machine."""
    ended: dict[tuple[str, str], dict[str, Outcome]] = {}
    notes, wrong = [], 0
    for backend in backends:
        try:
            found, changes = outcomes(backend)
        except (InputError, SandboxUnavailable) as error:
            notes.append(f"{backend} is not here: {error}")
            continue
        wrong += sum(not one.as_expected for one in found) + len(changes)
        latest = max(one.late for one in found)
        notes.append(
            f"{backend}: {len({one.program.name for one in found})} programs, {len(found)} rows; no command lived for "
            f"longer than {max(latest, 0.0):.1f} s after its limit; changed on the host: {changes or 'nothing'}."
        )
        for one in found:
            ended.setdefault((one.program.name, one.stage), {})[backend] = one
    print(f"| program | what it does | stage | {' | '.join(backends)} |\n|{'---|' * (3 + len(backends))}")
    for (name, stage), row in sorted(ended.items()):
        title = next(iter(row.values())).program.title
        print(f"| `{name}` | {title} | {stage} | {' | '.join(_cell(row.get(backend)) for backend in backends)} |")
    print("", *notes, sep="\n- ")
    return 1 if wrong else 0


def _cell(one: Outcome | None) -> str:
    if one is None:
        return "–"
    said = one.reason if one.as_expected else f"**{one.reason}**, not {one.program.expected[one.stage]}"
    return f"{said}, {one.seconds:.1f} s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["bubblewrap", "docker", "process"]))
