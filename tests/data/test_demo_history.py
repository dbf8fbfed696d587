"""The demo history: the same hashes anywhere, and commits that are what `expected.toml` says of them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perfquarry.data.demo import Expected, build_demo, expected
from perfquarry.data.demo.build import write_history
from perfquarry.data.demo.commits import read_commits
from perfquarry.data.errors import InputError
from perfquarry.data.records import Reason

BROKEN = {Reason.FAILS_ON_HEAD, Reason.SYNTAX_ERROR_HEAD}
SPEED_WORDS = re.compile(r"fast|speed|slow|perf|optimi|time|quick|cache|efficien|cost", re.IGNORECASE)
LABELS = [commit.label for commit in read_commits()]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "repository"
    build_demo(path)
    return path


def git(repository: Path, *arguments: str) -> str:
    command = ["git", f"--git-dir={repository}", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def of(label: str) -> Expected:
    return next(entry for entry in expected() if entry.label == label)


def touched(repository: Path, label: str) -> list[str]:
    sha = of(label).head_sha
    return git(repository, "diff", "--name-only", "--no-renames", f"{sha}^1", sha).split()


def run_tests(repository: Path, label: str, tree: Path) -> tuple[int, set[str]]:
    """Exit code of the library's own test-suite at a commit, and the names of the tests that fail."""
    tree.mkdir()
    git(repository, f"--work-tree={tree}", "checkout", "--force", of(label).head_sha, "--", ".")
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", f"--rootdir={tree}"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    return done.returncode, set(re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE))


def test_every_commit_has_its_hash(tmp_path: Path) -> None:
    assert write_history(tmp_path / "new") == {entry.label: entry.head_sha for entry in expected()}


def test_settings_of_the_user_change_no_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "git").mkdir(parents=True)
    (home / ".gitconfig").write_text(
        "[core]\nautocrlf = true\n[commit]\ngpgsign = true\n"
        "[i18n]\ncommitEncoding = ISO-8859-1\n[apply]\nwhitespace = fix\n"
    )
    (home / "git/attributes").write_text("* text eol=crlf\n")
    settings = {"HOME": home, "XDG_CONFIG_HOME": home, "GIT_DIR": tmp_path, "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}
    for name, value in {**settings, "GIT_AUTHOR_NAME": "Nobody", "GIT_DEFAULT_HASH": "sha256"}.items():
        monkeypatch.setenv(name, str(value))
    assert build_demo(tmp_path / "new") == expected()[-1].head_sha


def test_building_again_changes_nothing(demo: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in demo.rglob("*")}
    assert build_demo(demo) == git(demo, "rev-parse", "HEAD").strip()
    assert {file: file.stat().st_mtime_ns for file in demo.rglob("*")} == before


def test_many_builders_of_one_path(tmp_path: Path) -> None:
    path = tmp_path / "repository"
    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(build_demo, [path] * 3)) == {expected()[-1].head_sha}
    assert {entry.name for entry in tmp_path.iterdir()} == {"repository", ".repository.lock"}
    git(path, "fsck", "--strict")


def test_only_an_older_demo_is_replaced(tmp_path: Path) -> None:
    older = tmp_path / "older"
    build_demo(older)
    git(older, "update-ref", "refs/heads/main", of("version-0.2.0").head_sha)
    assert build_demo(older) == git(older, "rev-parse", "main").strip()
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("do not lose me")
    with pytest.raises(InputError, match="something else is there"):
        build_demo(foreign)
    assert (foreign / "thesis.txt").read_text() == "do not lose me"


def test_the_catalogue_is_whole() -> None:
    accepted = [entry for entry in expected() if entry.accepted]
    assert len(accepted) >= 8
    silent = [c.label for c in read_commits() if of(c.label).accepted and not SPEED_WORDS.search(c.message)]
    assert silent == ["stop-words-set", "intervals-merge"]
    assert [entry.label for entry in accepted if entry.subject.endswith("(#12)")] == ["topological-heap"]
    assert [c.label for c in read_commits() if len(c.parents) > 1] == ["select-once-merge"]
    unambiguous = {entry.reason for entry in expected() if len(entry.reasons) == 1}
    assert unambiguous >= {
        Reason.ROOT_COMMIT, Reason.NO_SOURCE_CHANGE, Reason.RENAME_ONLY, Reason.COMMENTS_ONLY, Reason.REVERT,
        Reason.SYNTAX_ERROR_BASE, Reason.SYNTAX_ERROR_HEAD, Reason.NO_TEST_EXECUTES_CHANGE, Reason.FAILS_ON_HEAD,
        Reason.TEST_CHANGED, Reason.NO_GAIN, Reason.SLOWER,
    }  # fmt: skip


