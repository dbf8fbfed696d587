"""Accepted tasks are reported to a webhook: each once, whatever happens meanwhile, and its address to nobody."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from accepted import task, write
from webhook import Webhook, serving

from perfquarry.curation import notices
from perfquarry.curation.settings import NotifySettings
from perfquarry.data.errors import InputError
from perfquarry.data.records import Notice
from perfquarry.flows.options import Options
from perfquarry.flows.run import Run
from perfquarry.flows.settings import Settings


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(Webhook()) as running:
        monkeypatch.setenv("PQ_HOOK", running.url)
        yield running


def run_in(home: Path, webhook: str = "PQ_HOOK", page: str = "") -> Run:
    settings = Settings(notify=NotifySettings(webhook=webhook, page=page))
    return Run(Options(repo="demo", home=str(home), jobs=1, settings=settings))


def report_new_tasks(run: Run) -> int:
    return notices.report_new_tasks(run, run.options.settings.notify)


def reported(run: Run) -> list[str]:
    return sorted(row.task_id[-1] for row in run.store.records(Notice, "demo"))


def test_each_task_once(tmp_path: Path, webhook: Webhook) -> None:
    run = run_in(tmp_path, page="http://review.example/")
    write(tmp_path / "tables", [task(1), task(2), task(3, accepted=False)])
    assert (report_new_tasks(run), report_new_tasks(run), len(webhook.messages)) == (2, 0, 2)
    write(tmp_path / "tables", [task(number, decision="second") for number in (1, 2, 3)])
    assert (report_new_tasks(run_in(tmp_path)), reported(run)) == (1, ["1", "2", "3"])
    text = webhook.messages[0]["text"]
    assert webhook.messages[0]["blocks"][0]["text"] == {"type": "mrkdwn", "text": text}
    assert "Make &lt;it&gt; 1× faster &amp; ∗better∗" in text and "1.50× [1.40×, 1.60×], δ 0.300" in text
    assert "<http://review.example/tasks/perfquarry__demo-0000000001|Review it>" in text


def test_faults_that_pass_are_waited_for(tmp_path: Path, webhook: Webhook) -> None:
    answers = [(429, {"Retry-After": "0"}), (503, {}), (200, {})]
    webhook.script = lambda number: answers[number]
    write(tmp_path / "tables", [task(1)])
    assert report_new_tasks(run_in(tmp_path)) == 1
    assert len(webhook.keys) == 3 and len(set(webhook.keys)) == 1


def test_what_is_refused_is_reported_by_the_next_run(
    tmp_path: Path, webhook: Webhook, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("perfquarry"), "propagate", True)
    webhook.script = lambda number: (404 if number == 0 else 200, {})
    write(tmp_path / "tables", [task(1), task(2)])
    run = run_in(tmp_path)
    with caplog.at_level(logging.DEBUG):
        assert (report_new_tasks(run), reported(run)) == (0, [])
        assert "answered 404" in caplog.text
        assert (report_new_tasks(run), reported(run)) == (2, ["1", "2"])
    assert "SECRET42" not in caplog.text


def test_a_killed_reporter(tmp_path: Path, webhook: Webhook) -> None:
    """Killed while the third of four messages is under way: the others are reported by the next, none of them twice."""
    webhook.script = lambda number: (time.sleep(30) if number == 2 else None, (200, {}))[1]
    write(tmp_path / "tables", [task(number) for number in range(4)])
    program = (
        "import sys; sys.path.insert(0, 'tests/system'); from pathlib import Path\n"
        "from test_notices import run_in, report_new_tasks\n"
        "report_new_tasks(run_in(Path(sys.argv[1])))"
    )
    reporting = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=Path(__file__).parents[2])
    while len(webhook.messages) < 3:
        assert reporting.poll() is None
        time.sleep(0.05)
    os.kill(reporting.pid, signal.SIGKILL)
    reporting.wait()
    run = run_in(tmp_path)
    assert reported(run) == ["0", "1"]
    webhook.script = lambda number: (200, {})
    assert (report_new_tasks(run), reported(run)) == (2, ["0", "1", "2", "3"])
    assert len(webhook.keys) == 5 and len(set(webhook.keys)) == 4  # the third's answer was never seen
    assert webhook.keys[2] == webhook.keys[3]


def test_an_address_in_the_settings_stays_secret(tmp_path: Path, webhook: Webhook) -> None:
    run = run_in(tmp_path, webhook.url)
    text = run.options.model_dump_json()
    assert "SECRET42" not in text and "SECRET42" not in repr(run)
    again = Run(Options.model_validate_json(text))  # as Prefect's database gives it back
    write(tmp_path / "tables", [task(1)])
    assert (report_new_tasks(again), len(webhook.messages)) == (1, 1)


@pytest.mark.parametrize(("value", "words"), [("", "not set"), ("ftp://x", "no http")])
def test_a_webhook_that_is_none(value: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQ_NONE", value)
    with pytest.raises(InputError, match=words):
        NotifySettings(webhook="PQ_NONE").address()
    assert NotifySettings().address() is None
