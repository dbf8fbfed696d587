"""`perfquarry solve`: baselines. A model, or a command-line agent, makes predictions for `perfquarry evaluate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from perfquarry.curation.evaluation.solvers import Predictions, Solver, by_agent, by_model
from perfquarry.curation.jobs import Job
from perfquarry.curation.published import MadeTask, PublishedTasks
from perfquarry.data.errors import AnswersAwaited, EnvironmentFailed
from perfquarry.data.home import Home
from perfquarry.data.records import Stamp, Task
from perfquarry.data.store import TableStore
from perfquarry.flows.jobs import do_all
from perfquarry.flows.output import show
from perfquarry.flows.settings import Settings
from perfquarry.harness.leases.leases import scratch_folder
from perfquarry.llm.client import open_client

STAGE_VERSION = "1"


def solve(
    home: Home, dataset: str, clone_from: str | None, only: Sequence[str], to: Path, solver: Solver, settings: Settings
) -> None:
    """Appends a prediction to `to` for each task and attempt that is missing there.

    Args:
        home: where environments and trees are made, and answers and costs are kept.
        dataset: release, Parquet file of tasks, or a home's repository.
        clone_from: clone of the repository, where the dataset is no release.
        only: starts of task ids; none: all.
        to: JSON lines of `instance_id`, `model_name_or_path`, `model_patch`; an old file is gone on with.
        solver: who solves.
        settings: for environments and the client.

    Raises:
        InputError: no such tasks, model or command.
        PerfquarryError: the model cannot be asked now; what is solved is in the file.
    """
    published = PublishedTasks.open(home, dataset, clone_from, only, settings)
    console = Console(stderr=True)
    predictions = Predictions(to, solver.name, lambda text: show(text, console=console))
    attempts = range(1, solver.attempts + 1)
    waiting = [one for one in published.tasks if not {(one.task_id, number) for number in attempts} <= predictions.done]
    made = dict(_made(published, waiting, predictions))
    with scratch_folder(home.scratch, "solve") as place:
        if solver.agent:
            jobs = [
                Job(
                    f"{task.task_id}-{number}",
                    partial(by_agent, task, made[task.task_id], number, solver, predictions, place),
                )
                for task in waiting
                if task.task_id in made
                for number in attempts
                if (task.task_id, number) not in predictions.done
            ]
            do_all("solve", Path(dataset).name, jobs, solver.jobs)
        else:
            tasks = [task for task in waiting if task.task_id in made]
            awaited: list[AnswersAwaited] = []
            for repo in sorted({task.repo for task in tasks}):  # costs are kept by repository
                stamp = Stamp(repo=repo, stage_version=STAGE_VERSION, config_hash=settings.build.config_hash())
                with open_client(solver.llm, home, TableStore(home.tables), stamp, settings.llm) as client:
                    mine = [task for task in tasks if task.repo == repo]
                    by_model(mine, made, solver, client, predictions, place, awaited)
            if awaited:
                raise type(awaited[0])(" ".join(map(str, awaited)))
    predictions.say(
        f"{to}: {len(predictions.done)} predictions of {solver.name}; grade them: perfquarry evaluate {to} …"
    )


def _made(published: PublishedTasks, tasks: Sequence[Task], predictions: Predictions) -> Iterator[tuple[str, MadeTask]]:
    """The tasks that can be made here; the others are named, and nobody has failed them."""
    for task in tasks:
        try:
            yield task.task_id, published.make(task)
        except EnvironmentFailed as error:
            predictions.say(f"{task.task_id}: cannot be made here: {str(error).splitlines()[0]}")
