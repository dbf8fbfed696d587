"""`perfquarry release` from outside, and its gate, which makes every task again from the release alone."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from perfquarry.curation.release.expert_runs import ExpertRuns
from perfquarry.curation.release.folder import read_tasks
from perfquarry.curation.release.selection import as_task
from perfquarry.curation.release.sources import pack_of, patched, unpack
from perfquarry.curation.review.database import database_of
from perfquarry.curation.review.decisions import Decisions
from perfquarry.data.home import Home
from perfquarry.data.records import ReleasedTask, Revalidation
from perfquarry.data.store import TableStore
from perfquarry.flows.settings import Settings
from perfquarry.harness.trees.clone_git import git
from tests.system.conftest import Curated

pytestmark = pytest.mark.timeout(280)


@pytest.fixture(scope="module")
def release(curated: Curated, tmp_path_factory: pytest.TempPathFactory, facts: Callable[..., Any]) -> Path:
    folder = tmp_path_factory.mktemp("releases") / "release"
    made = facts(curated.home, "release", "--repo", "demo", "--version", "0.1.0", "--to", str(folder))
    assert made["rows"]["default"] == 1 and made["sources"][0]["tasks"] == 1
    assert made["changes"]["added"] == [read_tasks(folder)[0].task_id] and made["left_out"] == []
    return folder


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty home."""
    return tmp_path_factory.mktemp("elsewhere")


def test_the_gate_runs_every_task_in_an_empty_home(
    release: Path, elsewhere: Path, quick: Path, perfquarry: Callable[..., Any]
) -> None:
    ask = ("release", "check", str(release), "--settings", str(quick), "--json")
    said = json.loads(perfquarry(elsewhere, *ask, code=3).stdout)
    assert said["outcome"] == "not run", "the release has no task folders"
    assert {one["outcome"] for one in said["checks"]} == {"ok", "not run"}, said
    (run,) = said["runs"]
    assert run["gold"] and run["null"] and run["accepted"] >= 1
    assert 1 < run["low"] <= run["speedup"] <= run["high"]


def test_decisions_that_a_release_does_not_use_are_named(
    curated: Curated, release: Path, tmp_path: Path, perfquarry: Callable[..., Any]
) -> None:
    (task,) = read_tasks(release)
    engine = database_of(Home(curated.home))
    Decisions(engine).record(task.task_id, "ann", "reject", seen=0, reason="trivial")
    engine.dispose()
    ask = ("release", "--repo", "demo", "--version", "0.1.0", "--to", str(tmp_path / "again"))
    try:
        assert "1 task(s) have decisions of curators that this release does not use" in (
            perfquarry(curated.home, *ask).stderr
        )
    finally:
        shutil.rmtree(Path(curated.home) / "review")


def test_changes_that_were_not_tried_are_named(
    curated: Curated, tmp_path: Path, perfquarry: Callable[..., Any]
) -> None:
    home = curated.copied(tmp_path / "home")
    perfquarry(home, "mine", "demo", "--no-server")  # all of its history, of which three changes were curated
    ask = ("release", "--repo", "demo", "--version", "0.1.0", "--to", str(tmp_path / "release"))
    said = perfquarry(home, *ask).stderr
    assert (found := re.search(r"demo: (\d+) changes were not tried yet: perfquarry curate demo goes on", said)), said
    assert f"| {found[1]} |" in (tmp_path / "release" / "README.md").read_text()


def test_a_release_is_measured_again_from_its_folder_alone(
    curated: Curated,
    release: Path,
    elsewhere: Path,
    tmp_path: Path,
    quick: Path,
    facts: Callable[..., Any],
    perfquarry: Callable[..., Any],
) -> None:
    said = facts(elsewhere, "revalidate", str(release), "--settings", str(quick))
    (task,) = read_tasks(release)
    (row,) = TableStore(Home(elsewhere).tables).records(Revalidation, "demo")
    assert (row.task_id, row.change_id, said["untried"]) == (task.task_id, as_task(task).change_id, {})
    assert said["workloads"] == len(task.workloads) and said["tasks_in_part"] == 1
    refused = perfquarry(elsewhere, "revalidate", str(release), "--source", str(release), code=2)
    assert "a release holds the files" in refused.stderr
    workloads = [one.model_copy(update={"held": False}) for one in row.workloads]
    rejected = {"status": "rejected", "reason": "no_gain", "workloads": workloads, "created_at": datetime.now(UTC)}
    TableStore(Home(tmp_path).tables).append([row.model_copy(update={**rejected, "disturbed": 0.0})])
    ask = ("release", "--repo", "demo", "--version", "0.2.0", "--to", str(tmp_path / "release"))
    lost = perfquarry(curated.home, *ask, "--home", str(tmp_path), code=2)
    assert "none of its workloads holds (no_gain)" in lost.stderr


@pytest.fixture
def runs(release: Path, elsewhere: Path, quick: Path) -> ExpertRuns:
    return ExpertRuns(release, Home(elsewhere), Settings.model_validate(tomllib.loads(quick.read_text())))


