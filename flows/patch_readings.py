"""`perfquarry analyse`: a model reads the patches of a report, for the people who look at it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from perfquarry.curation.evaluation.readings import read_patches
from perfquarry.curation.evaluation.report import merged, read_readings, write_readings, write_report
from perfquarry.curation.published import PublishedTasks
from perfquarry.data.errors import AnswersAwaited
from perfquarry.data.home import Home
from perfquarry.data.records import PatchReading, Stamp
from perfquarry.data.store import TableStore
from perfquarry.flows.output import put
from perfquarry.flows.settings import Settings
from perfquarry.llm.client import open_client
from perfquarry.llm.spec import ModelSpec

STAGE_VERSION = "1"


def analyse(home: Home, folder: Path, dataset: str, llm: str, votes: int, settings: Settings, *, as_json: bool) -> None:
    """Reads each patch of a report that this model has not read, and writes the report anew.

    Args:
        home: keeps answers and costs.
        folder: the report, as `perfquarry evaluate` wrote it.
        dataset: what it was graded on.
        llm: who is asked.
        votes: answers of the hack judge a patch.
        settings: for the client.

    Raises:
        InputError: no such report, tasks or model.
        PerfquarryError: the model cannot be asked now; what it answered is in the report.
    """
    report, grades = merged([folder])
    tasks = {task.task_id: task for task in PublishedTasks.open(home, dataset, None, (), settings).tasks}
    author = str(ModelSpec.parse(llm))
    known = {(row.task_id, row.patch_id) for row in read_readings(folder) if row.author == author}
    waiting = [row for row in grades if (row.task_id, row.patch_id) not in known]
    found: list[PatchReading] = []
    awaited: list[AnswersAwaited] = []
    try:
        for repo in sorted({task.repo for task in tasks.values()}):  # costs are kept by repository
            stamp = Stamp(repo=repo, stage_version=STAGE_VERSION, config_hash=report.protocol)
            mine = [row for row in waiting if row.task_id in tasks and tasks[row.task_id].repo == repo]
            with open_client(llm, home, TableStore(home.tables), stamp, settings.llm) as client:
                try:
                    for row in read_patches(mine, tasks, client.ask_all, votes, author, stamp):
                        found.append(row)
                except AnswersAwaited as error:
                    awaited.append(error)
    finally:
        write_readings([*read_readings(folder), *found], folder)
        write_report(report, grades, folder)
    if awaited:
        raise type(awaited[0])(" ".join(map(str, awaited)))
    rows = [row for row in read_readings(folder) if row.author == author]
    put(rows, _shown(rows, folder), as_json=as_json)


def _shown(rows: list[PatchReading], folder: Path) -> Iterator[str]:
    for row in rows:
        hack = f"hack ({row.hack_kind}), {row.hack_votes} of {row.votes} votes" if row.is_hack else "no hack"
        plan = f"{row.points_done} of {len(row.points)} points of the expert's plan"
        yield f"{row.task_id} {row.patch_id}: {hack}; {plan}; {row.failure}"
    yield f"{len(rows)} patches read; look at {folder / 'report.html'}"
