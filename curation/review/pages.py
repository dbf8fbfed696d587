"""The pages: what each template gets."""

from __future__ import annotations

import contextlib
import re
import secrets
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.responses import HTMLResponse, Response

from perfquarry.curation.plots.pairs import pair_sessions, pairs_plot
from perfquarry.curation.plots.strips import strips
from perfquarry.curation.problems.texts import texts_for_solvers
from perfquarry.curation.review.agreement import agreements_in, progress_in
from perfquarry.curation.review.decisions import Conflict, counts
from perfquarry.curation.review.diff import ShownDiff, side_by_side
from perfquarry.curation.review.guard import COOKIE, Guard
from perfquarry.curation.review.queue import PAGE, Filter
from perfquarry.curation.review.rendering import render
from perfquarry.curation.review.service import ReviewService
from perfquarry.curation.review.tables import Details
from perfquarry.curation.review.vocabulary import OUTCOMES
from perfquarry.curation.review.witness import witness_of
from perfquarry.data.errors import UnknownTask
from perfquarry.data.records import Task

LOG_LINES = 500


class NotSignedIn(Exception):
    """Who asks has no valid token."""


def signed_in_reviewer(request: Request) -> str:
    """Who asks.

    Raises:
        NotSignedIn: nobody that the guard knows.
    """
    name: str | None = request.app.state.guard.reviewer(request)
    if name is None:
        raise NotSignedIn
    return name


Reviewer = Annotated[str, Depends(signed_in_reviewer)]
Wanted = Annotated[Filter, Query()]


