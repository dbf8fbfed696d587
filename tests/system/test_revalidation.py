"""`perfquarry revalidate`: published tasks measured again, in a home that knows nothing of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from perfquarry.curation.published import clone_of, place_of
from perfquarry.data.demo import expected
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from perfquarry.data.records import Revalidation
from perfquarry.data.store import TableStore
from tests.miners.git_repository import Repository
from tests.review_home import task_of


@pytest.mark.slow
def test_a_task_is_made_and_measured_again_from_its_recipe(
    tmp_path: Path, perfquarry: Callable[..., Any], facts: Callable[..., Any], quick: Path
) -> None:
    largest = max((one for one in expected() if one.speedup), key=lambda one: one.speedup or (0, 0))
    home, other, release = tmp_path / "home", tmp_path / "other", tmp_path / "release" / "data"
    perfquarry(home, "curate", "demo", "--no-server", "--changes", largest.head_sha, "--settings", str(quick))
    perfquarry(home, "export", "demo", "--to", str(release / "tasks.parquet"))
    pq.write_table(pq.read_table(release / "tasks.parquet").select(["repo", "patch"]), release / "other.parquet")

    said = facts(other, "revalidate", str(release.parent), "--settings", str(quick))
    assert (said["tasks"], said["untried"]) == (1, {})
    (row,) = TableStore(Home(other).tables).records(Revalidation, "demo")
    held = [one.held for one in row.workloads]
    assert any(held), "one of a few microseconds may be lost to what runs beside this test"
    assert said["held"] == (row.status == "kept") == all(held)
    assert (said["tasks_in_part"], said["workloads_held"], said["workloads"]) == (1, sum(held), len(held))
    assert said["share"]["share"] == all(held) and said["share"]["high"] - said["share"]["low"] > 0.9
    assert row.speedup and row.low and 1 < row.low <= row.speedup
    assert len(json.loads(row.durations)) == 1, "one look"
    assert row.machine.cores > 0 and row.seconds > 0

    shown = perfquarry(other, "revalidate", str(release.parent), "--tasks", "no-such", code=2)
    assert "no task of" in shown.stderr


def test_a_home_that_has_the_clone_needs_no_source(tmp_path: Path) -> None:
    home, own = Home(tmp_path), task_of(1, 2.0).model_copy(update={"repo": "own", "url": ""})
    assert clone_of(own, home) is None
    home.clone("own").mkdir(parents=True)
    assert clone_of(own, home) == str(home.clone("own"))
    known = own.model_copy(update={"url": "https://example.org/own.git"})
    assert clone_of(known, home) is None, "it has none of its commits"


def test_what_the_clone_of_a_home_holds_is_not_fetched_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    made = Repository(home.clone("own"))
    base, head = made.commit("Base", {"a.py": "a = 1\n"}), made.commit("Faster", {"a.py": "a = 2\n"})
    known = task_of(1, 2.0).model_copy(update={"repo": "own", "url": "https://example.org/own.git"})
    both = known.model_copy(update={"base_sha": base, "head_sha": head})
    assert clone_of(both, home) == str(home.clone("own"))
    assert clone_of(both.model_copy(update={"head_sha": "0" * 40}), home) is None


def test_a_repository_of_ones_own_name_is_the_clone_that_is_given() -> None:
    own = task_of(1, 2.0).model_copy(update={"repo": "own", "url": ""})
    assert place_of(own, "/somewhere/lib") == "own"
    address = "https://example.org/own.git"
    assert place_of(own.model_copy(update={"url": address}), None) == address
    assert place_of(own.model_copy(update={"repo": "demo"}), None) == "demo"
    with pytest.raises(InputError, match="'own' is: give its clone, --source"):
        place_of(own, None)


@pytest.mark.parametrize("name", ["empty", "garbage.parquet"])
def test_what_holds_no_tasks_is_bad_input(tmp_path: Path, perfquarry: Callable[..., Any], name: str) -> None:
    source = tmp_path / name
    if name == "empty":
        source.mkdir()
    else:
        source.write_bytes(b"PAR1 and no more")
    said = perfquarry(tmp_path / "home", "revalidate", str(source), code=2).stderr
    assert "tasks" in said and "Traceback" not in said
