"""Recorded answers to the prompts of generated workloads, as cassettes.

    python -m benchmarks.answers curate CASSETTES REPO [--source PATH] [--home DIR]
    python -m benchmarks.answers record CASSETTES REPO [--source PATH] [--home DIR]
    python -m benchmarks.answers address CASSETTES REPO [--source PATH] [--home DIR] [--settings FILE]
    python -m benchmarks.answers unpack CASSETTES FOLDER
    python -m benchmarks.answers pack FOLDER CASSETTES

A cassette is named HEAD-ROUND.json (ten digits of the head's hash; HEAD-ROUND-repair.json answers the request
that sends a malformed answer back). A request's address changes with the prompt and with all that it shows.
`curate` curates the changes that have cassettes through exchange mode, with generated workloads alone: a request whose
text has a change's whole message is answered with its recording, whatever prompt it was recorded for. `record` writes
the first answers of a language model in the home's folder of exchange (`asked`) as such recordings. `address`
generates the workloads of every change that has cassettes, answers by name instead of by address, and
writes into each file the address under which it was asked for. `unpack` writes the scripts as Python files,
FOLDER/HEAD-ROUND/NN.py, the note in the first line; `pack` puts them back.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from perfquarry.data.files import write_whole
from perfquarry.data.home import Home
from perfquarry.flows.options import Options, settings_from
from perfquarry.flows.run import Run
from perfquarry.flows.stages import case_of
from perfquarry.llm.client import Client
from perfquarry.llm.exchange_folder import ANSWERS, ExchangeFolder, texts_of
from perfquarry.llm.recordings import Origin, Recording
from perfquarry.llm.reply_store import ReplyStore
from perfquarry.llm.request import Got, Request
from perfquarry.llm.settings import LlmSettings
from perfquarry.testgen.generated import Generated

DIGITS = 10
MODEL: Origin = "a language model through exchange"


class ByName:
    """Answers the requests of one change from files named by round, and writes their addresses into them."""

    name, caches = "cassette", False

    def __init__(self, folder: Path, head: str) -> None:
        self.where = str(folder)
        self._stem, self._round = str(folder / head[:DIGITS]), 0

    def collect(self, requests: Sequence[Request[Any]], reply_store: ReplyStore) -> Iterator[Got]:
        """Yields the answer of the next round, or of the same one to its second request."""
        for request in requests:
            self._round += not request.repair
            path = Path(f"{self._stem}-{self._round}{'-repair' if request.repair else ''}.json")
            recording = Recording.model_validate_json(path.read_bytes())
            recording = recording.model_copy(update={"address": request.address, "purpose": request.purpose})
            write_whole(path, text_of(recording))
            yield Got(request, recording.reply, True, 0.0)

    def close(self) -> None:
        """Nothing to close."""


def text_of(recording: Recording) -> str:
    """A cassette's file."""
    return json.dumps(recording.model_dump(mode="json", exclude_defaults=True), indent=1, ensure_ascii=False) + "\n"


def address(folder: Path, options: Options) -> None:
    """Writes the addresses, and prints what became of each script."""
    run = Run.open(options.model_dump_json())
    heads = {path.stem.partition("-")[0] for path in folder.glob("*.json")}
    for key in run.in_scope():
        change = run.change(key)
        if change.head_sha[:DIGITS] not in heads:
            continue
        reply_store = ReplyStore(run.home, run.store, run.stamp("generate"), "cassette", str(folder), LlmSettings())
        with Client(ByName(folder, change.head_sha), reply_store, "any") as client:
            for row in Generated(client.ask).workloads(case_of(run, key)):
                said = "" if row.reason is None else row.detail.strip().rpartition("\n")[2][:150]
                took = f"{row.seconds * 1e3:.1f} ms" if row.seconds else ""
                print(change.head_sha[:DIGITS], row.round, row.node, row.reason or f"kept, {row.role}", took, said)


def curate(folder: Path, options: Options) -> int:
    """Runs the command until nothing that is recorded is asked; its exit code."""
    home = Path(options.home)
    asked = home / "asked"
    heads = sorted({path.stem.partition("-")[0] for path in folder.glob("*-1.json")})
    if options.source:  # commits of branches that are gone are not asked for
        there = ["git", "-C", options.source, "merge-base", "--is-ancestor"]
        heads = [
            one
            for one in heads
            if not subprocess.run([*there, one, "HEAD"], capture_output=True, check=False).returncode
        ]
    home.mkdir(parents=True, exist_ok=True)
    with (home / "one-round.toml").open("w") as file:
        file.write("[generate.generated]\nrounds = 1\n")
    command = [str(Path(sys.executable).with_name("perfquarry")), "curate", options.repo, "--changes", ",".join(heads)]
    command += ["--workloads", "generated", "--llm", f"exchange:{asked}", "--home", str(home), "--no-server"]
    command += ["--settings", file.name, *(["--source", options.source] if options.source else [])]
    while True:
        ended = subprocess.run(command, check=False).returncode
        if not answer(folder, asked, heads, options):
            return ended


