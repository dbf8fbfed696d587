"""Anthropic's Messages and Message Batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfquarry.llm.answers import in_words
from perfquarry.llm.failures import about_the_text, words_of
from perfquarry.llm.request import Reply, Request, Stop, Usage
from perfquarry.llm.sdk import SdkProvider, environment
from perfquarry.llm.settings import LlmSettings

DEFAULT = "https://api.anthropic.com"
_STOPS: dict[str, Stop] = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refusal"}


class AnthropicProvider(SdkProvider):
    """Raises InputError without a key. Temperature and seed are not sent: API version 2026-10-21 refuses them."""

    name = "anthropic"
    droppable = {"output_config": ("output_config", "json_schema", "structured output")}  # noqa: RUF012

    def __init__(self, settings: LlmSettings) -> None:
        super().__init__()
        import anthropic  # takes seconds: only where it is called or written for

        self.failures = (anthropic.AnthropicError,)
        keys = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"]
        key, self.where = environment(self.name, keys, DEFAULT, settings)
        self._client = anthropic.Anthropic(
            api_key="none" if key is None else None,  # None: the SDK takes the key or token of the environment itself
            base_url=self.where,
            timeout=settings.timeout,
            max_retries=settings.retries,
        )

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    @staticmethod
    def body(request: Request[Any], unsupported: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Structured output; without `output_config`, the schema stands in the system text."""
        plain = "output_config" in unsupported
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_tokens,
            "messages": [{"role": message.role, "content": message.text} for message in request.messages],
        }
        if system := in_words(request) if plain else request.system:
            body["system"] = system
        if not plain:
            import anthropic

            schema = anthropic.transform_schema(request.answer)
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return body

    @staticmethod
    def reply(body: Mapping[str, Any]) -> Reply:
        """The text blocks of a message; thinking is left out."""
        try:
            usage = body.get("usage") or {}
            cached = usage.get("cache_read_input_tokens") or 0
            written = usage.get("cache_creation_input_tokens") or 0
            return Reply(
                text="".join(block["text"] for block in body["content"] if block["type"] == "text"),
                stop=_STOPS.get(body.get("stop_reason") or "", "end"),
                model=body.get("model") or "",
                usage=Usage(
                    input_tokens=(usage.get("input_tokens") or 0) + cached + written,
                    cached_tokens=cached,
                    output_tokens=usage.get("output_tokens") or 0,
                ),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            return Reply(text=f"{type(error).__name__} in {words_of(body)}", stop="broken")

    @classmethod
    def line(cls, request: Request[Any]) -> dict[str, Any]:
        """The request as an entry of a batch."""
        return {"custom_id": request.address, "params": cls.body(request)}

    @classmethod
    def result(cls, line: Mapping[str, Any]) -> Reply | str:
        """The reply in a line of a batch's results, or why there is none."""
        result = line.get("result") or {}
        if result.get("type") != "succeeded":
            return about_the_text(400, result) or words_of(result)
        return cls.reply(result.get("message") or {})

    def _post(self, body: dict[str, Any]) -> str:
        rest = {name: value for name, value in body.items() if name not in ("model", "messages", "max_tokens")}
        response = self._client.messages.with_raw_response.create(
            model=body["model"], messages=body["messages"], max_tokens=body["max_tokens"], extra_body=rest
        )
        return response.http_response.text

    def submit(self, requests: Sequence[Request[Any]]) -> str:
        """Begins the batch."""
        lines: list[Any] = [self.line(request) for request in requests]
        return self._done("a batch", lambda: self._client.messages.batches.create(requests=lines).id)

    def results(self, batch: str) -> dict[str, Reply | str] | None:
        """Results of a batch that has ended."""
        state = self._done(f"about batch {batch}", lambda: self._client.messages.batches.retrieve(batch))
        if state.processing_status != "ended":
            return None
        lines = self._done(f"for batch {batch}", lambda: list(self._client.messages.batches.results(batch)))
        return {line.custom_id: self.result(line.to_dict()) for line in lines}
