"""Settings of the stages: one model a stage; their hash is part of every row."""

from __future__ import annotations

import os
import re
from typing import ClassVar, Literal, get_args
from urllib.parse import urlsplit

from pydantic import ByteSize, Field, field_validator

from perfquarry.data.errors import InputError
from perfquarry.data.records.pull import Policy
from perfquarry.data.records.row import Record, content_id
from perfquarry.data.records.workload import Source


class StageSettings(Record):
    """Settings of one stage; equal settings have equal hashes on every machine."""

    UNHASHED: ClassVar[frozenset[str]] = frozenset()
    """Settings that decide how fast rows come, not what they say."""
    ADDED: ClassVar[frozenset[str]] = frozenset()
    """Settings younger than some homes: unhashed at their default, with which rows say what they said before."""

    def config_hash(self, *upstream: str) -> str:
        """Hash of the settings and of the hashes of the stages whose rows decide this stage's rows."""
        fields = type(self).model_fields
        unchanged = {name for name in self.ADDED if getattr(self, name) == fields[name].default}
        hashed = self.model_dump(mode="json", exclude=unchanged.union(self.UNHASHED))
        return content_id(type(self).__name__, hashed, *upstream)


class MineSettings(StageSettings):
    """What the crawl keeps of a diff."""

    patch_limit: int = Field(default=64 * 1024, description="Bytes of source diff kept per change.")
    diff_limit: int = Field(default=16 * 1024 * 1024, description="Bytes of one diff read before it is passed over.")


class PullSettings(StageSettings):
    """Pull requests: how they are crawled, and which of them go on (docs/pulls.md)."""

    policy: Policy = Field(
        default="off",
        description="What `mine` makes of them: 'off' nothing; 'all' one change a pull request, and other commits; "
        "only pull requests that are 'merged', 'labelled' as performance, resolve an issue ('sweperf'), and have tests "
        "too ('swebench').",
    )
    labels: str = Field(
        default=r"perf|optimi[sz]|speed|slow|efficien|\bbenchmark",
        description="Expression found in labels of 'labelled'.",
    )
    base_url: str = Field(default="", description="Of the REST API; empty: that of the repository's host.")
    codebase: str = Field(default="", description="'owner/name'; empty: the registry's or the URL's.")
    page_size: int = Field(default=50, ge=1, le=100, description="Pull requests asked for at once.")
    most: int = Field(default=1000, ge=1, description="Commits, files, comments, … read of one pull request or issue.")
    timeout: int = Field(default=60, ge=1, description="Seconds of one call.")
    retries: int = Field(default=8, ge=0, description="Of one call, after 5xx, broken answers and lost connections.")
    backoff: float = Field(
        default=0.5, gt=0, description="Seconds before the first retry; doubled with each, up to 60."
    )
    secondary_wait: float = Field(
        default=60.0,
        gt=0,
        description="Seconds after a secondary limit that names no time; doubled with each in a row.",
    )
    longest_wait: float = Field(default=3900.0, gt=0, description="Seconds a rate limit is waited for at most.")
    UNHASHED: ClassVar[frozenset[str]] = frozenset(
        {"policy", "labels", "page_size", "timeout", "retries", "backoff", "secondary_wait", "longest_wait"}
    )

    @field_validator("labels")
    @classmethod
    def _compiles(cls, labels: str) -> str:
        try:
            re.compile(labels)
        except re.error as error:
            raise ValueError(f"{labels!r} is no regular expression: {error}") from error
        return labels

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, address: str) -> str:
        parts = urlsplit(address)
        if address and (parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc):
            raise ValueError("not an http(s) address without credentials: set GITHUB_TOKEN for these")
        return address.rstrip("/")

    def selection(self) -> tuple[str, ...]:
        """What of it decides the rows of `mine` and `judge`; nothing while the policy is off."""
        if self.policy == "off":
            return ()
        return (content_id("pulls", self.policy, self.labels if self.policy == "labelled" else ""),)