def answer(folder: Path, asked: Path, heads: Sequence[str], options: Options) -> int:
    """Answers what waits in a folder of exchange and is recorded; how many."""
    exchange = ExchangeFolder(asked)
    done = {line.custom_id for line in exchange.responses()}
    answered = 0
    for address, head in asked_for(exchange, options.model_copy(update={"changes": tuple(heads)})).items():
        path = folder / f"{head}-1.json"
        if address in done or not path.exists():
            continue
        recording = Recording.model_validate_json(path.read_bytes())
        write_whole(asked / ANSWERS / f"{address}.json", recording.reply.text)
        answered += 1
    return answered


def record(folder: Path, options: Options) -> None:
    """Writes what a language model answered, of each change the answer to its first request."""
    exchange = ExchangeFolder(Path(options.home) / "asked")
    heads = asked_for(exchange, options)
    for line in exchange.responses():
        path = folder / f"{heads.get(line.custom_id, 'none')}-1.json"
        if line.custom_id not in heads or "answer" not in line.content or path.exists():
            continue
        made = {"address": line.custom_id, "origin": MODEL, "answer": line.content["answer"]}
        write_whole(path, text_of(Recording.model_validate(made)))
        print(path)


def asked_for(exchange: ExchangeFolder, options: Options) -> dict[str, str]:
    """The head of the change that each request is about: the one whose whole message its text has."""
    run = Run.open(options.model_dump_json())
    messages = {}
    for key in run.in_scope():
        change = run.change(key)
        messages[change.head_sha[:DIGITS]] = " ".join(change.message.split())
    about = {}
    for line in exchange.requests():
        text = " ".join(word for _, text in texts_of(line.content) for word in text.split())
        found = [head for head, message in messages.items() if message in text]
        if found:
            about[line.custom_id] = max(found, key=lambda head: len(messages[head]))
    return about


def unpack(folder: Path, to: Path) -> None:
    """Scripts as Python files."""
    for path in sorted(folder.glob("*.json")):
        recording = Recording.model_validate_json(path.read_bytes())
        for number, sample in enumerate((recording.answer or {}).get("scripts", ()), 1):
            file = to / path.stem / f"{number:02}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"# {sample['note']}\n{sample['code']}")


def pack(folder: Path, to: Path) -> None:
    """Python files into the cassettes of their folders' names; addresses stay as they were."""
    for scripts in sorted(path for path in folder.iterdir() if path.is_dir()):
        path = to / f"{scripts.name}.json"
        old = (
            Recording.model_validate_json(path.read_bytes())
            if path.exists()
            else Recording(address="", origin="written by hand")
        )
        texts = [file.read_text().partition("\n") for file in sorted(scripts.glob("*.py"))]
        samples = [{"note": note.removeprefix("# "), "code": code} for note, _, code in texts]
        write_whole(path, text_of(old.model_copy(update={"answer": {"scripts": samples}})))


def main(arguments: Sequence[str]) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("curate", "record", "address"):
        command = commands.add_parser(name)
        command.add_argument("cassettes", type=Path)
        command.add_argument("repo")
        command.add_argument("--source")
        command.add_argument("--home", type=Path)
        if name == "address":
            command.add_argument("--settings", type=Path)
    for name in ("unpack", "pack"):
        command = commands.add_parser(name)
        command.add_argument("source", type=Path)
        command.add_argument("to", type=Path)
    given = parser.parse_args(arguments)
    if given.command in ("curate", "record", "address"):
        home = Home(given.home.resolve()) if given.home else Home.default()
        chosen = settings_from(getattr(given, "settings", None))
        options = Options(repo=given.repo, source=given.source, home=str(home.root), jobs=1, settings=chosen)
        if given.command == "curate":
            sys.exit(curate(given.cassettes, options))
        (record if given.command == "record" else address)(given.cassettes, options)
    else:
        (unpack if given.command == "unpack" else pack)(given.source, given.to)


if __name__ == "__main__":
    main(sys.argv[1:])
