"""`perfquarry curate`, and each of its stages alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfquarry.data.errors import AnswersAwaited, InputError
from perfquarry.data.output import Report, show
from perfquarry.flows.commands.shared import Asked, Json, Server, SomeRepo, app, with_options

if TYPE_CHECKING:
    from perfquarry.curation.judge_reports import JudgedLabels
    from perfquarry.flows.options import Options
    from perfquarry.miners.judge.labels import LabelRow

STAGES = {
    "curate": ("All stages: from a repository's history to verified tasks.", "curate demo"),
    "mine": ("Read the history into the table of changes.", "mine numpy --since 2023-01-01"),
    "build": ("Make both sides of the kept changes runnable.", "build numpy --limit 20"),
    "generate": (
        "Find workloads that execute changed lines: unit tests and scripts.",
        "generate numpy --workloads unit-test,asv",
    ),
    "measure": ("Time the workloads on both sides, which take turns on one core.", "measure numpy --for 2h"),
    "select": ("Decide which changes are verified improvements.", "select numpy"),
}
ALL = ("mine", "judge", "build", "generate", "measure", "select", "screen", "count")
"""Stages of `curate`, in their order."""


def _add(name: str, stages: Sequence[str], text: str, example: str) -> None:
    @app.command(name, example=example, help=text)
    @with_options()
    def command(asked: Asked, server: Server = True, as_json: Json = False) -> Report:
        options = asked()
        if options.tasks is not None and "select" not in stages:
            raise InputError(
                f"--tasks goes with curate: {name} accepts none; try perfquarry curate {asked.keywords['repo']}"
            )
        return _work(name, options, stages, with_server=server, as_json=as_json)


for _name, _words in STAGES.items():
    _add(_name, ALL if _name == "curate" else (_name,), *_words)


@app.command(example="judge numpy --limit 500")
@with_options(
    *("source", "since", "until", "changes", "limit", "judge", "workloads", "llm", "budget_usd"),
    *("home", "jobs", "settings"),
)
def judge(
    options: Asked,
    repo: SomeRepo = None,
    server: Server = True,
    count_tokens: Annotated[
        bool, typer.Option("--count-tokens", help="Show what models would cost; ask none.")
    ] = False,
    evaluate: Annotated[Path | None, typer.Option(help="Only compare with the labels of this Parquet file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="--evaluate: reliability plot to write (SVG).")] = None,
    as_json: Json = False,
) -> Report:
    """Judge which changes improve performance."""
    if (repo is None) == (evaluate is None) or (plot and not evaluate):
        raise InputError("give a repository to judge, or --evaluate LABELS.parquet (with --plot FILE.svg)")
    if evaluate:
        from perfquarry.curation.judge_reports import evaluation
        from perfquarry.miners.judge.labels import read_labels

        asked = options(repo="")
        found = _judged(asked, read_labels(evaluate))
        return evaluation(found, evaluate, plot, asked.place, asked.settings.judge)
    if count_tokens:
        who, llm = options.keywords["judge"], options.keywords["llm"]
        who = "cascade" if who == "heuristic" else who
        llm = llm or "exchange:nobody" if who == "cascade" else llm
        return _tokens(options(repo=repo, judge=who, llm=llm))
    return _work("judge", options(repo=repo), ["judge"], with_server=server, as_json=as_json)


def _judged(options: Options, labels: Sequence[LabelRow]) -> JudgedLabels:
    """What the judge says of labelled changes, each in its repository.

    Raises:
        InputError: a commit is not in its repository.
        PerfquarryError: the model could not be asked to the end; what was answered is kept.
    """
    from perfquarry.curation.judge_reports import JudgedLabels
    from perfquarry.flows.run import Run
    from perfquarry.miners.history import crawl

    by_repo: dict[tuple[str, str | None], dict[str, LabelRow]] = defaultdict(dict)
    for label in labels:
        if label.label is not None:
            by_repo[label.repo, label.source][label.sha] = label
    found, settings = JudgedLabels(), options.settings
    awaited: AnswersAwaited | None = None
    for (repo, source), by_sha in by_repo.items():
        own = options.model_copy(update={"repo": repo, "source": source or options.source})
        run = Run.open(own.model_dump_json())
        mined = crawl(run.clone, run.stamp("mine"), settings.mine, only=sorted(by_sha), places=run.places)
        try:
            with run.judging() as judge:
                found.add(judge, mined, by_sha, settings.llm)
        except AnswersAwaited as error:  # the other repositories' questions are to be written down, too
            awaited = awaited or error
    if awaited:
        raise awaited
    return found


def _tokens(options: Options) -> Report:
    """What models would cost for the mined history.

    Raises:
        InputError: nothing is mined, or no judge has that name.
    """
    from perfquarry.curation.judge_reports import prices
    from perfquarry.flows.run import Run
    from perfquarry.miners.judge import Questions, spec_of
    from perfquarry.miners.judge.bills import token_count
    from perfquarry.miners.pulls.joined import discussions

    run, settings = Run.open(options.model_dump_json()), options.settings
    spec = spec_of(settings.judge)
    if spec is None:
        raise InputError("the heuristic asks no model: add --judge cascade, or --judge openai:MODEL")
    questions = Questions(settings.judge, run.stamp("judge"), run.clone, discussions(run, run.clone, settings.pulls))
    count, sizes = token_count(run, questions, settings.judge, run.asked_for())
    if not count.changes:
        raise InputError(f"nothing of {run.name} in {run.home.tables}: run `perfquarry mine {options.repo}` first")
    return prices(count, sizes, spec, settings.llm)


def _work(name: str, options: Options, stages: Sequence[str], *, with_server: bool, as_json: bool) -> Report:
    if not as_json:
        show(f"{name:<9} {options.repo}, home {options.home}")
    from perfquarry.flows.work import work  # the rooms take seconds to import

    return work(options, stages, with_server=with_server, as_json=as_json)
