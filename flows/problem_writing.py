"""Problem texts and plans by a model, written once a task."""

from __future__ import annotations

from collections.abc import Sequence

from curation.problems.written import plan, write
from data.records import Task
from flows.decisions import newest_problems
from flows.display import current
from flows.run import Run
from flows.screening import fix_of, stamp_of
from llm.client import ModelSpec, open_client


def write_problems(run: Run, tasks: Sequence[Task], llm: str, *, plans: bool) -> None:
    """Asks for what the tasks lack of this model: texts, or plans.

    Raises:
        InputError: the model cannot be asked at all (no key, no folder).
        PerfquarryError: it cannot be asked now; what was written is in the table.
    """
    author, stamp = str(ModelSpec.parse(llm)), stamp_of(run)
    known = newest_problems(run.store, run.name)
    done = {row.task_id for row in known if row.author == author and (row.setting == "plan") == plans}
    waiting = [task for task in tasks if task.task_id not in done]
    current().stage("plans" if plans else "problems", len(waiting))
    with open_client(llm, run.home, run.store, stamp, run.options.settings.llm) as client:
        for task in waiting:
            rows = (
                plan(task, client.ask, author, stamp)
                if plans
                else write(task, fix_of(run, task), client.ask, author, stamp)
            )
            run.store.append(rows)
            current().advance()
    current().finish(f"{len(waiting)} tasks asked for")
