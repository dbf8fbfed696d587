"""Verdicts on the changes of a whole repository, and what is found once a change is taken up."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc

from perfquarry.curation.executable import nothing_to_execute
from perfquarry.data.records import Build, Change, Reason, TouchedFunction, Verdict
from perfquarry.flows.options import Options
from perfquarry.flows.run import Run
from perfquarry.flows.stages import STAGES
from perfquarry.miners.history import crawl
from perfquarry.miners.judge.verdicts import verdict_with_functions, verdicts
from perfquarry.miners.settings import MineSettings
from tests.miners.git_repository import Repository as Git


def test_a_merge_and_its_only_commit_are_one_change(tmp_path: Path) -> None:
    git = Git(tmp_path / "lib")
    slow = "def work(n):\n    return sum([one for one in range(n)])\n"
    git.commit("start", {"lib/core.py": slow, "lib/other.py": slow})
    for branch, paths in (("one", ["lib/core.py"]), ("two", ["lib/core.py", "lib/other.py"])):
        git.git("checkout", "-q", "-b", branch)
        for number, path in enumerate(paths):
            git.commit(
                f"Speed up {branch} {number}",
                {path: slow.replace("[one for one in range(n)]", f"range(n - {branch == 'two'})")},
            )
        git.git("checkout", "-q", "main")
        git.merge(f"Merge branch '{branch}'", branch)
    run = Run(Options(repo=str(git.folder), home=str(tmp_path / "home"), jobs=1))
    changes = list(crawl(run.clone, run.stamp("mine"), MineSettings()))
    run.store.append(changes)
    titles = {change.change_id: change.title for change in changes}
    with run.judging() as judge:
        found = {titles[one.change_id]: one.reason for one in verdicts(run, judge, titles.keys())}
    assert found["Merge branch 'one'"] == Reason.SAME_PATCH
    assert Reason.SAME_PATCH not in {found["Speed up one 0"], found["Merge branch 'two'"]}
    assert len(found) == sum(Change.model_validate(one.model_dump()).status == "kept" for one in changes)


def test_a_commit_that_was_rebased_and_merged_twice_is_one_change(tmp_path: Path) -> None:
    git = Git(tmp_path / "lib")
    slow = "def work(n):\n    return sum([one for one in range(n)])\n"
    git.commit("start", {"lib/core.py": slow, "lib/other.py": slow})
    git.git("checkout", "-q", "-b", "old")
    first = git.commit("Speed up work", {"lib/core.py": slow.replace("[one for one in range(n)]", "range(n)")})
    git.git("checkout", "-q", "main")
    git.commit("Other", {"lib/other.py": slow + "# more\n"})
    git.git("cherry-pick", first)
    again = git.head()
    git.merge("Merge branch 'old'", "old")
    run = Run(Options(repo=str(git.folder), home=str(tmp_path / "home"), jobs=1))
    run.store.append(list(crawl(run.clone, run.stamp("mine"), MineSettings())))
    heads = {change.change_id: change.head_sha for change in run.store.records(Change, run.name)}
    with run.judging() as judge:
        found = {heads[one.change_id]: one for one in verdicts(run, judge, heads.keys())}
    same = [sha for sha, one in found.items() if one.reason == Reason.SAME_PATCH]
    assert len({first, again} & set(same)) == 1
    assert all(one.why.rpartition(" ")[2] in {first, again} - set(same) for one in map(found.get, same) if one)


def test_functions_are_found_once_and_only_when_a_change_is_taken_up(tmp_path: Path) -> None:
    git = Git(tmp_path / "lib")
    slow = "def work(n):\n    return sum([one for one in range(n)])\n"
    git.commit("start", {"lib/core.py": slow})
    git.commit("Speed up work", {"lib/core.py": slow.replace("[one for one in range(n)]", "range(n)")})
    run = Run(Options(repo=str(git.folder), home=str(tmp_path / "home"), jobs=1))
    run.store.append(list(crawl(run.clone, run.stamp("mine"), MineSettings())))
    (change,) = run.store.records(Change, run.name, where=pc.field("status") == "kept")
    with run.judging() as judge:
        (judged,) = verdicts(run, judge, [change.change_id])
    run.store.append([judged])
    assert judged.status == "kept" and not judged.functions

    taken_up = verdict_with_functions(run, run.clone, change)
    work = TouchedFunction(path="lib/core.py", name="work", change="modified")
    assert taken_up == judged.model_copy(update={"functions": [work]})
    assert list(run.store.records(Verdict, run.name)) == [taken_up]
    parts = run.store.parts(Verdict, run.name)
    assert verdict_with_functions(run, run.clone, change) == taken_up and run.store.parts(Verdict, run.name) == parts

    before = judged.model_copy(update={"functions": [work.model_copy(update={"name": "as it was written once"})]})
    run.store.append([before])
    assert verdict_with_functions(run, run.clone, change) == before, "rows of older homes are used as they are"


def test_what_no_workload_could_execute_is_not_built(tmp_path: Path) -> None:
    git, base = Git(tmp_path / "lib"), "import re\nimport os\nLIMIT = 9\n\n\ndef work(n):\n    return n + LIMIT\n"
    files = {
        "lib/__init__.py": "",
        "lib/core.py": base,
        "lib/fast.pyx": "def work(n): return n\n",
        "lib/old.py": "def work(n): print n\n",
    }
    git.commit("start", files)
    changes = {
        "Speed up the import": {"lib/core.py": base.replace("import os\n", "")},
        "Speed up work by its limit": {"lib/core.py": base.replace("import os\n", "").replace("9", "8")},
        "Speed up the compiled one": {"lib/fast.pyx": "import os\n" + files["lib/fast.pyx"]},
        "Speed up what Python 2 parses": {"lib/old.py": "import os\n" + files["lib/old.py"]},
        "Speed up the tables' script": {"bin/tables.py": base.replace("n + LIMIT", "LIMIT + n")},
    }
    nothing = {"Speed up the import": Reason.NO_STATEMENT, "Speed up the tables' script": Reason.NO_SOURCE_CHANGE}
    for title, changed in changes.items():
        git.commit(title, changed)
    run = Run(Options(repo=str(git.folder), home=str(tmp_path / "home"), jobs=1))
    run.store.append(list(crawl(run.clone, run.stamp("mine"), MineSettings())))
    mined = {one.title: one for one in run.store.records(Change, run.name) if one.title in changes}
    with run.judging() as judge:
        run.store.append(list(verdicts(run, judge, [one.change_id for one in mined.values()])))
    found = {title: nothing_to_execute(run, run.clone, run.repository, one) for title, one in mined.items()}
    assert {title: verdict.reason for title, verdict in found.items() if verdict} == nothing

    first = mined["Speed up the import"].change_id
    next(stage for stage in STAGES if stage.name == "build").work(run, (first,))
    assert first not in run.kept("judge") and not run.store.parts(Build, run.name)
    (verdict,) = run.rows_of(Verdict, "judge", first)
    assert (verdict.status, verdict.reason) == ("rejected", Reason.NO_STATEMENT)
