from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.progress import Progress

from benchmarks.builds import in_package, measure, sample, spread
from benchmarks.builds_report import section, write_failures
from perfquarry.data.demo import build_demo, expected
from perfquarry.data.records import Change, FileChange
from perfquarry.data.registry import load
from perfquarry.flows.options import Options
from perfquarry.flows.run import Run
from perfquarry.miners.history import crawl

START = datetime(2014, 1, 1, tzinfo=UTC)


def change(day: int, *paths: str) -> Change:
    when = START + timedelta(days=day)
    files = [FileChange(path=path, status="modified", added=1, deleted=1, role="source") for path in paths]
    return Change(
        repo="lib", stage_version="1", config_hash="", change_id=str(day), kind="commit", base_sha="", title="",
        head_sha=f"{day:040}", authored_at=when, merged_at=when, message="", files=files,
    )  # fmt: skip


def test_commits_are_spread_over_time_however_many_a_year_had() -> None:
    busy = [change(day) for day in range(300)]
    quiet = [change(1000 + 100 * number) for number in range(20)]
    chosen = spread(busy + quiet, 10, "seed")
    assert len(chosen) == len({one.head_sha for one in chosen}) == 10
    assert sum(one in busy for one in chosen) <= 4  # of the 3000 days, some stretches are empty
    assert chosen == spread(quiet + busy, 10, "seed") != spread(busy + quiet, 10, "other")
    assert len(spread(quiet, 40, "seed")) == 20
    assert len(spread([change(1)] * 1, 5, "seed")) == 1 and spread([], 5, "seed") == []


def test_only_source_of_the_package_counts() -> None:
    tornado, contained = load("tornado"), load("sortedcontainers")
    assert in_package(change(1, "tornado/web.py"), tornado)
    assert not in_package(change(1, "setup_helper.py", "tornadoes/web.py"), tornado)
    assert in_package(change(1, "src/sortedcontainers/sortedlist.py"), contained)
    assert in_package(change(1, "sortedcontainers.py"), contained)


@pytest.mark.slow
def test_trials_are_kept_and_not_repeated(tmp_path: Path) -> None:
    source = tmp_path / "demo"
    build_demo(source)
    options = Options(repo="demo", source=str(source), home=str(tmp_path / "home"), jobs=1)
    run = Run.open(options.model_dump_json())
    heads = [next(one for one in expected() if one.speedup).head_sha]
    heads.append(next(one for one in expected() if one.stage == "build").head_sha)
    changes = list(crawl(run.clone, run.stamp("mine"), run.options.settings.mine, only=heads))
    with Progress(disable=True) as progress:
        late = measure(run, changes, 1, progress, time.monotonic() - 1)
        first = measure(run, changes[:1], 1, progress, float("inf"))
        both = measure(run, changes, 1, progress, float("inf"))
        again = measure(run, changes, 1, progress, float("inf"), again=True)
    assert sample(run, 5) == sample(run, 5)
    assert late == [] and len(first) == 1 and len(both) == 2
    assert both[0].created_at == first[0].created_at
    before, after = ({trial.head_sha: trial.created_at for trial in found} for found in (both, again))
    assert before[heads[0]] == after[heads[0]] and before[heads[1]] < after[heads[1]], "the rejected one alone"
    trials = {trial.head_sha: trial for trial in both}
    good, bad = (trials[head] for head in heads)
    assert good.status == "kept" and good.built and "::" in good.test
    assert bad.status == "rejected" and not bad.built and bad.reason and bad.log

    text = section("demo", both, 3, 1)
    assert "| 3 | 2 | 1 (50%) | 1 (50%) | 9%–91% |" in text and f"{bad.reason} 1" in text
    write_failures({"demo": both}, tmp_path / "failures.md")
    assert bad.head_sha in (tmp_path / "failures.md").read_text()