def edited(runs: ExpertRuns, task: ReleasedTask, edit: Callable[[str], str]) -> ReleasedTask:
    """The task with another patch: the one file it changes, edited at the base in another way."""
    clone = runs.home.repositories / "demo.git"
    unpack(pack_of(runs.folder, "demo"), clone)
    (name,) = {target.partition("::")[0] for target in task.oracle_targets}
    text = git(clone, "show", f"{task.recipe.tree}:{name}").decode()
    blob = git(clone, "hash-object", "-w", "--stdin", given=edit(text).encode()).decode().strip()
    index = {"GIT_INDEX_FILE": str(clone / "edited.index")}
    git(clone, "read-tree", task.recipe.tree, env=index)
    git(clone, "update-index", "--cacheinfo", f"100644,{blob},{name}", env=index)
    tree = git(clone, "write-tree", env=index).decode().strip()
    patch = git(clone, "diff-tree", "-p", "--binary", "--full-index", task.recipe.tree, tree).decode()
    assert patched(clone, task.recipe.tree, patch) == tree
    return task.model_copy(update={"patch": patch})


@pytest.mark.slow
def test_patches_that_gain_nothing_or_break_tests_do_not_pass(runs: ExpertRuns, release: Path) -> None:
    (task,) = read_tasks(release)
    idle = runs.run_gold(edited(runs, task, lambda text: f"{text}# nothing of note\n"))
    assert not idle.gold and idle.accepted == 0 and idle.null
    broken = runs.run_gold(edited(runs, task, lambda text: text.replace("return ", "raise ValueError  # ")))
    assert not broken.gold and "at the head" in broken.gold_detail
    foreign = runs.run_gold(task.model_copy(update={"patch": "--- a/no\n+++ b/no\n@@ -1 +1 @@\n-a\n+b\n"}))
    assert not foreign.gold and "does not apply" in foreign.gold_detail
    recipe = task.recipe.model_copy(update={"python": "3.5.1", "environment_id": "f" * 16})
    unmade = replace(runs).run_gold(task.model_copy(update={"recipe": recipe}))
    assert not unmade.gold and not unmade.null and "Python 3.5.1 is needed" in unmade.gold_detail


def test_files_are_not_run_when_they_are_not_in_order(
    release: Path, elsewhere: Path, tmp_path: Path, perfquarry: Callable[..., Any]
) -> None:
    copy = Path(shutil.copytree(release, tmp_path / "copy"))
    (copy / "SCHEMA.md").write_text("other")
    said = json.loads(perfquarry(elsewhere, "release", "check", str(copy), "--json", code=1).stdout)
    assert said["outcome"] == "failed" and said["runs"] == []
    running = {one["name"]: one["why"] for one in said["checks"] if one["outcome"] == "not run"}
    assert running["gold passes"] == running["null patch fails"] == "the files are not in order"


def test_a_page_of_a_release_is_written_beside_it(
    release: Path, tmp_path: Path, facts: Callable[..., Any], perfquarry: Callable[..., Any]
) -> None:
    copy = Path(shutil.copytree(release, tmp_path / "copy"))
    said = facts(None, "release", "page", str(copy))
    assert (said["folder"], said["tasks"], said["pages"]) == (str(tmp_path / "copy-page"), 1, 3)
    (task,) = read_tasks(copy)
    page = (tmp_path / "copy-page" / "tasks" / f"{task.task_id}.html").read_text()
    assert task.title in page and "A/A: base over base" in page
    again = perfquarry(None, "release", "page", str(copy), "--to", str(tmp_path / "other"))
    assert again.stdout.startswith("1 task, 3 pages") and again.stderr == ""
    assert (tmp_path / "other" / "SHA256SUMS").read_text() == (tmp_path / "copy-page" / "SHA256SUMS").read_text()
    refused = perfquarry(None, "release", "page", str(copy), "--to", str(copy / "page"), code=2)
    assert "name a folder beside it with --to" in refused.stderr
    assert "is no release" in perfquarry(None, "release", "page", str(tmp_path), code=2).stderr


def test_a_release_that_replaces_one_goes_on_from_it(
    curated: Curated, release: Path, tmp_path: Path, facts: Callable[..., Any], perfquarry: Callable[..., Any]
) -> None:
    copy = Path(shutil.copytree(release, tmp_path / "copy"))
    ask = ("release", "--repo", "demo", "--to", str(copy), "--version")
    assert facts(curated.home, *ask, "0.1.0")["previous"] == "", "the same version is made once more"
    assert facts(curated.home, *ask, "0.2.0")["previous"] == "0.1.0"
    history = (copy / "CHANGELOG.md").read_text()
    assert "Against 0.1.0: 0 added, 0 removed, 0 changed" in history and "First version: 1 tasks" in history
    assert "--previous" in perfquarry(curated.home, *ask, "0.2.0", code=2).stderr
    assert (copy / "CHANGELOG.md").read_text() == history


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("release",), "give --repo"),
        (("release", "--repo", "numpy", "--version", "1", "--to", "x"), "perfquarry curate numpy"),
        (("release", "check", "/nowhere"), "is no release"),
    ],
)
def test_bad_usage_of_release(
    tmp_path: Path, perfquarry: Callable[..., Any], arguments: tuple[str, ...], words: str
) -> None:
    assert words in perfquarry(None, *arguments, code=2).stderr
