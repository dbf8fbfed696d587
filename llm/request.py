"""The vocabulary of the room: what is asked, what comes back, and who gives it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, Field

from perfquarry.data.records import Record

if TYPE_CHECKING:
    from perfquarry.llm.reply_store import ReplyStore

T = TypeVar("T", bound=BaseModel)


class Purpose(Record):
    """What a request is for: columns of the ledger. It is no part of the request's address."""

    stage: str
    change_id: str = ""
    prompt: str = ""
    prompt_version: str = ""
    prompt_hash: str = ""


class Message(Record):
    """One turn of a conversation."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Request(Generic[T]):
    """A question and the form of its answer."""

    messages: tuple[Message, ...]
    answer: type[T]
    """The pydantic model the answer is validated by; its JSON schema is sent along."""
    purpose: Purpose
    system: str = ""
    model: str = ""
    """Empty: the client's."""
    temperature: float | None = None
    """None: the server's default. Not sent to Anthropic, whose API refuses it since version 2026-10-21."""
    max_tokens: int = 4096
    """Most tokens of the answer, thinking included."""
    seed: int | None = None
    """Keeps samples of one question apart; sent to servers that know seeds."""

    @property
    def repair(self) -> bool:
        """Whether this is the second round, which shows the first answer and what is wrong with it."""
        return len(self.messages) > 1

    @property
    def address(self) -> str:
        """Content address of what is asked: 32 hexadecimal digits. Who is asked, and why, is no part of it."""
        parts = (
            self.system,
            [message.model_dump() for message in self.messages],
            self.answer.model_json_schema(),
            self.temperature,
            self.max_tokens,
            self.seed,
        )
        text = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def text(self) -> str:
        """All that the model reads, for estimates."""
        return "\n".join(
            [self.system, *(message.text for message in self.messages), json.dumps(self.answer.model_json_schema())]
        )


class Usage(Record):
    """Tokens as the provider counts them."""

    input_tokens: int = Field(default=0, ge=0, description="All of the prompt, `cached_tokens` included.")
    cached_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


Stop = Literal["end", "length", "refusal", "broken"]
"""Why a reply ends; 'broken': the server's response itself cannot be read."""


class Reply(Record):
    """What a model said, whatever it is worth."""

    text: str = ""
    stop: Stop = "end"
    model: str = Field(default="", description="The model's name as the server gives it.")
    usage: Usage = Usage()


class Got(NamedTuple):
    """A reply and how it was come by."""

    request: Request[Any]
    reply: Reply
    cached: bool
    cost_usd: float | None


@dataclass(frozen=True)
class Answer(Generic[T]):
    """The end of a question: a validated value, or why there is none. `usage` and `cost_usd` are of all rounds."""

    status: Literal["ok", "malformed", "refused"]
    value: T | None
    detail: str = ""
    """What is wrong with an answer that is not ok."""
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    """USD of this time; 0 from the cache, None where no price is known."""
    cached: bool = False
    """Nothing was called."""


class Backend(Protocol):
    """A way to get replies: calls, batches, exchanged files, cassettes."""

    name: str
    where: str
    caches: bool
    """Whether replies are worth a cache."""

    def collect(self, requests: Sequence[Request[Any]], reply_store: ReplyStore) -> Iterator[Got]:
        """Yields each reply once `reply_store` keeps it. Raises at the end when some could not be had."""

    def close(self) -> None:
        """Closes the connections."""
