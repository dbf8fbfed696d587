"""Table `llm_calls`: the ledger of what was asked of models and what it cost."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from perfquarry.data.records.row import Row

CallMode = Literal["live", "batch", "exchange", "cassette", "cache"]


class LlmCall(Row):
    """One reply of a model, or one use of a kept reply (mode 'cache'). A repair is a call of its own.

    `status` is rejected for replies that are no answer; the reason is 'malformed' or 'refused'.
    """

    TABLE: ClassVar[str] = "llm_calls"
    KEY: ClassVar[tuple[str, ...]] = ("call_id",)

    call_id: str = Field(description="New for every call that is paid; else of the request, the stage and the change.")
    address: str = Field(description="Content address of what was asked (`llm.Request.address`).")
    stage: str
    change_id: str = ""
    prompt: str = Field(default="", description="Name of the prompt's template.")
    prompt_version: str = ""
    prompt_hash: str = Field(default="", description="Content address of the template's file.")
    provider: str = Field(description="'openai', 'anthropic', 'exchange', 'cassette'.")
    model: str
    mode: CallMode
    cached: bool = Field(default=False, description="Answered without a call: from the cache or a cassette.")
    repair: bool = Field(default=False, description="The second round, which sends back what was wrong.")
    input_tokens: int = Field(default=0, description="All tokens of the prompt, those in `cached_tokens` included.")
    cached_tokens: int = Field(default=0, description="Tokens of the prompt the provider had in its own cache.")
    output_tokens: int = 0
    cost_usd: float | None = Field(
        default=None,
        description="0 for cached calls; the upper bound where the server gave no usage; null where no price is known.",
    )
    detail: str = Field(default="", description="What is wrong with a rejected reply.")
