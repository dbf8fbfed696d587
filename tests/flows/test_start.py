"""What the command imports before it has anything to do: `--help` and `tasks` are quick on any machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SLOW = {"matplotlib", "scipy", "pandas", "prefect", "sqlalchemy", "git", "fastapi", "uvicorn", "openai", "anthropic"}
PROGRAM = """
import json, sys
sys.argv[1:] = {arguments}
from perfquarry.flows.cli import main
try:
    main()
except SystemExit:
    print(json.dumps(sorted(sys.modules)))
"""


def loaded(*arguments: str) -> set[str]:
    program = PROGRAM.format(arguments=list(arguments))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [("--help",), ("tasks", "--help"), ("curate", "--help"), ("--version",)])
def test_help_imports_no_room(arguments: tuple[str, ...]) -> None:
    found = loaded(*arguments)
    assert not found & (SLOW | {"pyarrow", "numpy"})
    assert not {"perfquarry.flows.options", "perfquarry.data.records"} & found  # typer itself may import pydantic


def test_tasks_imports_only_what_reads_tables(tmp_path: Path) -> None:
    found = loaded("tasks", "demo", "--home", str(tmp_path))
    assert "perfquarry.curation.facts" in found and not found & SLOW
    assert not {name for name in found if name.startswith(("perfquarry.harness", "perfquarry.miners"))}
    assert "perfquarry.flows.options" not in found


WITHOUT_PANDAS = """
import sys
from pathlib import Path
import pyarrow as pa
from perfquarry.data.home import Home
from perfquarry.curation.names import tables_of
table = pa.Table.from_pylist([{"a": 1}]) if sys.argv[1] == "before" else None
store = tables_of(Home(Path("h")))
rows = pa.Table.from_pylist([{"a": 1}, {"a": 2}])
print("pandas" in sys.modules, rows.to_pandas()["a"].sum())
"""


@pytest.mark.parametrize(("when", "imported"), [("after", False), ("before", True)])
def test_tables_are_read_without_pandas_and_frames_are_still_given(tmp_path: Path, when: str, imported: bool) -> None:
    command = [sys.executable, "-c", WITHOUT_PANDAS, when]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == [str(imported), "3"]


ENDS = """
import atexit, json, os, sys
class Aborts:
    def __del__(self, abort=os.abort):
        abort()
json.aborts = Aborts()  # as a library's thread does that is still at work while the interpreter is taken down
sys.argv[1:] = {arguments}
from perfquarry.flows.cli import entry
atexit.register(print, "handlers run")
entry()
"""


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--version"], 0), (["tasks", "no-such", "--home", "missing"], 2), (["wrong"], 2)]
)
def test_the_interpreters_own_end_changes_no_exit_code(tmp_path: Path, arguments: list[str], code: int) -> None:
    program = ENDS.format(arguments=arguments)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert ("perfquarry 0." in done.stdout) == (code == 0) and bool(done.stderr) == bool(code)
