"""`perfquarry solve`: baselines. A model, or a command-line agent, makes predictions for `perfquarry evaluate`."""

from __future__ import annotations

import json
import os
import shlex
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from perfquarry.curation import Method
from perfquarry.curation.evaluation.solving import (
    Edits,
    edit_tree,
    locate_request,
    oracle_files,
    problem_text,
    solve_requests,
)
from perfquarry.data.children import Need, environment
from perfquarry.data.errors import AnswersAwaited, EnvironmentFailed, InputError
from perfquarry.data.home import Home
from perfquarry.data.records import Stamp, Task
from perfquarry.data.store import TableStore
from perfquarry.flows.jobs import Job, do_all
from perfquarry.flows.output import show
from perfquarry.flows.published import MadeTask, PublishedTasks
from perfquarry.flows.settings import Settings
from perfquarry.harness.contracts import Command, Limits
from perfquarry.harness.grading.workspace import Workspace
from perfquarry.harness.leases.leases import scratch_folder
from perfquarry.harness.sandbox.process import ProcessSandbox
from perfquarry.llm.client import Client, open_client
from perfquarry.llm.request import Answer, Request
from perfquarry.miners.roles import language_of
from perfquarry.miners.scopes import MODULE, spans

STAGE_VERSION = "1"
_AGENT_MEMORY = 16 * 1024**3
_SAID = 2_000
"""Characters kept of an agent's last words."""