class JudgeSettings(StageSettings):
    """Which judge, and from which probability on a change goes on."""

    judge: str = Field(default="heuristic", description="Who judges; `--judge` sets it.")
    keep_from: float = Field(default=0.03, description="Smallest probability of the heuristic that goes on (unsure).")
    yes_from: float = Field(default=0.5, description="Smallest probability that is called yes.")
    model: str = Field(default="", description="Who answers for the cascade: 'openai:MODEL', 'exchange:DIR', …")
    ask_from: float = Field(default=0.03, description="Cascade: smallest probability of the heuristic that is asked.")
    ask_below: float = Field(default=0.9, description="Cascade: from this probability on a change goes on unasked.")
    model_keep_from: float = Field(default=0.3, description="Smallest probability by a model that goes on.")
    votes: int = Field(default=3, ge=1, description="Answers taken where the first is unsure.")
    sure_from: float = Field(
        default=0.75, description="Smallest confidence of a first answer that needs no more votes."
    )
    context_tokens: int = Field(default=8000, ge=500, description="Most tokens of a change that a model is shown.")
    answer_tokens: int = Field(default=4000, ge=100, description="Most tokens of an answer, thinking included.")
    slope: float = Field(default=1.0, description="Of the calibration of a model's log-odds (`judge --evaluate`).")
    intercept: float = Field(default=0.0, description="Of the same.")
    ADDED: ClassVar[frozenset[str]] = frozenset(
        {
            "model", "ask_from", "ask_below", "model_keep_from", "votes", "sure_from", "context_tokens",
            "answer_tokens", "slope", "intercept",
        }
    )  # fmt: skip


class BuildSettings(StageSettings):
    """Limits of a build."""

    timeout: float = Field(default=1800.0, description="Wall seconds of one build command.")
    memory_bytes: int = Field(default=8 * 1024**3, description="Memory of one process, bytes.")
    attempts: int = Field(default=6, description="Times a change is tried at most, each after another repair.")
    attempts_seconds: float = Field(default=3600.0, description="No further attempt is begun after so many seconds.")
    system_packages: bool = Field(default=False, description="Whether root may install missing Debian packages.")
    collected_files: int = Field(default=5, description="Test files near the change that should be collectable.")
    repair_model: str = Field(
        default="", description="Asked when no rule of repair fits: 'openai:MODEL', 'exchange:DIR', … Empty: nobody."
    )
    jobs: int = Field(default=2, ge=1, description="Processes of one build at once.")
    UNHASHED: ClassVar[frozenset[str]] = frozenset({"jobs"})
    ADDED: ClassVar[frozenset[str]] = frozenset({"repair_model"})


class ScriptSettings(Record):
    """What a script workload (asv, generated, replay) must be like."""

    min_seconds: float = Field(default=1e-3, description="Shortest call of `experiment` on the base.")
    max_seconds: float = Field(default=2.0, description="Longest call of `experiment` on the base.")
    max_setup_seconds: float = Field(default=0.25, description="Longest `setup`: it is called before each call.")
    code_bytes: int = Field(default=64 * 1024, description="Largest text.")
    result_bytes: int = Field(default=16 * 1024**2, description="Largest stored result.")
    cached_share: float = Field(
        default=0.9, description="Share of the first call's work that later calls on one side save: then it is cached."
    )


class GeneratedSettings(Record):
    """How a model is asked for performance tests (docs/generated.md)."""

    model: str = Field(default="", description="Who writes them: 'openai:MODEL', 'exchange:DIR', … (docs/llm.md).")
    samples: int = Field(default=6, ge=1, description="Scripts asked for in a round.")
    rounds: int = Field(default=2, ge=1, description="Most rounds; from the second on, the model is told what failed.")
    wanted: int = Field(default=5, ge=1, description="Most scripts kept; with so many, no further round.")
    held_out: int = Field(default=2, ge=0, description="Of those kept, how many are hidden tests; one stays visible.")
    context_tokens: int = Field(
        default=12_000, ge=500, description="Tokens of the repository's text in the first round; twice in the second, …"
    )
    answer_tokens: int = Field(default=16_000, ge=500, description="Most tokens of one answer, thinking included.")


class AsvSettings(Record):
    """Which benchmarks of a repository's asv suite are tried."""

    benchmarks: int = Field(default=8, description="Benchmarks tried, those nearest to the change first.")
    combinations: int = Field(default=3, description="Combinations of parameters tried of each.")
    sample_seconds: float = Field(default=5e-3, gt=0, description="What is shorter is called more than once a sample.")
    workloads: int = Field(default=6, description="Workloads kept.")


