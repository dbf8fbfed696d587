"""From a reply to a validated answer, or to the request that asks for it again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeVar

from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

from perfquarry.llm.request import Message, Reply, Request

T = TypeVar("T", bound=BaseModel)

_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_ASK = "Answer with one JSON object of this schema, nothing else:"
_TRIES = 8
"""Places in a text where an object is looked for."""
_ERRORS = 12
"""Most errors that are sent back."""
_REPAIR_TEXT = 20_000
"""Most characters of a bad answer that are sent back."""


class Reading(NamedTuple):
    """What a reply is worth."""

    status: Literal["ok", "malformed", "refused"]
    value: BaseModel | None
    detail: str


def read(reply: Reply, model: type[BaseModel]) -> Reading:
    """Validates a reply: JSON alone, in a fence, or within other text. Never raises."""
    if reply.stop == "refusal":
        return Reading("refused", None, reply.text[:500] or "the model refused to answer")
    if reply.stop == "broken":
        return Reading("malformed", None, f"the server's response cannot be read: {reply.text[:200]}")
    problem = ""
    for candidate in _candidates(reply.text):
        try:
            return Reading("ok", model.model_validate_json(candidate), "")
        except ValidationError as error:
            problem = problem or _errors_in_words(error)
    if reply.stop == "length":
        problem = f"the answer was cut off at its most tokens: {problem}"
    return Reading("malformed", None, problem or "the answer is empty")


def problem_of(reply: Reply, schema: Mapping[str, Any]) -> str:
    """What keeps a reply from being an answer of this form; empty: nothing, or it is a refusal, which is one.

    For who has the request's text alone: `read` validates by the model, which may refuse more.
    """
    if reply.stop == "refusal":
        return ""
    problem = ""
    for candidate in _candidates(reply.text):
        try:
            errors = _faults(json.loads(candidate), schema)
        except (ValueError, RecursionError):
            problem = problem or "it is not JSON"
            continue
        if not errors:
            return ""
        problem = problem or "; ".join(errors)
    return problem or "the answer is empty"


def _faults(answer: Any, schema: Mapping[str, Any]) -> list[str]:
    """What of an answer is not as the form says; a field that may be null may be left out, whatever providers ask."""
    faults = []
    for error in Draft202012Validator(schema).iter_errors(answer):
        if error.validator == "required" and isinstance(error.schema, dict):
            fields = error.schema.get("properties", {})
            missing = [name for name in error.validator_value if name not in error.instance]
            if all({"type": "null"} in fields.get(name, {}).get("anyOf", []) for name in missing):
                continue
        place = ".".join(map(str, error.absolute_path))
        faults.append(f"{place}: {error.message[:200]}" if place else error.message[:200])
    return faults[:_ERRORS]


def repaired(request: Request[T], reply: Reply, detail: str) -> Request[T]:
    """The second round: what was answered, what is wrong with it, and the schema."""
    schema = json.dumps(request.answer.model_json_schema(), sort_keys=True)
    text = f"That is not a valid answer: {detail}\n{_ASK}\n{schema}"
    said = reply.text[:_REPAIR_TEXT].strip() or "(no answer)"
    more = (Message(role="assistant", text=said), Message(role="user", text=text))
    return replace(request, messages=(*request.messages, *more))


def in_words(request: Request[Any]) -> str:
    """The system text with the schema, for servers that do not take one."""
    schema = json.dumps(request.answer.model_json_schema(), sort_keys=True)
    return f"{request.system}\n\n{_ASK}\n{schema}".strip()


def _candidates(text: str) -> Iterator[str]:
    if not text.strip():
        return
    yield text
    yield from _FENCED.findall(text)[:_TRIES]
    decoder = json.JSONDecoder()
    at = -1
    for _ in range(_TRIES):
        at = text.find("{", at + 1)
        if at < 0:
            return
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        yield text[at:end]
        at = end - 1


def _errors_in_words(error: ValidationError) -> str:
    """The errors without the values, which are the model's words."""
    lines = []
    for one in error.errors(include_url=False, include_input=False, include_context=False)[:_ERRORS]:
        place = ".".join(str(part) for part in one["loc"])
        lines.append(f"{place}: {one['msg']}" if place else one["msg"])
    return "; ".join(lines)[:2000]