@dataclass(frozen=True)
class Solver:
    """Who solves: a model by one of the methods, or an agent's command."""

    name: str
    """`model_name_or_path` of the predictions."""
    attempts: int
    method: Method = "oracle"
    llm: str = ""
    agent: str = ""
    """A command; {workspace}, {instructions}, {python} and {task} are put in."""
    passed: tuple[str, ...] = ()
    """Environment variables that the agent needs: its model's key."""
    minutes: float = 30.0
    """Wall time of one attempt of an agent."""
    jobs: int = 1
    """Attempts of an agent at once."""


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
    predictions = _Predictions(to, solver.name)
    attempts = range(1, solver.attempts + 1)
    waiting = [one for one in published.tasks if not {(one.task_id, number) for number in attempts} <= predictions.done]
    made = dict(_made(published, waiting, predictions))
    with scratch_folder(home.scratch, "solve") as place:
        if solver.agent:
            jobs = [
                Job(
                    f"{task.task_id}-{number}",
                    partial(_by_agent, task, made[task.task_id], number, solver, predictions, place),
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
                    _by_model(mine, made, solver, client, predictions, place, awaited)
            if awaited:
                raise type(awaited[0])(" ".join(map(str, awaited)))
    predictions.say(
        f"{to}: {len(predictions.done)} predictions of {solver.name}; grade them: perfquarry evaluate {to} …"
    )


def _made(
    published: PublishedTasks, tasks: Sequence[Task], predictions: _Predictions
) -> Iterator[tuple[str, MadeTask]]:
    """The tasks that can be made here; the others are named, and nobody has failed them."""
    for task in tasks:
        try:
            yield task.task_id, published.make(task)
        except EnvironmentFailed as error:
            predictions.say(f"{task.task_id}: cannot be made here: {str(error).splitlines()[0]}")


def outline(path: str, source: bytes) -> Sequence[tuple[str, int, int]]:
    """Functions and classes of a file, as prompts name them."""
    return [span for span in spans(language_of(path), source) if span.name != MODULE]


def _by_model(
    tasks: Sequence[Task],
    made: dict[str, MadeTask],
    solver: Solver,
    client: Client,
    predictions: _Predictions,
    place: Path,
    awaited: list[AnswersAwaited],
) -> None:
    """All questions of a step are asked together; who can be solved is, and what waits is noted in `awaited`."""
    files = {task.task_id: oracle_files(task) for task in tasks}
    if solver.method == "locate":
        questions: list[Request[Any]] = [locate_request(task, made[task.task_id].base.tree) for task in tasks]
        files = {}
        for number, answer in _answers(client, questions, awaited):
            files[tasks[number].task_id] = answer.value.files if answer.value else []
    asked: list[tuple[Task, int]] = []
    wanted: list[Request[Edits]] = []
    for task in tasks:
        if task.task_id in files:
            tree, chosen = made[task.task_id].base.tree, files[task.task_id]
            every = solve_requests(task, tree, chosen, outline, solver.method, solver.attempts)
            for attempt, request in enumerate(every, 1):
                if (task.task_id, attempt) not in predictions.done:
                    asked.append((task, attempt))
                    wanted.append(request)
    for number, answer in _answers(client, wanted, awaited):
        task, attempt = asked[number]
        workspace = Workspace(made[task.task_id].base.tree, place / f"{task.task_id}-{attempt}")
        wrong = edit_tree(workspace.folder, answer.value.edits) if answer.value else [answer.detail]
        predictions.add(task, attempt, "" if wrong else workspace.patch(), "; ".join(wrong))


def _answers(
    client: Client, requests: Sequence[Request[Any]], awaited: list[AnswersAwaited]
) -> Iterator[tuple[int, Answer[Any]]]:
    try:
        yield from client.ask_all(requests)
    except AnswersAwaited as error:
        awaited.append(error)


def _by_agent(task: Task, made: MadeTask, attempt: int, solver: Solver, predictions: _Predictions, place: Path) -> None:
    """Runs the agent in a copy of the base, and takes what it left there, also when its time is over."""
    workspace = Workspace(made.base.tree, place / f"{task.task_id}-{attempt}")
    instructions = place / f"{task.task_id}-{attempt}.md"
    instructions.write_text(problem_text(task, solver.method), encoding="utf-8")
    values = {
        "workspace": str(workspace.folder),
        "instructions": str(instructions),
        "python": str(made.base.python),
        "task": task.task_id,
    }
    limits = Limits(wall_seconds=60 * solver.minutes, memory_bytes=_AGENT_MEMORY, processes=4096)
    done = ProcessSandbox("an agent is a program of yours, and needs the network").run(
        Command(
            argv=("/bin/sh", "-c", command_of(solver.agent, values)),
            cwd=workspace.folder,
            env=environment(Need.NETWORK, **{name: os.environ[name] for name in solver.passed}),
            writable=(workspace.folder,),
            limits=limits,
        )
    )
    if done.exit_code == 127:  # the shell found no such program
        said = done.stderr.decode(errors="replace").strip()
        raise InputError(f"the agent's command cannot be run: {said[-_SAID:]}")
    note = "" if done.ok else f"it was ended for {done.exceeded or f'exit code {done.exit_code}'}"
    predictions.add(task, attempt, workspace.patch(), note)


def command_of(agent: str, values: dict[str, str]) -> str:
    """An agent's command line with the places of one attempt put in, each as one word of the shell.

    Raises:
        InputError: it names another place.
    """
    try:
        return agent.format(**{name: shlex.quote(value) for name, value in values.items()})
    except (KeyError, IndexError, ValueError) as error:
        known = ", ".join(f"{{{name}}}" for name in values)
        raise InputError(f"--agent {agent!r}: it may name {known}, and nothing else in braces ({error})") from error


class _Predictions:
    """The file of predictions; a line is written as soon as it is known."""

    def __init__(self, path: Path, model: str) -> None:
        self._path, self._model, self._console = path, model, Console(stderr=True)
        self.done: set[tuple[str, int]] = set()
        """Tasks and attempts of this solver in the file."""
        self._writing = threading.Lock()
        if path.exists():
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                try:
                    row = json.loads(line)
                    if row["model_name_or_path"] == model:
                        self.done.add((row["instance_id"], int(row["attempt"])))
                except (ValueError, KeyError, TypeError) as error:
                    raise InputError(
                        f"{path}, line {number}: no prediction of perfquarry solve ({error}): give another --to"
                    ) from error
        path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, task: Task, attempt: int, patch: str, note: str) -> None:
        """Appends one, as one write."""
        row = {
            "instance_id": task.task_id,
            "model_name_or_path": self._model,
            "model_patch": patch,
            "attempt": attempt,
            "note": note[:_SAID],
        }
        with self._writing, self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        self.done.add((task.task_id, attempt))
        what = f"{len(patch.splitlines())} lines of a patch" if patch else "no patch"
        self.say(f"{task.task_id} #{attempt}: {what}" + (f" ({note})" if note else ""))

    def say(self, text: str) -> None:
        """To the terminal."""
        show(text, console=self._console)
