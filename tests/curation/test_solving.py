"""Baselines: what a model is shown, and what becomes of its edits. Trees and git are real."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfquarry.curation.evaluation.solvers import outline
from perfquarry.curation.evaluation.solving import (
    Edit,
    edit_tree,
    locate_request,
    oracle_files,
    problem_text,
    solve_requests,
    source_files,
)
from perfquarry.data.errors import InputError
from perfquarry.harness.grading.host import patched_copy
from perfquarry.harness.grading.workspace import Workspace
from tests.review_home import task_of

TASK = task_of(1, 2.0, problem_oracle="Make `count` faster.", problem_realistic="Counting is slow.")
WORDS = "class Words:\n    def count(self, text):\n        return len(list(text))\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "base"
    for name, text in {
        "pkg/words.py": WORDS,
        "pkg/crlf.py": "a = 1\r\nb = 2\r\n",
        "tests/test_words.py": "def test(): pass\n",
        ".gitignore": "*.so\n",
    }.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes(text.encode())
    (made / "pkg/outside.py").symlink_to(tmp_path / "secret.py")
    return made


def test_prompts_show_the_named_files_and_nothing_of_the_fix(tree: Path) -> None:
    assert source_files(tree) == ["pkg/crlf.py", "pkg/words.py"], "no tests, no links"
    first, second = solve_requests(TASK, tree, [*oracle_files(TASK), "../secret.py"], outline, "oracle", 2)
    assert "def count" in first.text and "Make `count` faster." in first.text and "crlf" not in first.text
    assert first.address != second.address, "attempts are different questions"
    assert "in list(found)" not in first.text and "Candidate 1" not in first.text
    found = locate_request(TASK, tree)
    assert "pkg/crlf.py" in found.text and "len(list(text))" not in found.text and "script below" in found.text


def test_of_a_long_file_the_functions_to_change_and_what_they_call_are_shown(tmp_path: Path) -> None:
    """In a release's file of 5,000 lines the function was left out, and the model guessed its text."""
    rest = "".join(f"def other_{number}():\n    return {'x' * 400!r}\n\n\n" for number in range(400))
    wanted = "class Words:\n    @staticmethod\n    def count(text):\n        return helper(text)\n"
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/words.py").write_text(f"import re\n\n\n{rest}{wanted}\n\ndef helper(text):\n    return 7\n")
    task = task_of(1, 2.0, oracle_targets=["pkg/words.py::Words.count"], problem_oracle="Make `count` faster.")
    (request,) = solve_requests(task, tmp_path, oracle_files(task), outline, "oracle", 1)
    assert "return helper(text)" in request.text and "return 7" in request.text and "import re" in request.text
    assert "parts, " in request.text and request.text.count("def other_") < 400, "and what is left out is said"


def test_a_task_without_a_text_is_refused() -> None:
    with pytest.raises(InputError, match="no problem text for the method oracle"):
        problem_text(task_of(1, 2.0, problem_oracle=""), "oracle")


def test_edits_become_a_patch_that_applies_to_the_base(tree: Path, tmp_path: Path) -> None:
    work = Workspace(tree, tmp_path / "work")
    edits = [
        Edit(path="pkg/words.py", search="len(list(text))", replace="len(text)"),
        Edit(path="pkg/words.py", search="len(text)", replace="text.__len__()"),
        Edit(path="pkg/crlf.py", search="b = 2\r\n", replace="b = 3\r\n"),
    ]
    assert edit_tree(work.folder, edits) == []
    assert patched_copy(tree, work.patch(), tmp_path / "graded")
    assert (tmp_path / "graded/pkg/words.py").read_text() == WORDS.replace("len(list(text))", "text.__len__()")
    assert (tmp_path / "graded/pkg/crlf.py").read_bytes() == b"a = 1\r\nb = 3\r\n"
    assert (tree / "pkg/words.py").read_text() == WORDS, "the base stays as it is"


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (Edit(path="pkg/words.py", search="no such", replace=""), "stands 0 times"),
        (Edit(path="pkg/words.py", search="text", replace=""), "stands 2 times"),
        (Edit(path="../secret.py", search="x", replace=""), "no source file"),
        (Edit(path="pkg/outside.py", search="x", replace=""), "no source file"),
        (Edit(path="tests/test_words.py", search="pass", replace=""), "no source file"),
    ],
)
def test_edits_are_carried_out_all_or_none(tree: Path, tmp_path: Path, edit: Edit, said: str) -> None:
    work = Workspace(tree, tmp_path / "work")
    fits = Edit(path="pkg/words.py", search="len(list(text))", replace="len(text)")
    (wrong,) = edit_tree(work.folder, [fits, edit])
    assert said in wrong and work.patch() == ""


def test_a_workspace_takes_new_and_deleted_files_and_no_rubbish(tree: Path, tmp_path: Path) -> None:
    work = Workspace(tree, tmp_path / "work")
    assert not (work.folder / ".git").exists(), "a solver sees no history"
    (work.folder / "pkg/new.py").write_text("x = 1\n")
    (work.folder / "pkg/crlf.py").unlink()
    (work.folder / "pkg/built.so").write_bytes(b"\0")
    (work.folder / "pkg/__pycache__").mkdir()
    (work.folder / "pkg/__pycache__/new.pyc").write_bytes(b"\0")
    patch = work.patch()
    assert "pkg/new.py" in patch and "deleted file" in patch and ".so" not in patch and ".pyc" not in patch


def test_git_of_a_solver_runs_nothing_of_ours(tree: Path, tmp_path: Path) -> None:
    """A filter driver that a solver configures, in a repository of its own in the workspace, is never run."""
    work = Workspace(tree, tmp_path / "work")
    ran = tmp_path / "ran"
    (work.folder / ".git").mkdir()
    (work.folder / ".git/config").write_text(
        f'[filter "x"]\n\tclean = touch {ran}\n[core]\n\tfsmonitor = touch {ran}\n'
    )
    (work.folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (work.folder / ".gitattributes").write_text("*.py filter=x\n")
    (work.folder / "pkg/words.py").write_text(WORDS + "# more\n")
    assert "# more" in work.patch() and not ran.exists()
