"""Who solves tasks: a model by one of the methods, or an agent's command; and the file of what they made."""

from __future__ import annotations

import json
import os
import shlex
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfquarry.curation import Method
from perfquarry.curation.evaluation.solving import (
    Edits,
    edit_tree,
    locate_request,
    oracle_files,
    problem_text,
    solve_requests,
)
from perfquarry.curation.published import MadeTask
from perfquarry.data.children import Need, environment
from perfquarry.data.errors import AnswersAwaited, InputError
from perfquarry.data.records import Task
from perfquarry.harness.contracts import Command, Limits
from perfquarry.harness.grading.workspace import Workspace
from perfquarry.harness.sandbox.process import ProcessSandbox
from perfquarry.llm.client import Client
from perfquarry.llm.request import Answer, Request
from perfquarry.miners.roles import language_of
from perfquarry.miners.scopes import MODULE, spans

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


def outline(path: str, source: bytes) -> Sequence[tuple[str, int, int]]:
    """Functions and classes of a file, as prompts name them."""
    return [span for span in spans(language_of(path), source) if span.name != MODULE]


def by_model(
    tasks: Sequence[Task],
    made: dict[str, MadeTask],
    solver: Solver,
    client: Client,
    predictions: Predictions,
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


def by_agent(task: Task, made: MadeTask, attempt: int, solver: Solver, predictions: Predictions, place: Path) -> None:
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


class Predictions:
    """The file of predictions; a line is written as soon as it is known."""

    def __init__(self, path: Path, model: str, say: Callable[[str], None]) -> None:
        self._path, self._model, self.say = path, model, say
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
