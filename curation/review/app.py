"""The web application: addresses and what each answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from threading import Thread
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, FastAPI, Form, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.staticfiles import StaticFiles

from perfquarry.curation.plots.pairs import pairs_plot
from perfquarry.curation.review.decisions import MOST_EVENTS, Conflict
from perfquarry.curation.review.guard import COOKIE, Gate, Guard
from perfquarry.curation.review.pages import NotSignedIn, Pages, Reviewer, Wanted, signed_in_reviewer
from perfquarry.curation.review.queue import Filter
from perfquarry.curation.review.rendering import STATIC, render, warm
from perfquarry.curation.review.service import ReviewService
from perfquarry.curation.review.vocabulary import SENT_BACK, Action
from perfquarry.data.errors import InputError, UnknownTask
from perfquarry.data.records import IntentClass


def create_app(desk: ReviewService, guard: Guard) -> FastAPI:
    """The review queue of a home."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        Thread(target=pairs_plot, args=("", ()), daemon=True).start()  # the first plot imports matplotlib
        yield
        desk.close()

    app = FastAPI(title="perfquarry review", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    pages = Pages(desk, guard)
    app.state.desk, app.state.guard, app.state.pages = desk, guard, pages
    warm()
    app.add_middleware(Gate, hosts=guard.hosts)
    app.mount("/static", _Static(directory=STATIC), name="static")
    app.include_router(router)
    shown: dict[str, Callable[..., Response]] = {
        "/": pages.queue,
        "/tasks/{task_id}": pages.task,
        "/tasks/{task_id}/evidence": pages.evidence,
        "/tasks/{task_id}/plots/{workload_id}.svg": pages.plot,
        "/tasks/{task_id}/runs": pages.runs,
        "/log": pages.log,
    }
    for path, page in shown.items():
        app.add_api_route(path, page, dependencies=[Depends(signed_in_reviewer)], response_class=HTMLResponse)
    for kind, answer in _REFUSALS.items():
        app.add_exception_handler(kind, answer)
    return app


def _desk(request: Request) -> Any:
    return request.app.state.desk


def _guard(request: Request) -> Any:
    return request.app.state.guard


def _pages(request: Request) -> Any:
    return request.app.state.pages


DeskHere = Annotated[ReviewService, Depends(_desk)]
GuardHere = Annotated[Guard, Depends(_guard)]
PagesHere = Annotated[Pages, Depends(_pages)]


def _our_form(request: Request, guard: GuardHere, csrf: Annotated[str, Form()] = "") -> None:
    if not guard.from_our_page(request, csrf):
        raise HTTPException(403, "The form is not from this page, or the page is old: load it again.")


router = APIRouter(default_response_class=HTMLResponse)


@router.post("/tasks/{task_id}/decide", dependencies=[Depends(_our_form)])
def decide(
    request: Request,
    desk: DeskHere,
    pages: PagesHere,
    reviewer: Reviewer,
    wanted: Wanted,
    task_id: str,
    action: Annotated[Action, Form()],
    seen: Annotated[int, Form(ge=0, le=MOST_EVENTS)],
    reason: Annotated[str, Form(max_length=40)] = "",
    note: Annotated[str, Form()] = "",
    intent: Annotated[IntentClass | Literal[""], Form()] = "",
) -> Response:
    """Records a decision and goes on to the next candidate, or shows the conflict."""
    following = desk.queue(reviewer).neighbours(wanted, task_id)[1]
    try:
        event = desk.decide(
            task_id, reviewer, action, seen=seen, reason=reason or None, note=note, intent=intent or None
        )
    except Conflict as conflict:
        answer = pages.not_recorded(request, reviewer, wanted, task_id, conflict=conflict, draft=(action, reason, note))
        answer.headers["hx-push-url"] = _place(task_id, wanted)
        return answer
    except InputError as error:
        answer = pages.not_recorded(request, reviewer, wanted, task_id, error=str(error), draft=(action, reason, note))
        answer.headers["hx-push-url"] = _place(task_id, wanted)
        return answer
    if event.action in SENT_BACK or event.action == "note":
        return _to_task(task_id, wanted)
    following = following or desk.queue(reviewer).first(wanted)
    return _to_task(following if following != task_id else None, wanted)


@router.post("/undo", dependencies=[Depends(_our_form)])
def undo(desk: DeskHere, reviewer: Reviewer, wanted: Wanted) -> Response:
    """Takes the reviewer's last event back and shows its candidate."""
    event = desk.decisions.undo(reviewer)
    return _to_task(event.task_id if event else None, wanted)


@router.get("/sign-in")
def sign_in(guard: GuardHere, token: str = "") -> Response:
    """Takes the token of a link, or asks for one."""
    return _signed_in(guard, token) if token else HTMLResponse(render("sign_in.html.jinja", wrong=False))


@router.post("/sign-in")
def signed_in(guard: GuardHere, token: Annotated[str, Form()] = "") -> Response:
    """Takes a token."""
    return _signed_in(guard, token.strip())


@router.post("/refresh", dependencies=[Depends(_our_form)])
def refresh(desk: DeskHere, reviewer: Reviewer, wanted: Wanted) -> Response:
    """Reads the tables again: somebody may have curated meanwhile."""
    desk.refresh()
    return RedirectResponse(_place(None, wanted), 303)


def _place(task_id: str | None, wanted: Filter) -> str:
    return (f"/tasks/{quote(task_id, safe='')}" if task_id else "/") + wanted.link(page=1)


def _to_task(task_id: str | None, wanted: Filter) -> Response:
    return RedirectResponse(_place(task_id, wanted), 303)


def _signed_in(guard: Guard, token: str) -> Response:
    if guard.reviewer_of(token) is None:
        return HTMLResponse(render("sign_in.html.jinja", wrong=True), 403)
    answer = RedirectResponse("/", 303)
    answer.set_cookie(COOKIE, token, max_age=30 * 86400, httponly=True, samesite="lax")
    return answer


def _problem(title: str, text: str, status: int) -> Response:
    text = render("problem.html.jinja", title=title, text=text)
    return HTMLResponse(text, status, {"hx-push-url": "false"})


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    title = "Not found" if error.status_code == 404 else "Refused"
    return _problem(title, str(error.detail), error.status_code)


def _malformed(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return _problem("That does not fit", f"{first['loc'][-1]}: {first['msg']}", 422)


_REFUSALS = {
    NotSignedIn: lambda _, error: RedirectResponse("/sign-in", 303),
    UnknownTask: lambda _, error: _problem("Not found", str(error), 404),
    InputError: lambda _, error: _problem("That does not fit", str(error), 422),
    StarletteHTTPException: _refused,
    RequestValidationError: _malformed,
}


class _Static(StaticFiles):
    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        answer = super().file_response(*args, **kwargs)
        answer.headers["cache-control"] = "public, max-age=31536000, immutable"  # addresses hold a digest
        return answer
