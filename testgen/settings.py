"""Settings of the search for workloads."""

from __future__ import annotations

from typing import ClassVar, get_args

from pydantic import Field, field_validator

from perfquarry.data.records.row import Record
from perfquarry.data.records.workload import Source
from perfquarry.data.settings import StageSettings


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
    rounds: int = Field(default=2, ge=1, description="Most rounds; from the second on, the model is shown what failed.")
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
    seconds: float = Field(default=60.0, description="No further test files are run after so many seconds.")
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
        default=90.0,
        gt=0,
        description="CPU seconds of running test files after which one usable test is enough, half of them in one run.",
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