class Pages:
    """Renders answers."""

    def __init__(self, desk: ReviewService, guard: Guard) -> None:
        self._desk, self._guard = desk, guard

    def queue(self, request: Request, reviewer: Reviewer, wanted: Wanted) -> Response:
        """The list of candidates."""
        queue = self._desk.queue(reviewer)
        total, numbers = queue.count(wanted), queue.counts()
        entries = queue.page(wanted)
        overall = [(one.overall_low, one.overall_speedup, one.overall_high) for one in entries]
        axis = strips([*((one.low, one.speedup, one.high) for one in entries), *overall])
        return self._page(
            request,
            "queue.html.jinja",
            reviewer,
            wanted,
            axis=axis,
            entries=list(zip(entries, axis.strips, axis.strips[len(entries) :], strict=False)),
            total=total,
            counts={outcome: numbers.get(outcome, 0) for outcome in OUTCOMES},
            repositories=self._desk.index.repositories(),
            pages=max(1, -(-total // PAGE)),
            agreements=agreements_in(self._desk.index.engine),
            progress=progress_in(self._desk.index.engine),
        )

    def task(self, request: Request, reviewer: Reviewer, wanted: Wanted, task_id: str) -> Response:
        """One candidate in full."""
        return self.not_recorded(request, reviewer, wanted, task_id, draft=("", "", ""))

    def not_recorded(
        self,
        request: Request,
        reviewer: str,
        wanted: Filter,
        task_id: str,
        draft: tuple[str, str, str],
        conflict: Conflict | None = None,
        error: str = "",
    ) -> Response:
        """The same after a conflict or an error, with what happened and what was to be written."""
        version = self._desk.decisions.version(task_id)  # first: whatever comes later is a conflict
        details = self._desk.details(task_id)
        fingerprint = self._desk.find(task_id).fingerprint
        queue = self._desk.queue(reviewer)
        before, after = queue.neighbours(wanted, task_id)
        opinions = self._desk.decisions.opinions(task_id)
        timed = [one for one in details.workloads if one.evidence.low]
        return self._page(
            request,
            "task.html.jinja",
            reviewer,
            wanted,
            409 if conflict else 422 if error else 200,
            details=details,
            task=details.task,
            version=version,
            near=queue.around(wanted, task_id),
            before=before,
            after=after,
            opinions=[(one, counts(one, fingerprint), one.fingerprint != fingerprint) for one in opinions],
            log=self._desk.decisions.log(task_id),
            diff=side_by_side(details.task.patch, details.task.oracle_targets),
            tests=side_by_side(details.task.test_patch),
            runs=self._desk.sending.of(task_id),
            timed=[(one.workload_id, one.name, one.evidence, one.evidence.status) for one in timed],
            axis=strips([(one.evidence.low, one.evidence.speedup, one.evidence.high) for one in timed]),
            evidence=self._evidence(details) if self._desk.tables.has_sessions(details.task) else None,
            conflict=conflict,
            draft=draft,
            error=error,
            texts=[(name, _folded(text)) for name, text in _texts(details).items()],
            twins=self._twins(details),
        )

    def evidence(self, task_id: str) -> Response:
        """The plots and codes of a candidate's workloads: the part of its page that takes longest."""
        details = self._desk.details(task_id)
        return HTMLResponse(render("evidence.html.jinja", workloads=self._evidence(details), task=details.task))

    def runs(self, task_id: str) -> Response:
        """How the flows of a candidate fare."""
        return HTMLResponse(render("runs.html.jinja", runs=self._desk.sending.of(task_id), task_id=task_id))

    def log(self, request: Request, reviewer: Reviewer) -> Response:
        """The end of the audit log, newest event first."""
        log, total = self._desk.decisions.newest(LOG_LINES)
        return self._page(request, "log.html.jinja", reviewer, Filter(), events=log, total=total)

    def plot(self, task_id: str, workload_id: str, narrow: bool = False) -> Response:
        """The pairs of one workload as SVG.

        Raises:
            UnknownTask: there is no such candidate, or no such workload.
        """
        details = self._desk.details(task_id)
        one = next((one for one in details.workloads if one.workload_id == workload_id), None)
        if one is None:
            raise UnknownTask(f"{task_id} has no workload {workload_id!r}")
        sessions = self._desk.tables.sessions(details.task).get(workload_id, ())
        text = pairs_plot(one.name, pair_sessions(sessions, one.evidence.sessions), narrow=narrow, headline=False)
        return Response(text, media_type="image/svg+xml")

    def _evidence(self, details: Details) -> list[dict[str, Any]]:
        sessions = self._desk.tables.sessions(details.task)
        return [
            {
                "tried": one,
                "sessions": pair_sessions(sessions.get(one.workload_id, ()), one.evidence.sessions),
                "witness": witness_of(count, one.evidence) if (count := details.counts.get(one.workload_id)) else None,
                "code": one.code if one.source != "unit-test" else self._desk.tables.test_code(details.task, one.code),
            }
            for one in details.workloads
        ]

    def _twins(self, details: Details) -> list[tuple[Task, ShownDiff]]:
        """Other candidates that screening finds alike, with their patches."""
        names = dict.fromkeys(one.subject for one in details.findings if one.subject != details.task.task_id)
        found = []
        for name in names:
            with contextlib.suppress(UnknownTask):
                task = self._desk.details(name).task
                found.append((task, side_by_side(task.patch, task.oracle_targets)))
        return found

    def _page(
        self, request: Request, template: str, reviewer: str, wanted: Filter, status: int = 200, **context: Any
    ) -> Response:
        session = request.cookies.get(COOKIE, "")
        fresh = "" if session or self._guard.sign_in else secrets.token_urlsafe(24)
        text = render(
            template,
            reviewer=reviewer,
            several=self._guard.sign_in,
            csrf=self._guard.csrf(session or fresh),
            wanted=wanted,
            link=wanted.link,
            last=self._desk.decisions.last(reviewer),
            required=self._desk.decisions.required,
            **context,
        )
        answer = HTMLResponse(text, status)
        if fresh:
            answer.set_cookie(COOKIE, fresh, httponly=True, samesite="lax")
        return answer


def _texts(details: Details) -> dict[str, str]:
    """By setting the problem texts that a solver may read, without those that reveal the fix."""
    templates = {"realistic": details.task.problem_realistic, "oracle": details.task.problem_oracle}
    texts = texts_for_solvers(details.task, details.problems) or templates
    return {name: texts[name] for name in ("realistic", "oracle", "gso") if texts.get(name)}


def _folded(text: str) -> list[tuple[str, str]]:
    """Prose and blocks of code of a problem text, in their order: ('prose' or 'code', text)."""
    parts = re.split(r"^```\w*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [("code" if number % 2 else "prose", part.strip()) for number, part in enumerate(parts) if part.strip()]
