"""OpenAI's Chat Completions, as OpenAI, vLLM, Ollama and gateways speak them, and OpenAI's Batch API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from perfquarry.llm.answers import in_words
from perfquarry.llm.failures import about_the_text, words_of
from perfquarry.llm.request import Reply, Request, Stop, Usage
from perfquarry.llm.sdk import SdkProvider, environment
from perfquarry.llm.settings import LlmSettings

ENDPOINT: Final = "/v1/chat/completions"
DEFAULT = "https://api.openai.com/v1"
_STOPS: dict[str, Stop] = {"length": "length", "content_filter": "refusal"}


class OpenAIProvider(SdkProvider):
    """Raises InputError without a key."""

    name = "openai"
    droppable = {  # noqa: RUF012
        "max_completion_tokens": ("max_completion_tokens",),
        "max_tokens": ("max_tokens",),
        "response_format": ("response_format", "json_schema", "structured output", "guided"),
        "temperature": ("temperature",),
        "seed": ("seed",),
    }

    def __init__(self, settings: LlmSettings) -> None:
        super().__init__()
        import openai  # takes seconds: only where it is called or written for

        self.failures = (openai.OpenAIError,)
        key, self.where = environment(self.name, ["OPENAI_API_KEY"], DEFAULT, settings)
        if self.where != DEFAULT:  # servers that do not know it tend to pass over it, and answer without end
            self.unsupported = frozenset({"max_completion_tokens"})
        self._client = openai.OpenAI(
            api_key=key or "none", base_url=self.where, timeout=settings.timeout, max_retries=settings.retries
        )

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    @staticmethod
    def body(request: Request[Any], unsupported: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Strict structured output; without `response_format`, the schema stands in the system text."""
        plain = "response_format" in unsupported
        system = in_words(request) if plain else request.system
        messages = [{"role": "system", "content": system}] if system else []
        messages += [{"role": message.role, "content": message.text} for message in request.messages]
        older = "max_completion_tokens" in unsupported and "max_tokens" not in unsupported
        limit = "max_tokens" if older else "max_completion_tokens"
        body: dict[str, Any] = {"model": request.model, "messages": messages, limit: request.max_tokens}
        if not plain:
            import openai

            tool = openai.pydantic_function_tool(request.answer)["function"]
            schema = {"name": tool["name"], "strict": True, "schema": tool["parameters"]}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        for name, value in (("temperature", request.temperature), ("seed", request.seed)):
            if value is not None and name not in unsupported:
                body[name] = value
        return body

    @staticmethod
    def reply(body: Mapping[str, Any]) -> Reply:
        """The first choice of a chat completion."""
        try:
            choice = body["choices"][0]
            message, usage = choice["message"], body.get("usage") or {}
            tokens = Usage(
                input_tokens=usage.get("prompt_tokens") or 0,
                cached_tokens=(usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0,
                output_tokens=usage.get("completion_tokens") or 0,
            )
            refusal, stop = message.get("refusal"), _STOPS.get(choice.get("finish_reason"), "end")
            return Reply(
                text=refusal or message.get("content") or "",
                stop="refusal" if refusal else stop,
                model=body.get("model") or "",
                usage=tokens,
            )
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            return Reply(text=f"{type(error).__name__} in {words_of(body)}", stop="broken")

    @classmethod
    def line(cls, request: Request[Any]) -> dict[str, Any]:
        """The request as a line of a batch's input file."""
        return {"custom_id": request.address, "method": "POST", "url": ENDPOINT, "body": cls.body(request)}

    @classmethod
    def result(cls, line: Mapping[str, Any]) -> Reply | str:
        """The reply in a line of a batch's output or error file, or why there is none."""
        response = line.get("response")
        if not isinstance(response, Mapping):
            return words_of(line.get("error") or line)
        status = response.get("status_code", 200)
        if line.get("error") or status != 200:
            return about_the_text(status, response) or words_of(line.get("error") or response)
        return cls.reply(response.get("body") or {})

    def _post(self, body: dict[str, Any]) -> str:
        rest = {name: value for name, value in body.items() if name not in ("model", "messages")}
        completions = self._client.chat.completions.with_raw_response
        return completions.create(model=body["model"], messages=body["messages"], extra_body=rest).http_response.text

    def submit(self, requests: Sequence[Request[Any]]) -> str:
        """Uploads the input file and begins the batch."""
        text = "".join(json.dumps(self.line(request)) + "\n" for request in requests)

        def begin() -> str:
            file = self._client.files.create(file=("requests.jsonl", text.encode()), purpose="batch")
            batch = self._client.batches.create(input_file_id=file.id, endpoint=ENDPOINT, completion_window="24h")
            return batch.id

        return self._done("a batch", begin)

    def results(self, batch: str) -> dict[str, Reply | str] | None:
        """Output and error file of a batch that has ended; '' stands for lines that are in neither."""
        state = self._done(f"about batch {batch}", lambda: self._client.batches.retrieve(batch))
        if state.status in ("validating", "in_progress", "finalizing", "cancelling"):
            return None
        errors = [error.message for error in (state.errors.data or [])] if state.errors else []
        found: dict[str, Reply | str] = {"": words_of(f"batch {batch} is {state.status}: {errors}")}
        for file in filter(None, (state.output_file_id, state.error_file_id)):
            text = self._done(f"for file {file}", partial(self._client.files.content, file)).text
            for line in filter(str.strip, text.split("\n")):
                entry = json.loads(line)
                found[str(entry["custom_id"])] = self.result(entry)
        return found
