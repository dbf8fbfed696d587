"""What `perfquarry pulls` does and shows."""

from __future__ import annotations

from rich.console import Console

from perfquarry.data.errors import InputError
from perfquarry.flows.display import showing
from perfquarry.flows.logs import log_to
from perfquarry.flows.options import Options
from perfquarry.flows.output import Listing, put
from perfquarry.flows.pulls import Crawled, Summary, crawl, reconstruct, summary
from perfquarry.flows.run import Run
from perfquarry.flows.runs import run_name
from perfquarry.flows.settings import Settings
from perfquarry.miners.pulls.policies import POLICIES
from perfquarry.miners.settings import PullSettings


def report(options: Options, policy: str | None, *, offline: bool, as_json: bool) -> None:
    """Reads pull requests into the tables, and shows how many each policy keeps.

    Raises:
        InputError: no such policy or repository.
        GithubFailed: GitHub cannot be reached or refuses.
    """
    options = options.model_copy(update={"settings": _with_policy(options.settings, policy)})
    run, console = Run.open(options.model_dump_json()), Console(stderr=as_json)
    log_to(run.home.logs, console, run_name(f"{run.name}-pulls"), run.name)
    with showing(console, silent=as_json):
        crawled = reconstruct(run) if offline else crawl(run)
    counts = summary(run)
    facts = {**counts.model_dump(), "run": crawled, "tables": str(run.home.tables)}
    more = f"{counts.issues} issues read; measurements quoted in {counts.with_results} discussions"
    place = f"Parquet: {run.home.tables}/pulls/repo={run.name}/"
    put(facts, [_crawl_in_words(crawled), _table(counts, policy), more, place], as_json=as_json)


def _with_policy(settings: Settings, policy: str | None) -> Settings:
    if policy is None:
        return settings
    if policy not in POLICIES:
        raise InputError(f"unknown policy {policy!r}: give one such as merged; known are {', '.join(POLICIES)}")
    changed = PullSettings.model_validate({**settings.pulls.model_dump(), "policy": policy})
    return settings.model_copy(update={"pulls": changed})


def _crawl_in_words(crawled: Crawled) -> str:
    if crawled.unchanged:
        return f"nothing new at {crawled.source} ({crawled.calls.get('not_modified', 0)} answers 'not modified')"
    if not crawled.calls:
        return f"{crawled.pulls} pull requests from {crawled.source} in {crawled.seconds} s"
    made = crawled.calls.get("graphql", 0) + crawled.calls.get("rest", 0)
    text = f"{crawled.pulls} pull requests and {crawled.issues} issues from {crawled.source}: {made} calls"
    if crawled.calls_one_by_one > made:
        text += f", {crawled.calls_one_by_one / made:.0f} times fewer than one each"
    waits = f", {crawled.waited:.0f} s of these for rate limits" if crawled.waited else ""
    return f"{text}, {crawled.calls.get('retried', 0)} retried, in {crawled.seconds} s{waits}"


def _table(counts: Summary, policy: str | None) -> Listing:
    states = ", ".join(f"{count} {state}" for state, count in counts.states.items()) or "none"
    table = Listing(
        ("policy", ">kept", "why the rest were rejected"), f"Pull requests of {counts.repository}: {states}"
    )
    for name, reasons in counts.policies.items():
        if policy in (None, "off", "all", name):
            others = ", ".join(f"{reason} {count}" for reason, count in reasons.items() if reason != "kept")
            table.add(name, str(reasons.get("kept", 0)), others)
    return table
