"""Jobs of a command that is no stage, at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from perfquarry.curation.jobs import Job
from perfquarry.flows.server import quiet
from perfquarry.harness.sandbox import ending_together


def do_all(command: str, subject: str, jobs: Sequence[Job], at_once: int) -> None:
    """Does jobs that write their own results, in threads, or as task runs on the user's Prefect server.

    The first that raises ends those that have not begun, and its error is raised.

    Args:
        command: name of the flow, where PREFECT_API_URL names a server.
        subject: what the command is about: a part of the flow run's name.
        jobs: what is to do.
        at_once: most that work at the same time.
    """
    if os.environ.get("PREFECT_API_URL"):
        quiet()
        from perfquarry.flows.prefect_flows import do_jobs

        do_jobs(command, subject, jobs, at_once)
        return
    with ThreadPoolExecutor(max_workers=at_once) as pool, ending_together():
        list(pool.map(lambda job: job.work(), jobs))  # an error of one ends those that have not begun
