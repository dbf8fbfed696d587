"""Provider-neutral completions: requests in, validated answers out, each kept once and paid once (docs/llm.md)."""

from typing import Literal

By = Literal["stage", "change", "prompt"]
"""What the ledger is summed up by."""