class ReplaySettings(Record):
    """How calls are recorded while unit tests run, and which scripts replay them."""

    functions: int = Field(
        default=6, description="Functions replayed at most: those whose calls hit most of the change."
    )
    calls: int = Field(default=24, description="Calls recorded of one function.")
    test_calls: int = Field(default=6, description="Calls recorded of one function in one test.")
    values: int = Field(default=5000, description="Values in the arguments of one call.")
    call_bytes: int = Field(default=32 * 1024, description="Longest description of the arguments of one call.")
    seconds: float = Field(default=120.0, description="No further test files are run after so many seconds.")
    test_seconds: float = Field(default=5.0, description="Seconds of recording in one test.")
    factors: tuple[int, ...] = Field(default=(8, 64, 512), description="How much larger scaled arguments are.")
    wanted_seconds: float = Field(default=0.01, description="Seconds that rounds of the calls should last on the base.")
    call_seconds: float = Field(default=0.25, description="Longest scaled call on the base.")
    max_calls: int = Field(default=10_000, description="Calls made in one `experiment`.")
    max_scripts: int = Field(default=12, description="Scripts tried for a change.")


class GenerateSettings(StageSettings):
    """Where workloads come from, and how they are chosen."""

    source: str = Field(default="unit-test", description="Sources of workloads, separated by commas.")
    then: str = Field(
        default="asv,replay", description="Sources asked one after the other while none before them may show a gain."
    )
    enough_share: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="Share of a unit test's time in the changed functions that may show a gain.",
    )
    repeats: int = Field(default=3, description="Times a test must pass on each side.")
    timeout: float = Field(default=300.0, description="Wall seconds of one run of test files.")
    test_timeout: float = Field(default=20.0, description="Seconds of one call of one test; slower ones are left out.")
    max_test_files: int = Field(default=20, description="Test files tried, nearest to the changed modules first.")
    search_seconds: float = Field(
        default=90.0, gt=0, description="CPU seconds of running test files after which one usable test is enough."
    )
    max_workloads: int = Field(default=12, description="Tests kept: those that spend most time in the change.")
    memory_bytes: int = Field(default=4 * 1024**3, description="Memory of one process, bytes.")
    scripts: ScriptSettings = ScriptSettings()
    asv: AsvSettings = AsvSettings()
    replay: ReplaySettings = ReplaySettings()
    generated: GeneratedSettings = GeneratedSettings()
    ADDED: ClassVar[frozenset[str]] = frozenset({"scripts", "asv", "replay", "generated", "search_seconds"})
    UNHASHED: ClassVar[frozenset[str]] = frozenset({"then", "enough_share"})  # what was searched is not searched again

    def config_hash(self, *upstream: str) -> str:
        """As of every stage; how scripts are generated counts where they are asked for from the start."""
        if "generated" in self.sources:
            return super().config_hash(*upstream)
        plain = self.model_copy(update={"generated": GeneratedSettings()})
        return super(GenerateSettings, plain).config_hash(*upstream)

    @field_validator("source")
    @classmethod
    def _in_one_order(cls, source: str) -> str:
        """Each name once, in the order of `Source`, so that equal choices have equal hashes."""
        known = get_args(Source)
        names = {name.strip() for name in source.split(",") if name.strip()}
        return ",".join([name for name in known if name in names] + sorted(names.difference(known)))

    @property
    def sources(self) -> list[str]:
        """Names of the sources of workloads; not all need to exist."""
        return self.source.split(",")

    @property
    def further(self) -> list[str]:
        """Names of the sources that are asked where those show nothing, in their order."""
        names = dict.fromkeys(name.strip() for name in self.then.split(","))
        return [name for name in names if name and name not in self.sources]


