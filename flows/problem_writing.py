"""Problem texts and plans by a model, written once a task; anew when it shows a solver another script."""

from __future__ import annotations

from collections.abc import Sequence

from perfquarry.curation.in_force import newest_problems
from perfquarry.curation.problems import is_current
from perfquarry.curation.problems.written import plan, write
from perfquarry.data.records import Task
from perfquarry.flows.display import current
from perfquarry.flows.run import Run
from perfquarry.flows.screening import fix_of, stamp_of
from perfquarry.llm.client import open_client
from perfquarry.llm.spec import ModelSpec


def write_problems(run: Run, tasks: Sequence[Task], llm: str, *, plans: bool) -> None:
    """Asks for what the tasks lack of this model: texts, or plans.

    Raises:
        InputError: the model cannot be asked at all (no key, no folder).
        PerfquarryError: it cannot be asked now; what was written is in the table.
    """
    author, stamp = str(ModelSpec.parse(llm)), stamp_of(run)
    mine = [row for row in newest_problems(run.store, run.name) if row.author == author]
    by_id = {task.task_id: task for task in tasks}
    done = {row.task_id for row in mine if (row.setting == "plan") == plans}
    stale = {row.task_id for row in mine if row.task_id in by_id and not is_current(by_id[row.task_id], row)}
    waiting = [task for name, task in by_id.items() if name not in done or (name in stale and not plans)]
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
