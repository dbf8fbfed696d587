"""Models that are asked about tasks of several repositories: to solve them, and to read the patches of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from perfquarry.curation.evaluation.readings import read_patches
from perfquarry.curation.evaluation.report import merged, read_readings, write_readings, write_report
from perfquarry.curation.evaluation.solvers import Predictions, Solver, by_agent, by_model
from perfquarry.curation.jobs import DoAll, Job
from perfquarry.curation.published import MadeTask, PublishedTasks
from perfquarry.curation.settings import MakingSettings
from perfquarry.data.errors import AnswersAwaited, EnvironmentFailed
from perfquarry.data.home import Home
from perfquarry.data.records import PatchReading, Stamp, Task
from perfquarry.data.store import TableStore
from perfquarry.harness.leases.leases import scratch_folder
from perfquarry.llm.client import Client, open_client
from perfquarry.llm.settings import LlmSettings
from perfquarry.llm.spec import ModelSpec

STAGE_VERSION = "1"


def solve_tasks(
    home: Home,
    published: PublishedTasks,
    solver: Solver,
    predictions: Predictions,
    making: MakingSettings,
    llm: LlmSettings,
    do_all: DoAll,
) -> None:
    """Makes a prediction for each task and attempt that is missing.

    Args:
        home: where answers and costs are kept.
        published: the tasks.
        solver: who solves.
        predictions: what is there already, and where new ones go.
        making: of the tasks.
        llm: for the client.
        do_all: does an agent's attempts.

    Raises:
        InputError: no such model or command.
        PerfquarryError: the model cannot be asked now; what is solved is in the file.
    """
    attempts = range(1, solver.attempts + 1)
    left = [one for one in published.tasks if not {(one.task_id, number) for number in attempts} <= predictions.done]
    made = dict(_made(published, left, predictions))
    tasks = [task for task in left if task.task_id in made]
    with scratch_folder(home.scratch, "solve") as place:
        if solver.agent:
            do_all(
                [
                    Job(
                        f"{task.task_id}-{number}",
                        partial(by_agent, task, made[task.task_id], number, solver, predictions, place),
                    )
                    for task in tasks
                    for number in attempts
                    if (task.task_id, number) not in predictions.done
                ]
            )
            return

        def ask(repo: str, client: Client, _: Stamp) -> None:
            awaited: list[AnswersAwaited] = []
            mine = [task for task in tasks if task.repo == repo]
            by_model(mine, made, solver, client, predictions, place, awaited)
            _raise(awaited)

        _by_repository(home, tasks, solver.llm, making.build.config_hash(), llm, ask)


def _made(published: PublishedTasks, tasks: Sequence[Task], predictions: Predictions) -> Iterator[tuple[str, MadeTask]]:
    """The tasks that can be made here; the others are named, and nobody has failed them."""
    for task in tasks:
        try:
            yield task.task_id, published.make(task)
        except EnvironmentFailed as error:
            predictions.say(f"{task.task_id}: cannot be made here: {str(error).splitlines()[0]}")


def read_report(
    home: Home, folder: Path, dataset: str, model: str, votes: int, making: MakingSettings, llm: LlmSettings
) -> list[PatchReading]:
    """Has a model read each patch of a report that it has not read, and writes the report anew.

    Args:
        home: keeps answers and costs.
        folder: the report, as `perfquarry evaluate` wrote it.
        dataset: what it was graded on.
        model: who is asked.
        votes: answers of the hack judge a patch.
        making: of the tasks.
        llm: for the client.

    Returns:
        All that this model has read of the report.

    Raises:
        InputError: no such report, tasks or model.
        PerfquarryError: the model cannot be asked now; what it answered is in the report.
    """
    report, grades = merged([folder])
    tasks = {task.task_id: task for task in PublishedTasks.open(home, dataset, None, (), making).tasks}
    author = str(ModelSpec.parse(model))
    known = {(row.task_id, row.patch_id) for row in read_readings(folder) if row.author == author}
    waiting = [row for row in grades if (row.task_id, row.patch_id) not in known]
    found: list[PatchReading] = []

    def ask(repo: str, client: Client, stamp: Stamp) -> None:
        mine = [row for row in waiting if row.task_id in tasks and tasks[row.task_id].repo == repo]
        for row in read_patches(mine, tasks, client.ask_all, votes, author, stamp):
            found.append(row)

    try:
        _by_repository(home, tasks.values(), model, report.protocol, llm, ask)
    finally:
        write_readings([*read_readings(folder), *found], folder)
        write_report(report, grades, folder)
    return [row for row in read_readings(folder) if row.author == author]


def _by_repository(
    home: Home,
    tasks: Iterable[Task],
    model: str,
    config_hash: str,
    llm: LlmSettings,
    ask: Callable[[str, Client, Stamp], None],
) -> None:
    """Asks with a client for each repository, whose costs it keeps; in the end it says what answers are awaited."""
    awaited: list[AnswersAwaited] = []
    for repo in sorted({task.repo for task in tasks}):
        stamp = Stamp(repo=repo, stage_version=STAGE_VERSION, config_hash=config_hash)
        with open_client(model, home, TableStore(home.tables), stamp, llm) as client:
            try:
                ask(repo, client, stamp)
            except AnswersAwaited as error:
                awaited.append(error)
    _raise(awaited)


def _raise(awaited: Sequence[AnswersAwaited]) -> None:
    if awaited:
        raise type(awaited[0])(" ".join(map(str, awaited)))