class MeasureSettings(StageSettings):
    """The schedule of a session (docs/statistics.md)."""

    pairs: int = Field(default=6, ge=6, description="Pairs of processes of a session, at least.")
    max_pairs: int = Field(default=24, ge=6, description="Pairs of processes of a session, at most.")
    aa_every: int = Field(default=2, ge=1, description="Every so manieth pair has a second process of the base.")
    warmups: int = Field(default=3, ge=1, description="Untimed calls first in each process; one of slow workloads.")
    turn_seconds: float = Field(
        default=0.25, gt=0, description="Seconds that the turns of one side last in a pair, fixtures included."
    )
    fewest_turns: int = Field(default=5, ge=1, description="Timed calls of a side in a pair, at least.")
    most_turns: int = Field(default=320, ge=1, description="Timed calls of a side in a pair, at most.")
    turn_error: float = Field(
        default=0.008, ge=0, description="Standard error (log) of a pair's ratio at which it takes no more turns."
    )
    call_seconds: float = Field(default=60.0, gt=0, description="Limit of one call.")
    max_process_seconds: float = Field(
        default=60.0, gt=0, description="Seconds to load the workloads, and for each of them as many again."
    )
    memory_bytes: int = Field(default=4 * 1024**3, description="Memory of one process, bytes.")
    copy_bytes: int = Field(
        default=1024**3, description="Largest tree of which a second copy is made for base against base."
    )
    fresh_seconds: float = Field(
        default=0.05, description="Seconds of timed calls in a process of its own, for what cannot live beside others."
    )
    seed: int = Field(default=20261121, description="Seed of the orders and hash seeds.")
    max_workloads: int = Field(
        default=12, ge=1, description="Workloads of a change that are timed: of each source and role in turn."
    )


class SelectSettings(StageSettings):
    """Thresholds of acceptance (docs/statistics.md)."""

    min_gain: float = Field(default=0.03, gt=0, lt=1, description="Smallest relative gain worth a task.")
    min_hold: float = Field(
        default=0.95, gt=0, lt=1, description="Smallest predicted probability that a second look shows the gain."
    )
    occasion: float = Field(
        default=0.005, ge=0, description="What a look differs by (standard deviation, log) that no pair of it shows."
    )
    relative_occasion: float = Field(
        default=0.03,
        ge=0,
        description="As much again for each unit of the effect (log): a gain depends on how fast the machine runs.",
    )
    precision: float = Field(
        default=0.0125, gt=0, description="Half of the interval (log) at which a workload needs no more pairs."
    )
    relative_precision: float = Field(
        default=0.1, ge=0, description="The same as a share of the effect (log), where that is more."
    )
    min_pairs: int = Field(default=6, ge=6, description="Fewest pairs of processes a session needs to decide.")
    max_q: float = Field(default=0.05, description="Largest q-value (Benjamini-Hochberg).")
    alpha: float = Field(default=0.1, description="Level of the test in δ (SWE-Perf).")
    max_aa_delta: float = Field(default=0.02, description="A/A δ above it rejects the workload as unstable.")
    aa_alpha: float = Field(default=0.005, description="Level of the test in A/A δ: its few pairs are tested often.")
    cold_alpha: float = Field(default=0.01, description="Level in the first calls' δ: no second session confirms it.")
    cold_gain: float = Field(default=0.05, description="Smallest δ of first calls that is noted.")


class ScreenSettings(StageSettings):
    """What screening notes of a task (docs/screening.md)."""

    near_patch: float = Field(default=0.8, description="Share of changed lines two patches have in common: near-dup.")
    window_days: float = Field(default=60.0, description="Tasks on the same functions within so many days are noted.")
    same_functions: float = Field(default=0.5, description="Share of functions (Jaccard) that counts as the same.")
    short_seconds: float = Field(default=1e-4, description="Calls shorter than that are noted as too short.")
    dominant_share: float = Field(default=0.8, description="Share of the whole log gain that one workload may have.")
    rounds: int = Field(default=3, ge=1, description="Pairs of processes, plain and altered, of a timed check.")
    calls: int = Field(default=5, ge=2, description="Timed calls a process of such a pair.")
    memo_gain: float = Field(default=1.2, gt=1, description="Speedup by a mere memo, in every round, that is noted.")
    functions: int = Field(default=6, ge=1, description="Targets broken one by one, those called most often first.")
    process_seconds: float = Field(default=120.0, description="Wall limit of one process.")
    memory_bytes: int = Field(default=4 * 1024**3, description="Memory of one process, bytes.")


