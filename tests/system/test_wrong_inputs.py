"""Each wrong input is one sentence on stderr and exit code 2, whatever the command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfquarry.flows import cli

FILES = {
    "text": b"not json\n",
    "empty": b"",
    "bytes": b"\xff\xfe\x00",
    "list.json": b"[1]",
    "bad.toml": b"= 1",
    "other.toml": b"[nothing]\na = 1\n",
    "nan.toml": b"[select]\nmin_gain = nan\n",
    "huge.toml": b"[resources]\nlease_seconds = -1e999\n",
    "cut.parquet": b"PAR1 and no footer PAR1",
    "nan.json": b'{"cases": [{"base": [NaN, 1.0], "head": [1.0, 1.0]}]}',
    "huge.json": b'{"cases": [{"base": [1e999, 1.0], "head": [1.0, 1.0]}]}',
    "texts.json": b'{"cases": [{"base": ["1"], "head": ["2"]}]}',
    "type.toml": b"[resources]\nno_such = 'soon'\n",
    "good.jsonl": b'{"instance_id": "x", "model_name_or_path": "m", "model_patch": ""}\n',
}
REPOSITORIES = [
    "no-such-repo",
    "/nowhere/at/all",
    "folder",
    "./text",
    "empty-repo",
    "",
    "../up",
    "a b",
    "demo extra",
    "\udcff",
    "a\nb",
    "x" * 5000,
]
OPTIONS = {
    "--since": ["yesterday", "2199-01-01", "20240131", "0001-01-01T00:00+14:00", "1e9", "\udcff"],
    "--until": ["1960-13-01", "2020"],
    "--changes": ["", "deadbeef", "zz;ls"],
    "--limit": ["0", "many", "nan", "1e3"],
    "--for": ["soon", "-3m", "0s", "5", "", "nand", f"{'9' * 400}d"],
    "--tasks": ["0", "-1"],
    "--judge": ["oracle", "", "openai:", "exchange:", "cascade"],
    "--workloads": ["guesses", "", "generated"],
    "--llm": ["openai", "mars:x"],
    "--budget-usd": ["-1", "much", "nan", "inf"],
    "--jobs": ["0", "two", "9" * 30],
    "--settings": ["nowhere.toml", "bad.toml", "other.toml", "type.toml", "nan.toml", "huge.toml", "folder", "bytes"],
    "--source": ["/nowhere"],
    "--home": ["text", "text/below", "/proc/nothing"],
}
"""Of `curate`."""
OF_A_REPOSITORY = [
    "tasks",
    "funnel",
    "workloads",
    "sampling",
    "statistics",
    "costs",
    "problems",
    "screen",
    "count",
    "pulls",
]
OTHERS = """\
nonsense
curate
curate demo --no-such
curate demo --no-server --since 2020-02-01 --until 2020-01-01
build demo --no-server
measure demo --no-server
select demo --no-server
tasks demo
show nothing
show ''
status --home text
pulls demo --policy maybe
recipe no-such-repo
export demo
export demo --to x.parquet
export demo --to x --format xml
export demo --to x --format harbor --network open
image nothing --to x
revalidate nowhere
revalidate cut.parquet
judge --evaluate nowhere
judge --evaluate text
judge --evaluate cut.parquet
judge --evaluate folder
judge
judge demo --plot x.svg
judge demo --no-server --judge cascade --llm exchange:text
stability cut.parquet
stability nan.json
stability huge.json
stability texts.json
review --import cut.parquet
review --import folder
export demo --to x --format harbor --reviews cut.parquet
evaluate text --dataset cut.parquet --to o
evaluate folder --dataset text --to o
leaderboard folder folder
release --repo demo --version 1.0.0 --to text
release upload nowhere --to me/x
release check cut.parquet
problems folder
problems perfquarry__demo-nothing
exchange status text
recipe folder --to text
gc --home nowhere
gc --keep nan
doctor --home text
worker --settings nowhere.toml
schedule remove
schedule apply nowhere
status --home text/below
tasks \udcff
show \udcff
costs nowhere
revalidate text
revalidate folder
stability nowhere
stability text
stability list.json
stability empty
stability folder
stability bytes
stability text --mode all
release
release --repo nowhere --version 1 --to r
release --version one
release check nowhere
release check text
release check folder
release upload folder --to me/x
evaluate
evaluate good.jsonl --to o
evaluate good.jsonl --dataset folder --to o
evaluate good.jsonl --dataset nowhere --to o
leaderboard
leaderboard nowhere
leaderboard text
review --port 0x
review --port 99999
review --import nowhere
review --import text
review --reviewer ''
review --required 0
exchange status nowhere
exchange next folder
exchange check text
schedule apply nowhere
gc --keep soon
gc --keep -1d
worker --limit 0
doctor --nothing
""".splitlines()


def _inputs() -> list[list[str]]:
    found = [["curate", *(name.split(" ") if name == "demo extra" else [name])] for name in REPOSITORIES]
    for option, values in OPTIONS.items():
        more = ["--workloads", "generated"] if option == "--llm" else []
        found += [["curate", "demo", "--no-server", *more, option, value] for value in values]
    found += [[command, "nowhere"] for command in OF_A_REPOSITORY]
    return found + [[word.strip("'") for word in line.split(" ")] for line in OTHERS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wrong")
    for name, content in FILES.items():
        (made / name).write_bytes(content)
    (made / "folder").mkdir()
    subprocess.run(["git", "init", "-q", str(made / "empty-repo")], check=True)
    return made


@pytest.mark.parametrize("arguments", _inputs(), ids=" ".join)
def test_it_is_one_sentence_and_exit_code_2(
    folder: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PERFQUARRY_HOME", str(folder / "home"))
    monkeypatch.setattr(sys, "argv", ["perfquarry", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr().err.strip()
    assert ended.value.code == 2, said
    assert said.startswith("perfquarry: ") and len(said.splitlines()) == 1
    assert "perfquarry " in said or "such as " in said, f"an example is missing: {said}"
    assert not [path for path in folder.iterdir() if path.name in ("o", "r", "x", "x.parquet")], "nothing is begun"
