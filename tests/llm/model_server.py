"""A local server that speaks OpenAI's and Anthropic's wire formats, as strict about requests as they are."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.loopback import serve

MESSAGES_FIELDS = {
    "model", "messages", "max_tokens", "system", "output_config", "metadata", "service_tier", "stop_sequences",
    "stream", "thinking", "tool_choice", "tools",
}  # fmt: skip
"""Those of API version 2026-10-21; any other is refused."""


@dataclass
class Act:
    """What the server does with one request; `text` is the model's answer."""

    text: str = '{"verdict": "yes", "confidence": 0.5}'
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    """Half of the body, then the connection ends."""
    raw: str | None = None
    """In place of the body."""
    stop: str | None = None
    refusal: str | None = None
    error: str = "an error"
    code: str | None = None
    usage: tuple[int, int, int] = (120, 20, 30)
    """Prompt (cached included), cached, answer."""


@dataclass
class ModelServer:
    """`script` says what to do with the n-th request and its body."""

    script: Callable[[int, dict[str, Any]], Act] = lambda number, body: Act()
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of completions."""
    headers: list[dict[str, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    polls: int = 0
    ready_after: int = 1
    """Looks at a batch until it has ended."""
    most_at_once: int = 0
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def counted(self) -> Iterator[None]:
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            yield
        finally:
            with self._lock:
                self._at_once -= 1

    def act(self, body: dict[str, Any]) -> Act:
        with self._lock:
            self.asked.append(body)
            self.times.append(time.monotonic())
            return self.script(len(self.asked) - 1, body)


@contextmanager
def serving(server: ModelServer) -> Iterator[ModelServer]:
    with serve(Handler, model=server) as server.url:
        yield server


def openai_body(act: Act, model: str) -> dict[str, Any]:
    prompt, cached, out = act.usage
    message = {"role": "assistant", "content": None if act.refusal else act.text, "refusal": act.refusal}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": act.stop or "stop"}
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": out,
        "total_tokens": prompt + out,
        "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice],
        "usage": usage, "service_tier": "default",
    }  # fmt: skip


def anthropic_body(act: Act, model: str) -> dict[str, Any]:
    prompt, cached, out = act.usage
    content = [{"type": "thinking", "thinking": "", "signature": "x"}, {"type": "text", "text": act.text}]
    usage = {
        "input_tokens": prompt - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": out,
    }
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": act.stop or "end_turn", "stop_sequence": None, "usage": usage,
    }  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    model: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.model.headers.append({name.lower(): value for name, value in self.headers.items()})
        with self.model.counted():
            if self.path == "/v1/chat/completions":
                self.complete(json.loads(data), self.openai_complaint, openai_body)
            elif self.path == "/v1/messages":
                self.complete(json.loads(data), self.anthropic_complaint, anthropic_body)
            elif self.path == "/v1/files":
                text = data.split(b'filename="requests.jsonl"', 1)[1].split(b"\r\n\r\n", 1)[1].split(b"\r\n--", 1)[0]
                name = f"file-{len(self.model.files)}"
                self.model.files[name] = text.decode()
                self.say(200, self.file_object(name))
            elif self.path == "/v1/batches":
                wanted = json.loads(data)
                self.begin(
                    "batch", [json.loads(line) for line in self.model.files[wanted["input_file_id"]].splitlines()]
                )
            elif self.path == "/v1/messages/batches":
                self.begin("msgbatch", json.loads(data)["requests"])
            else:
                self.say(404, {"error": {"message": f"no {self.path}"}})

    def do_GET(self) -> None:
        if match := re.fullmatch(r"/v1/batches/(.+)", self.path):
            self.model.polls += 1
            self.say(200, self.openai_batch(match[1]))
        elif match := re.fullmatch(r"/v1/files/(.+)/content", self.path):
            self.send(200, self.model.files[match[1]].encode(), {"Content-Type": "application/octet-stream"})
        elif match := re.fullmatch(r"/v1/messages/batches/([^/]+)", self.path):
            self.model.polls += 1
            self.say(200, self.anthropic_batch(match[1]))
        elif match := re.fullmatch(r"/v1/messages/batches/([^/]+)/results", self.path):
            lines = [self.anthropic_result(one) for one in reversed(self.model.batches[match[1]]["requests"])]
            self.send(
                200,
                "".join(json.dumps(line) + "\n" for line in lines).encode(),
                {"Content-Type": "application/x-jsonl"},
            )
        else:
            self.say(404, {"error": {"message": f"no {self.path}"}})

    def complete(self, body: dict[str, Any], complaint: Callable[..., str | None], form: Callable[..., Any]) -> None:
        act = self.model.act(body)
        if wrong := complaint(body):
            act = Act(status=400, error=wrong)
        time.sleep(act.delay)
        if act.status == 200:
            value = form(act, body["model"])
        else:
            value = {
                "type": "error",
                "error": {"type": "invalid_request_error", "message": act.error, "code": act.code},
            }
        data = json.dumps(value).encode() if act.raw is None else act.raw.encode()
        self.send(act.status, data, {"Content-Type": "application/json", **act.headers}, cut=act.cut)

    @staticmethod
    def openai_complaint(body: dict[str, Any]) -> str | None:
        if form := body.get("response_format"):
            schema = form["json_schema"]["schema"]
            if set(schema["required"]) != set(schema["properties"]) or schema["additionalProperties"] is not False:
                return "Invalid schema for response_format"
        return None if body.get("messages") and body.get("model") else "messages and model are required"

    def anthropic_complaint(self, body: dict[str, Any]) -> str | None:
        if not self.headers.get("anthropic-version"):
            return "anthropic-version: header is required"
        if unknown := set(body) - MESSAGES_FIELDS:
            return f"{sorted(unknown)[0]}: Extra inputs are not permitted"
        return None if isinstance(body.get("max_tokens"), int) else "max_tokens: Field required"

    def begin(self, prefix: str, requests: list[dict[str, Any]]) -> None:
        name = f"{prefix}_{len(self.model.batches)}"
        self.model.batches[name] = {"requests": requests, "looks": 0}
        self.say(200, self.openai_batch(name) if prefix == "batch" else self.anthropic_batch(name))

    def ended(self, name: str) -> bool:
        batch = self.model.batches[name]
        batch["looks"] += 1
        return bool(batch["looks"] > self.model.ready_after)

    def openai_batch(self, name: str) -> dict[str, Any]:
        batch = self.model.batches[name]
        ended = self.ended(name)
        if ended and "output" not in batch:
            good, bad = [], []
            for line in reversed(batch["requests"]):
                assert line["method"] == "POST" and line["url"] == "/v1/chat/completions"
                act = self.model.act(line["body"])
                entry = {"id": "batch_req", "custom_id": line["custom_id"], "error": None}
                body = (
                    openai_body(act, line["body"]["model"]) if act.status == 200 else {"error": {"message": act.error}}
                )
                entry["response"] = {"status_code": act.status, "request_id": "r", "body": body}
                (good if act.status == 200 else bad).append(json.dumps(entry))
            batch["output"], batch["errors"] = f"out-{name}", f"err-{name}" if bad else None
            self.model.files |= {f"out-{name}": "\n".join(good) + "\n", f"err-{name}": "\n".join(bad)}
        return {
            "id": name, "object": "batch", "endpoint": "/v1/chat/completions", "errors": None, "created_at": 1,
            "status": "completed" if ended else "in_progress", "input_file_id": "file-0", "completion_window": "24h",
            "output_file_id": batch.get("output"), "error_file_id": batch.get("errors"),
        }  # fmt: skip

    def anthropic_batch(self, name: str) -> dict[str, Any]:
        ended = self.ended(name)
        counts = dict.fromkeys(("canceled", "errored", "expired", "processing", "succeeded"), 0)
        return {
            "id": name, "type": "message_batch", "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts, "created_at": "2026-11-21T00:00:00Z", "expires_at": "2026-11-22T00:00:00Z",
            "ended_at": None, "archived_at": None, "cancel_initiated_at": None,
            "results_url": f"{self.model.url}/v1/messages/batches/{name}/results" if ended else None,
        }  # fmt: skip

    def anthropic_result(self, entry: dict[str, Any]) -> dict[str, Any]:
        complaint = self.anthropic_complaint(entry["params"])
        act = self.model.act(entry["params"])
        if complaint or act.status != 200:
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": complaint or act.error}}
            return {"custom_id": entry["custom_id"], "result": {"type": "errored", "error": error}}
        message = anthropic_body(act, entry["params"]["model"])
        return {"custom_id": entry["custom_id"], "result": {"type": "succeeded", "message": message}}

    @staticmethod
    def file_object(name: str) -> dict[str, Any]:
        return {
            "id": name, "object": "file", "bytes": 1, "created_at": 1, "filename": "requests.jsonl", "purpose": "batch",
            "status": "processed",
        }  # fmt: skip

    def say(self, status: int, value: Any) -> None:
        self.send(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def send(self, status: int, data: bytes, headers: dict[str, str], *, cut: bool = False) -> None:
        try:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if cut else data)
            self.close_connection = self.close_connection or cut
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client's patience ended