class CountSettings(StageSettings):
    """How instructions are counted (docs/counts.md)."""

    seeds: tuple[int, ...] = Field(
        default=(1, 2, 3), min_length=1, max_length=32, description="Hash seeds; for each, one process a side."
    )
    warmups: int = Field(default=3, ge=1, description="Uncounted calls first.")
    calls: int = Field(default=4, ge=1, description="Counted calls of a process; their median counts.")
    touched: float = Field(default=0.005, gt=0, description="From this |log ratio| on, functions are counted, too.")
    functions: int = Field(default=24, ge=0, description="Functions that are kept of a workload.")
    process_seconds: float = Field(default=600.0, gt=0, description="Wall limit of one process.")
    memory_bytes: int = Field(default=8 * 1024**3, description="Memory of one process, bytes.")
    UNHASHED: ClassVar[frozenset[str]] = frozenset({"process_seconds", "memory_bytes"})

    @field_validator("seeds")
    @classmethod
    def _seeds(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) < len(seeds) or not all(0 <= seed < 2**32 for seed in seeds):
            raise ValueError("hash seeds are different numbers from 0 to 4294967295")
        return seeds


class ResourceSettings(Record):
    """What a run may use of this machine: no row depends on it, so no hash has it."""

    disk: ByteSize | None = Field(
        default=None,
        description="Disk of environments, trees, artifacts and build folders together, such as '30GiB'; what was used "
        "longest ago goes first. None: PERFQUARRY_DISK_BUDGET, else 20 GiB or half of what the disk offers.",
    )
    lease_seconds: float = Field(
        default=60.0,
        gt=0,
        description="After so long without a sign, a worker's claims go to others (docs/workers.md).",
    )


class SandboxSettings(Record):
    """Where strangers' code runs. It decides no row, so it is in no hash; timings name their sandbox themselves."""

    name: Literal["bubblewrap", "docker", "process"] | None = Field(
        default=None, description="Null: the strongest that works on this machine."
    )
    image: str = Field(default="", description="docker: a local image with a shell; empty: our own base image.")


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


_ADDRESSES: dict[str, str] = {}
"""Addresses of webhooks as the settings gave them, by what stands for them: in this process only."""


class NotifySettings(Record):
    """Whom a run tells of newly accepted tasks and of its failure. It decides no row, so it is in no hash.

    An address is a secret: what stands for it in this record may be written down, it itself may not.
    """

    webhook: str = Field(
        default="", description="Environment variable that holds the webhook's address, or the address. Empty: nobody."
    )
    page: str = Field(default="", description="Address of the review page, for links in messages.")

    @field_validator("webhook")
    @classmethod
    def _hidden(cls, webhook: str) -> str:
        if "://" not in webhook:
            return webhook
        hidden = f"address:{content_id(webhook)}"
        _ADDRESSES[hidden] = webhook
        return hidden

    def address(self) -> str | None:
        """The webhook's address, never to be shown or written; None: nobody is told.

        Raises:
            InputError: the variable is not set, or holds no http address.
        """
        if not self.webhook:
            return None
        found = _ADDRESSES.get(self.webhook) or os.environ.get(self.webhook, "")
        if not found:
            raise InputError(f"[notify] webhook names the environment variable {self.webhook}, which is not set")
        if urlsplit(found).scheme not in ("http", "https"):
            raise InputError("[notify] webhook holds no http or https address")
        return found


class Settings(Record):
    """All stages' settings of one run, and where they run code."""

    mine: MineSettings = MineSettings()
    pulls: PullSettings = PullSettings()
    judge: JudgeSettings = JudgeSettings()
    build: BuildSettings = BuildSettings()
    generate: GenerateSettings = GenerateSettings()
    measure: MeasureSettings = MeasureSettings()
    select: SelectSettings = SelectSettings()
    screen: ScreenSettings = ScreenSettings()
    count: CountSettings = CountSettings()
    resources: ResourceSettings = ResourceSettings()
    sandbox: SandboxSettings = SandboxSettings()
    llm: LlmSettings = LlmSettings()
    notify: NotifySettings = NotifySettings()
