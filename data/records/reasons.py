"""The codes with which stages reject, by stage, with what each means."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """Why a stage did not keep a change or a workload. The value is what the tables and the funnel show."""

    meaning: str
    """One line for people: what the funnel and `show` print."""

    def __new__(cls, value: str, meaning: str = "") -> Self:
        """Its value is the code alone. Each has a meaning: the default is for who looks one up by its code."""
        reason = str.__new__(cls, value)
        reason._value_, reason.meaning = value, meaning
        return reason

    # mine
    ROOT_COMMIT = "root_commit", "the commit has no parent, so there is no base"
    EMPTY_DIFF = "empty_diff", "base and head have the same tree"
    MISSING_OBJECTS = "missing_objects", "objects of the base or the head are missing in the clone"
    DIFF_TOO_LARGE = "diff_too_large", "the diff is larger than the crawl reads"
    PART_OF_PULL = "part_of_pull_request", "the commit came with a pull request, which is a change of its own"
    NO_PULL = "no_pull_request", "no pull request brought the commit"
    NOT_MERGED = "not_merged", "the pull request was not merged"
    NO_ISSUE = "resolves_no_issue", "the pull request resolves no issue"
    NO_LABEL = "no_performance_label", "the pull request has no label that speaks of performance"
    NO_PATCH = "no_source_file", "the pull request changes no source file"
    NO_TEST_PATCH = "no_test_file", "the pull request changes no test file"
    NO_SUCH_ISSUE = "no_such_issue", "the number stands for no issue of the repository"
    # judge
    NO_SOURCE_CHANGE = "no_source_change", "only tests, docs, build files or generated files changed"
    RENAME_ONLY = "rename_only", "files were moved, their contents stayed"
    COMMENTS_ONLY = "comments_only", "only comments, docstrings, white space or the version's number changed"
    REVERT = "revert", "the change undoes an earlier one"
    UNLIKELY = "unlikely_performance", "the judge's probability is below the threshold"
    IN_DISGUISE = "in_disguise", "it speaks of performance and is a fix, a feature or a refactoring"
    NOT_ON_CPU = "not_on_cpu", "its gain cannot be shown on a CPU"
    SAME_PATCH = (
        "same_patch_as_a_commit",
        "an earlier commit, or the only one that the merge brought, is a change of its own with the same patch",
    )
    NO_STATEMENT = (
        "no_statement_changed",
        "no statement of a function changed, and nothing that is compiled: no workload could execute it",
    )
    # build
    SYNTAX_ERROR_BASE = "syntax_error_at_base", "a changed source file does not parse at the base"
    SYNTAX_ERROR_HEAD = "syntax_error_at_head", "a changed source file does not parse at the head"
    NEEDS_PYTHON_2 = (
        "needs_python_2",
        "the code is Python 2's, or made for 2to3: no interpreter from 3.6 on runs it as it stands",
    )
    NO_INTERPRETER = "no_interpreter", "no installed interpreter fits the commit's range of Python versions"
    RESOLUTION_FAILED = "dependencies_not_resolvable", "the dependencies of that date cannot be installed together"
    BUILD_FAILED = "build_failed", "a build command ended with an error"
    SUBMODULE_MISSING = "submodule_missing", "a build command ended with an error, and the clone has not all submodules"
    BUILD_TIMEOUT = "build_timeout", "a build command did not end within its limit"
    IMPORT_FAILED = "import_failed", "the built package cannot be imported"
    SYSTEM_PACKAGE_MISSING = (
        "system_package_missing",
        "a header, library or program is missing; the log names the Debian package",
    )
    # generate
    EXPECTATIONS_CHANGED = (
        "tests_expect_other_results",
        "the change edits the values that its tests expect: it alters behaviour",
    )
    NO_TESTS = "no_tests", "the repository has no test file at that commit that can reach the change"
    NO_TEST_EXECUTES_CHANGE = "no_test_executes_change", "tests ran, but none executes a changed line"
    TEST_CHANGED = "test_modified_by_change", "the tests that execute the change are themselves modified by it"
    FAILS_ON_BASE = "tests_fail_at_base", "the tests that execute the change fail at the base"
    FAILS_ON_HEAD = "tests_fail_at_head", "the tests that execute the change pass at the base and fail at the head"
    FLAKY = "flaky", "the tests do not pass every time"
    TEST_TIMEOUT = "test_timeout", "the tests did not end within their limit"
    NEEDS_FILE = "test_needs_a_file", "the tests that may execute the change look for a file that is not there"
    NEEDS_TREE = (
        "test_writes_into_tree",
        "the tests that may execute the change write into the repository's own folders",
    )
    NEEDS_SERVICE = "test_needs_a_service", "the tests that may execute the change need the network or a server"
    UNPARSABLE = "does_not_parse", "the script does not parse"
    CONTRACT_BROKEN = "contract_broken", "one of the six functions is missing in the script, or has other parameters"
    UNDEFINED_NAME = "undefined_name", "the script uses a name that it does not define"
    USES_NETWORK = "uses_network", "the script uses the network"
    USES_TIME = "uses_time", "the script's work or result depends on the time of day"
    USES_RANDOMNESS = "uses_unseeded_randomness", "the script draws random numbers without a seed"
    USES_PRIVATE_API = "uses_private_api", "the script uses private names of the package"
    USES_PICKLE = "uses_pickle", "the script stores or loads results in a format that can run code"
    MODULE_MISSING = "module_missing", "the test or script imports what is not in the environment"
    SCRIPT_FAILS_ON_BASE = "script_fails_at_base", "the script fails at the base"
    SCRIPT_FAILS_ON_HEAD = "script_fails_at_head", "the script passes at the base and fails at the head"
    CHECKS_NOTHING = "checks_nothing", "the script's check accepts any result"
    NOT_DETERMINISTIC = "not_deterministic", "the base's results differ from run to run"
    DIFFERS = "differs_at_head", "the head's result is not equivalent to the base's"
    MISSES_CHANGE = "misses_change", "no changed line is executed while the script is timed, nor in its setup"
    TOO_SHORT = "too_short", "one call is too short to be timed well"
    TOO_LONG = "too_long", "one call, or the setup before it, takes too long to be timed often"
    CACHED = "cached_between_calls", "later calls in a process no longer do the work of the first"
    DUPLICATE = "duplicate", "another script of the change executes the same lines and differs in literals only"
    SURPLUS = "surplus", "usable, but enough scripts that differ more were kept"
    NO_WORKLOADS = "no_workloads", "no source has a workload for the change"
    NOT_RECORDED = "not_recorded", "no call of the changed functions could be recorded while the tests ran"
    NOT_REPLAYED = "not_replayed", "a recorded call cannot be rebuilt, or has another outcome when it is made again"
    # measure
    WORKLOAD_FAILED = "workload_failed", "the workload failed while it was timed"
    WORKLOAD_TIMEOUT = "workload_timeout", "the workload did not end within its limit while it was timed"
    # select
    UNDECIDED = "undecided", "noise leaves open whether there is a gain: the next run measures it once more"
    NO_GAIN = "no_gain", "no workload is faster by more than the smallest accepted gain"
    SLOWER = "slower", "the head is slower than the base"
    NOT_SIGNIFICANT = "not_significant", "the gain does not hold after correction for the number of workloads tried"
    NOT_CONFIRMED = "not_confirmed", "the gain of the first session did not appear again in the second"
    UNSTABLE = "unstable", "base against base differs as much: the workload cannot be timed reliably here"
    COLD_ONLY = "cold_only", "only the first call in a process is faster"
    TOO_FEW_SAMPLES = "too_few_samples", "too few pairs of processes were finished to decide"
    MIXED = "mixed", "some workloads are faster, but not the change as a whole: others are slower"
    OTHER_SPEEDUP = "another_speedup", "measured again it is faster, but its interval does not meet the published one"
    # count
    NOT_COUNTED = "not_counted", "the workload could not be run under valgrind, where instructions are counted"
    # problem texts
    TELLS_THE_FIX = "tells_the_fix", "the text contains words or lines of the fix"
    # evaluate
    EMPTY_PATCH = "empty_patch", "the prediction has no patch"
    NOT_APPLIED = "patch_does_not_apply", "the patch does not apply to the base"
    NOTHING_CHANGED = "nothing_changed", "the patch changes no source file of the package"
    TESTS_FAIL = "tests_fail", "tests fail that pass on the base and with the expert's patch"
    WORKLOAD_FAILS = "workload_fails", "a timed workload fails, or breaks the rules of timing"
    WRONG_RESULT = "wrong_result", "a call's result is not the base's"
    NOT_FASTER = "not_faster", "it is not faster than the base at 95 %"
    BELOW_EXPERT = "below_expert", "it reaches less of the expert's speedup than the threshold"
    LATER_CALLS_ONLY = "later_calls_only", "first calls are not faster as the expert's are: something is remembered"
    CONTRADICTED = "contradicted", "the clocks outside do not confirm what its own process says"
    NOT_GRADED = "not_graded", "the grading itself failed, repeatedly: it does not count, and the next run tries again"
    # calls of models
    MALFORMED = "malformed", "the model's answer does not have the form asked for"
    REFUSED = "refused", "the model or its provider refused to answer"


MEANING: dict[Reason, str] = {reason: reason.meaning for reason in Reason}

HELP: dict[Reason, str] = {
    Reason.ROOT_COMMIT: "nothing",
    Reason.EMPTY_DIFF: "nothing",
    Reason.MISSING_OBJECTS: "a full clone as --source (git fetch --unshallow, no --filter)",
    Reason.DIFF_TOO_LARGE: "a larger [mine] diff_limit in --settings",
    Reason.PART_OF_PULL: "nothing: look at the pull request's own row",
    Reason.NO_PULL: "[pulls] policy = 'all' in --settings",
    Reason.NOT_MERGED: "[pulls] policy = 'all' in --settings",
    Reason.NO_ISSUE: "another [pulls] policy in --settings",
    Reason.NO_LABEL: "other [pulls] labels in --settings",
    Reason.NO_PATCH: "`packages` and `source_dirs` in a recipe, if the package was taken for something else",
    Reason.NO_TEST_PATCH: "[pulls] policy = 'sweperf' in --settings",
    Reason.NO_SUCH_ISSUE: "nothing",
    Reason.NO_SOURCE_CHANGE: "`packages` and `source_dirs` in a recipe, if the package was taken for something else",
    Reason.RENAME_ONLY: "nothing",
    Reason.COMMENTS_ONLY: "nothing",
    Reason.REVERT: "nothing",
    Reason.UNLIKELY: "a lower [judge] keep_from in --settings, or --judge cascade",
    Reason.IN_DISGUISE: "another --judge",
    Reason.NOT_ON_CPU: "another --judge",
    Reason.SAME_PATCH: "nothing: look at the commit's own row",
    Reason.NO_STATEMENT: "nothing",
    Reason.SYNTAX_ERROR_BASE: "`python` in a recipe: another interpreter",
    Reason.SYNTAX_ERROR_HEAD: "`python` in a recipe: another interpreter",
    Reason.NEEDS_PYTHON_2: "nothing; --since leaves out the years before the package's Python 3",
    Reason.NO_INTERPRETER: "an interpreter of that version (uv python install), or `python` in a recipe",
    Reason.RESOLUTION_FAILED: "`requirements` and `python` in a recipe; the log names what excludes what",
    Reason.BUILD_FAILED: "`build`, `build_env` and `requirements` in a recipe",
    Reason.SUBMODULE_MISSING: "`git submodule update --init --recursive` in a clone of your own, and `--source PATH`",
    Reason.BUILD_TIMEOUT: "a larger [build] timeout in --settings",
    Reason.IMPORT_FAILED: "`packages`, `source_dirs` and `requirements` in a recipe",
    Reason.SYSTEM_PACKAGE_MISSING: "apt-get install what the log names, or [build] system_packages in --settings",
    Reason.EXPECTATIONS_CHANGED: "nothing: the change alters behaviour",
    Reason.NO_TESTS: "`test_paths` in a recipe, or a model that writes scripts: --llm",
    Reason.NO_TEST_EXECUTES_CHANGE: "a larger [generate] max_test_files, a model that writes scripts (--llm), or "
    "`build` in a recipe where native source is not compiled",
    Reason.TEST_CHANGED: "a model that writes scripts: --llm",
    Reason.FAILS_ON_BASE: "`requirements`, `test_requirements` and `python` in a recipe, if the tests pass elsewhere",
    Reason.FAILS_ON_HEAD: "nothing: the change alters behaviour",
    Reason.FLAKY: "a model that writes scripts: --llm",
    Reason.TEST_TIMEOUT: "larger [generate] timeout, test_timeout and search_seconds in --settings",
    Reason.NEEDS_FILE: "`build` in a recipe, if a command makes or downloads the file",
    Reason.NEEDS_TREE: "`writable_tree = true` in a recipe: a tree of more than 64 MiB is not copied unasked",
    Reason.NEEDS_SERVICE: "a model that writes scripts: --llm (tests have no network)",
    Reason.MODULE_MISSING: "`test_requirements` or `extras` in a recipe",
    Reason.NO_WORKLOADS: "other --workloads, or --llm",
    Reason.NOT_RECORDED: "a model that writes scripts: --llm",
    Reason.NOT_REPLAYED: "a model that writes scripts: --llm",
}
"""What a person can do about the reasons of mine, judge and build, and about those that end a change in generate."""

INFORMATIVE: tuple[Reason, ...] = (
    # what unit tests say of the change itself
    Reason.EXPECTATIONS_CHANGED,
    Reason.FAILS_ON_HEAD,
    Reason.FAILS_ON_BASE,
    Reason.FLAKY,
    Reason.TEST_TIMEOUT,
    Reason.TEST_CHANGED,
    Reason.NEEDS_SERVICE,
    Reason.NEEDS_TREE,
    Reason.NEEDS_FILE,
    # scripts: those that came farthest first
    Reason.SURPLUS,
    Reason.DUPLICATE,
    Reason.CACHED,
    Reason.DIFFERS,
    Reason.SCRIPT_FAILS_ON_HEAD,
    Reason.NOT_DETERMINISTIC,
    Reason.CHECKS_NOTHING,
    Reason.MISSES_CHANGE,
    Reason.TOO_SHORT,
    Reason.TOO_LONG,
    Reason.SCRIPT_FAILS_ON_BASE,
    Reason.NEEDS_PYTHON_2,
    Reason.MODULE_MISSING,
    Reason.CONTRACT_BROKEN,
    Reason.USES_PRIVATE_API,
    Reason.USES_PICKLE,
    Reason.USES_RANDOMNESS,
    Reason.USES_TIME,
    Reason.USES_NETWORK,
    Reason.UNDEFINED_NAME,
    Reason.UNPARSABLE,
    # nothing to try
    Reason.MALFORMED,
    Reason.REFUSED,
    Reason.NO_TEST_EXECUTES_CHANGE,
    Reason.NO_TESTS,
    Reason.NO_WORKLOADS,
)
"""Reasons of workloads, the most informative first: it is the one that a change without any kept workload gets."""
