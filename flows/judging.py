"""The judge of a run, with the client of the model it asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flows.run import Run
from llm.client import ModelSpec, open_client
from miners.judge import Judge, make_judge, spec_of

AT_ONCE = 200
"""Changes whose questions are made before the first of them is asked, where answers come at once."""


@contextmanager
def judging(run: Run) -> Iterator[Judge]:
    """The judge that the settings name; its connections end with the context.

    Raises:
        InputError: no such judge or model, no key, no folder of cassettes.
    """
    settings, stamp = run.options.settings, run.stamp("judge")
    spec = spec_of(settings.judge)
    if spec is None:
        yield make_judge(settings.judge, stamp)
        return
    live = ModelSpec.parse(spec).kind in ("openai", "anthropic") and not settings.llm.batch
    with open_client(spec, run.home, run.store, stamp, settings.llm) as client:
        yield make_judge(settings.judge, stamp, client, run.clone, AT_ONCE if live else None)
