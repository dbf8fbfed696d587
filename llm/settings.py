"""How models are reached, and what they cost."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from perfquarry.data.records.row import Record


class Price(Record):
    """What a model costs, USD per million tokens."""

    input: float = Field(ge=0, description="USD per million tokens of prompts.")
    cached_input: float | None = Field(default=None, ge=0, description="Null: as `input`.")
    output: float = Field(ge=0, description="USD per million tokens of answers.")
    up_to: int | None = Field(default=None, description="Longer prompts (tokens) have a price we do not know.")


class LlmSettings(Record):
    """How models are reached and what they may cost. Keys come from the environment, never from here."""

    base_url: str | None = Field(
        default=None,
        description="An OpenAI- or Anthropic-compatible server; null: OPENAI_BASE_URL, ANTHROPIC_BASE_URL.",
    )
    model: str = Field(default="any", description="Name written into requests of exchange mode.")
    batch: bool = Field(default=False, description="Use the provider's batch API: half the price, up to a day.")
    poll_seconds: float = Field(default=60.0, gt=0, description="Seconds between two looks at a batch.")
    concurrency: int = Field(default=8, ge=1, description="Calls at once, of one process.")
    requests_per_minute: float | None = Field(
        default=None, gt=0, description="Calls begun in a minute; null: no limit."
    )
    tokens_per_minute: float | None = Field(default=None, gt=0, description="Prompts (estimated), longest answers.")
    timeout: float = Field(default=600.0, gt=0, description="Seconds of one call.")
    retries: int = Field(default=6, ge=0, description="Of one call, after 408, 409, 429, 5xx and lost connections.")
    budget_usd: float | None = Field(
        default=None, ge=0, description="Most that the ledger of one repository may come to; null: no limit."
    )
    prices: dict[str, Price] = Field(default_factory=dict, description="By model; before those of llm/prices.toml.")
    record: str | None = Field(default=None, description="Folder of cassettes to which replies are also written.")

    @field_validator("base_url")
    @classmethod
    def _without_credentials(cls, address: str | None) -> str | None:
        if address and "@" in urlsplit(address).netloc:
            raise ValueError("no credentials in the address: set OPENAI_API_KEY or ANTHROPIC_API_KEY")
        return address
