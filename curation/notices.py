"""Reports new tasks and failures to a webhook (Slack's incoming webhooks, and what speaks like them)."""

from __future__ import annotations

import logging
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
from filelock import FileLock
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from perfquarry.curation.in_force import accepted_tasks
from perfquarry.curation.settings import NotifySettings
from perfquarry.data.errors import InfrastructureError
from perfquarry.data.figures import with_interval
from perfquarry.data.own_rows import OwnRows
from perfquarry.data.records import Notice, Task, content_id

_log = logging.getLogger("perfquarry.notify")
ATTEMPTS = 5
"""Times a message is tried in one run."""
LONGEST_WAIT = 60.0
"""Longest wait between two attempts, whatever the server asks for (seconds)."""
TIMEOUT = 10.0
"""Seconds of one attempt."""


class WebhookBusy(InfrastructureError):
    """The webhook did not take a message, and may take it later."""

    def __init__(self, text: str, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after = retry_after


def report_new_tasks(rows: OwnRows, settings: NotifySettings) -> int:
    """Reports each accepted task that was never reported; returns how many were.

    A task's row in the table `notices` follows its message at once: only a kill between the
    answer and the row makes the next run repeat one message, with the same Idempotency-Key.
    What the webhook does not take now is logged, and reported by the next run.
    """
    if not settings.webhook:
        return 0
    count = 0
    with FileLock(rows.home.locks / f"notify-{rows.name}.lock"):
        known = set(rows.store.scan(Notice, rows.name, columns=["task_id"])["task_id"].to_pylist())
        for task in accepted_tasks(rows.store, rows.name):
            if task.task_id in known:
                continue
            try:
                send(settings, task_message(task, settings.page), task.task_id)
            except InfrastructureError as error:
                _log.warning("%s was not reported: %s; the next run tries again", task.task_id, error)
                break
            notice = Notice(repo=rows.name, stage_version="1", config_hash="webhook", task_id=task.task_id)
            rows.store.append([notice])
            count += 1
    return count


def task_message(task: Task, page: str = "") -> dict[str, Any]:
    """Slack's payload for an accepted task; `page` is the review page's address."""
    head = f"New task in {_safe(task.codebase)}: *{_safe(task.title)}*"
    figures = f"{with_interval(task.speedup, task.low, task.high)}, δ {task.delta or 0:.3f}"
    lines = [head, f"{figures}, {len(task.workloads)} workload(s)", f"`{task.task_id}`"]
    if page:
        lines.append(f"<{page.rstrip('/')}/tasks/{task.task_id}|Review it>")
    return _payload(lines)


def failure_message(repository: str, state: str, text: str, link: str = "") -> dict[str, Any]:
    """Slack's payload for a run that failed or crashed; `link` leads to its page."""
    lines = [f"Run of {_safe(repository)}: *{_safe(state)}*", _safe(text[:500])]
    if link:
        lines.append(f"<{link}|Its page>")
    return _payload(lines)


def _payload(lines: list[str]) -> dict[str, Any]:
    text = "\n".join(filter(None, lines))
    return {"text": text, "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": text}}]}


def _safe(text: str) -> str:
    """A text in which Slack finds no markup of its own."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("*", "∗").replace("`", "'")


def send(settings: NotifySettings, payload: dict[str, Any], key: str) -> None:
    """Posts a message, again after faults that pass; the address appears in no log and no error.

    Args:
        settings: they know the webhook.
        payload: the JSON body.
        key: equal for attempts to say the same; its hash is sent as Idempotency-Key.

    Raises:
        InputError: the settings name no webhook that can be used.
        InfrastructureError: the webhook refuses the message, or did not take it after `ATTEMPTS`.
    """
    address = settings.address()
    if address is None:
        return
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs addresses
    retrying = Retrying(
        retry=retry_if_exception_type(WebhookBusy), stop=stop_after_attempt(ATTEMPTS), wait=_wait, reraise=True
    )
    retrying(_post, address, payload, content_id(key))


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, WebhookBusy) else 0.0
    return min(LONGEST_WAIT, max(asked, wait_exponential(multiplier=0.5, max=20)(state)))


def _post(address: str, payload: dict[str, Any], key: str) -> None:
    try:
        answer = httpx.post(address, json=payload, headers={"Idempotency-Key": key}, timeout=TIMEOUT)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise WebhookBusy(f"the webhook cannot be reached ({type(error).__name__})") from None  # its text may name it
    if answer.status_code == 429 or answer.status_code >= 500:
        raise WebhookBusy(f"the webhook answered {answer.status_code}", _retry_after(answer))
    if not answer.is_success:
        raise InfrastructureError(f"the webhook answered {answer.status_code}: is its address right?")


def _retry_after(answer: httpx.Response) -> float:
    """Seconds the server asks to wait: a number or a date (RFC 9110, 10.2.3)."""
    value = answer.headers.get("Retry-After", "")
    try:
        return float(value)
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    return max(0.0, (until - datetime.now(until.tzinfo)).total_seconds())