@pytest.mark.parametrize("entry", [entry for entry in expected() if entry.accepted], ids=lambda entry: entry.label)
def test_improvements_leave_the_tests_that_show_them_alone(demo: Path, entry: Expected) -> None:
    assert not {node.partition("::")[0] for node in entry.tests} & set(touched(demo, entry.label))
    for node in entry.tests:
        file, *names = node.split("::")
        source = git(demo, "show", f"{entry.head_sha}^1:{file}")
        defined = {n.name for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        assert set(names) <= defined


def test_decoys_without_source_touch_none(demo: Path) -> None:
    for entry in expected():
        if entry.reason == Reason.NO_SOURCE_CHANGE and entry.label != "width-table":
            assert all(path.startswith(("docs/", "tests/", ".github/")) for path in touched(demo, entry.label))


def test_the_generated_file_is_huge_where_it_is_made_only(demo: Path) -> None:
    sha = of("width-table").head_sha
    assert touched(demo, "width-table") == ["quarrykit/_widths.py"]
    assert int(git(demo, "cat-file", "-s", f"{sha}:quarrykit/_widths.py")) > 1_000_000
    assert sum(len(commit.patch) for commit in read_commits()) < 300_000


def test_the_rename_is_pure(demo: Path) -> None:
    sha = of("cli-rename").head_sha
    status = git(demo, "diff", "--name-status", "-M100%", f"{sha}^1", sha).split()
    assert status == ["R100", "quarrykit/cli.py", "quarrykit/__main__.py"]


def test_reverts_restore_what_was_there(demo: Path) -> None:
    for undone, revert, path in [
        ("rank-broken", "rank-revert", "index.py"),
        ("cache-peek", "peek-revert", "queues.py"),
    ]:
        name = f"quarrykit/{path}"
        before = git(demo, "show", f"{of(undone).head_sha}^1:{name}")
        assert git(demo, "show", f"{of(revert).head_sha}:{name}") == before
        assert of(revert).subject == f'Revert "{of(undone).subject}"'


def test_syntax_errors_are_where_they_are_said_to_be(demo: Path) -> None:
    for entry in expected():
        sources = git(demo, "ls-tree", "-r", "--name-only", entry.head_sha, "quarrykit/").split()
        sound = True
        for path in set(sources) - {"quarrykit/_widths.py"}:
            try:
                ast.parse(git(demo, "show", f"{entry.head_sha}:{path}"))
            except SyntaxError:
                sound = False
        assert sound == (entry.reason != Reason.SYNTAX_ERROR_HEAD), entry.label
    labels = [entry.label for entry in expected()]
    assert labels.index("weighted-mean-mended") == labels.index("weighted-mean-broken") + 1


def test_all_tests_of_a_broken_gain_fail(demo: Path, tmp_path: Path) -> None:
    failed = {"test_rank_orders_by_score", "test_rank_of_many_documents"}
    assert run_tests(demo, "rank-broken", tmp_path / "rank") == (1, failed)
    failed = {"test_select_keeps_order", "test_select_from_a_long_listing"}
    assert run_tests(demo, "select-once-wip", tmp_path / "select") == (1, failed)


def test_the_suite_passes_at_the_head(demo: Path, tmp_path: Path) -> None:
    assert run_tests(demo, LABELS[-1], tmp_path / "head") == (0, set())


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
def test_the_suite_passes_at_every_sound_commit(demo: Path, tmp_path: Path, label: str) -> None:
    code, _ = run_tests(demo, label, tmp_path / "tree")
    assert (code == 0) == (of(label).reason not in BROKEN)
