"""The codes with which stages reject, by stage, with what each means."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a stage did not keep a change or a workload. The value is what the tables and the funnel show."""

    # mine
    ROOT_COMMIT = "root_commit"
    EMPTY_DIFF = "empty_diff"
    MISSING_OBJECTS = "missing_objects"
    DIFF_TOO_LARGE = "diff_too_large"
    PART_OF_PULL = "part_of_pull_request"
    NO_PULL = "no_pull_request"
    NOT_MERGED = "not_merged"
    NO_ISSUE = "resolves_no_issue"
    NO_LABEL = "no_performance_label"
    NO_PATCH = "no_source_file"
    NO_TEST_PATCH = "no_test_file"
    NO_SUCH_ISSUE = "no_such_issue"
    # judge
    NO_SOURCE_CHANGE = "no_source_change"
    RENAME_ONLY = "rename_only"
    COMMENTS_ONLY = "comments_only"
    REVERT = "revert"
    UNLIKELY = "unlikely_performance"
    IN_DISGUISE = "in_disguise"
    NOT_ON_CPU = "not_on_cpu"
    SAME_PATCH = "same_patch_as_a_commit"
    # build
    SYNTAX_ERROR_BASE = "syntax_error_at_base"
    SYNTAX_ERROR_HEAD = "syntax_error_at_head"
    NEEDS_PYTHON_2 = "needs_python_2"
    NO_INTERPRETER = "no_interpreter"
    RESOLUTION_FAILED = "dependencies_not_resolvable"
    BUILD_FAILED = "build_failed"
    BUILD_TIMEOUT = "build_timeout"
    IMPORT_FAILED = "import_failed"
    SYSTEM_PACKAGE_MISSING = "system_package_missing"
    # generate
    EXPECTATIONS_CHANGED = "tests_expect_other_results"
    NO_TESTS = "no_tests"
    NO_TEST_EXECUTES_CHANGE = "no_test_executes_change"
    TEST_CHANGED = "test_modified_by_change"
    FAILS_ON_BASE = "tests_fail_at_base"
    FAILS_ON_HEAD = "tests_fail_at_head"
    FLAKY = "flaky"
    TEST_TIMEOUT = "test_timeout"
    NEEDS_FILE = "test_needs_a_file"
    NEEDS_SERVICE = "test_needs_a_service"
    UNPARSABLE = "does_not_parse"
    CONTRACT_BROKEN = "contract_broken"
    UNDEFINED_NAME = "undefined_name"
    USES_NETWORK = "uses_network"
    USES_TIME = "uses_time"
    USES_RANDOMNESS = "uses_unseeded_randomness"
    USES_PRIVATE_API = "uses_private_api"
    USES_PICKLE = "uses_pickle"
    MODULE_MISSING = "module_missing"
    SCRIPT_FAILS_ON_BASE = "script_fails_at_base"
    SCRIPT_FAILS_ON_HEAD = "script_fails_at_head"
    CHECKS_NOTHING = "checks_nothing"
    NOT_DETERMINISTIC = "not_deterministic"
    DIFFERS = "differs_at_head"
    MISSES_CHANGE = "misses_change"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    CACHED = "cached_between_calls"
    DUPLICATE = "duplicate"
    SURPLUS = "surplus"
    NO_WORKLOADS = "no_workloads"
    NOT_RECORDED = "not_recorded"
    NOT_REPLAYED = "not_replayed"
    # measure
    WORKLOAD_FAILED = "workload_failed"
    WORKLOAD_TIMEOUT = "workload_timeout"
    # select
    UNDECIDED = "undecided"
    NO_GAIN = "no_gain"
    SLOWER = "slower"
    NOT_SIGNIFICANT = "not_significant"
    NOT_CONFIRMED = "not_confirmed"
    UNSTABLE = "unstable"
    COLD_ONLY = "cold_only"
    TOO_FEW_SAMPLES = "too_few_samples"
    MIXED = "mixed"
    OTHER_SPEEDUP = "another_speedup"
    # count
    NOT_COUNTED = "not_counted"
    # problem texts
    TELLS_THE_FIX = "tells_the_fix"
    # evaluate
    EMPTY_PATCH = "empty_patch"
    NOT_APPLIED = "patch_does_not_apply"
    NOTHING_CHANGED = "nothing_changed"
    TESTS_FAIL = "tests_fail"
    WORKLOAD_FAILS = "workload_fails"
    WRONG_RESULT = "wrong_result"
    NOT_FASTER = "not_faster"
    BELOW_EXPERT = "below_expert"
    LATER_CALLS_ONLY = "later_calls_only"
    CONTRADICTED = "contradicted"
    NOT_GRADED = "not_graded"
    # calls of models
    MALFORMED = "malformed"
    REFUSED = "refused"


MEANING: dict[Reason, str] = {
    Reason.ROOT_COMMIT: "the commit has no parent, so there is no base",
    Reason.EMPTY_DIFF: "base and head have the same tree",
    Reason.MISSING_OBJECTS: "objects of the base or the head are missing in the clone",
    Reason.DIFF_TOO_LARGE: "the diff is larger than the crawl reads",
    Reason.PART_OF_PULL: "the commit came with a pull request, which is a change of its own",
    Reason.NO_PULL: "no pull request brought the commit",
    Reason.NOT_MERGED: "the pull request was not merged",
    Reason.NO_ISSUE: "the pull request resolves no issue",
    Reason.NO_LABEL: "the pull request has no label that speaks of performance",
    Reason.NO_PATCH: "the pull request changes no source file",
    Reason.NO_TEST_PATCH: "the pull request changes no test file",
    Reason.NO_SUCH_ISSUE: "the number stands for no issue of the repository",
    Reason.NO_SOURCE_CHANGE: "only tests, docs, build files or generated files changed",
    Reason.RENAME_ONLY: "files were moved, their contents stayed",
    Reason.COMMENTS_ONLY: "only comments, docstrings or white space changed",
    Reason.REVERT: "the change undoes an earlier one",
    Reason.UNLIKELY: "the judge's probability is below the threshold",
    Reason.IN_DISGUISE: "it speaks of performance and is a fix, a feature or a refactoring",
    Reason.NOT_ON_CPU: "its gain cannot be shown on a CPU",
    Reason.SAME_PATCH: "the merge brought one commit, which is a change of its own with the same patch",
    Reason.SYNTAX_ERROR_BASE: "a changed source file does not parse at the base",
    Reason.SYNTAX_ERROR_HEAD: "a changed source file does not parse at the head",
    Reason.NEEDS_PYTHON_2: "the code is Python 2's: no interpreter from 3.6 on runs it",
    Reason.NO_INTERPRETER: "no installed interpreter fits the commit's range of Python versions",
    Reason.RESOLUTION_FAILED: "the dependencies of that date cannot be installed together",
    Reason.BUILD_FAILED: "a build command ended with an error",
    Reason.BUILD_TIMEOUT: "a build command did not end within its limit",
    Reason.IMPORT_FAILED: "the built package cannot be imported",
    Reason.SYSTEM_PACKAGE_MISSING: "a header, library or program is missing; the log names the Debian package",
    Reason.EXPECTATIONS_CHANGED: "the change edits the values that its tests expect: it alters behaviour",
    Reason.NO_TESTS: "the repository has no test file at that commit that can reach the change",
    Reason.NO_TEST_EXECUTES_CHANGE: "tests ran, but none executes a changed line",
    Reason.TEST_CHANGED: "the tests that execute the change are themselves modified by it",
    Reason.FAILS_ON_BASE: "the tests that execute the change fail at the base",
    Reason.FAILS_ON_HEAD: "the tests that execute the change pass at the base and fail at the head",
    Reason.FLAKY: "the tests do not pass every time",
    Reason.TEST_TIMEOUT: "the tests did not end within their limit",
    Reason.NEEDS_FILE: "the tests that may execute the change look for a file that is not there",
    Reason.NEEDS_SERVICE: "the tests that may execute the change need the network or a server",
    Reason.UNPARSABLE: "the script does not parse",
    Reason.CONTRACT_BROKEN: "one of the six functions is missing in the script, or has other parameters",
    Reason.UNDEFINED_NAME: "the script uses a name that it does not define",
    Reason.USES_NETWORK: "the script uses the network",
    Reason.USES_TIME: "the script's work or result depends on the time of day",
    Reason.USES_RANDOMNESS: "the script draws random numbers without a seed",
    Reason.USES_PRIVATE_API: "the script uses private names of the package",
    Reason.USES_PICKLE: "the script stores or loads results in a format that can run code",
    Reason.MODULE_MISSING: "the test or script imports what is not in the environment",
    Reason.SCRIPT_FAILS_ON_BASE: "the script fails at the base",
    Reason.SCRIPT_FAILS_ON_HEAD: "the script passes at the base and fails at the head",
    Reason.CHECKS_NOTHING: "the script's check accepts any result",
    Reason.NOT_DETERMINISTIC: "the base's results differ from run to run",
    Reason.DIFFERS: "the head's result is not equivalent to the base's",
    Reason.MISSES_CHANGE: "no changed line is executed while the script is timed",
    Reason.TOO_SHORT: "one call is too short to be timed well",
    Reason.TOO_LONG: "one call, or the setup before it, takes too long to be timed often",
    Reason.CACHED: "later calls in a process no longer do the work of the first",
    Reason.DUPLICATE: "another script of the change executes the same lines and differs in literals only",
    Reason.SURPLUS: "usable, but enough scripts that differ more were kept",
    Reason.NO_WORKLOADS: "no source has a workload for the change",
    Reason.NOT_RECORDED: "no call of the changed functions could be recorded while the tests ran",
    Reason.NOT_REPLAYED: "a recorded call cannot be rebuilt, or has another outcome when it is made again",
    Reason.WORKLOAD_FAILED: "the workload failed while it was timed",
    Reason.WORKLOAD_TIMEOUT: "the workload did not end within its limit while it was timed",
    Reason.UNDECIDED: "noise leaves open whether there is a gain: the next run measures it once more",
    Reason.NO_GAIN: "no workload is faster by more than the smallest accepted gain",
    Reason.SLOWER: "the head is slower than the base",
    Reason.NOT_SIGNIFICANT: "the gain does not hold after correction for the number of workloads tried",
    Reason.NOT_CONFIRMED: "the gain of the first session did not appear again in the second",
    Reason.UNSTABLE: "base against base differs as much: the workload cannot be timed reliably here",
    Reason.COLD_ONLY: "only the first call in a process is faster",
    Reason.TOO_FEW_SAMPLES: "too few pairs of processes were finished to decide",
    Reason.MIXED: "some workloads are faster, but not the change as a whole: others are slower",
    Reason.OTHER_SPEEDUP: "measured again it is faster, but its interval does not meet the published one",
    Reason.NOT_COUNTED: "the workload could not be run under valgrind, where instructions are counted",
    Reason.TELLS_THE_FIX: "the text contains words or lines of the fix",
    Reason.EMPTY_PATCH: "the prediction has no patch",
    Reason.NOT_APPLIED: "the patch does not apply to the base",
    Reason.NOTHING_CHANGED: "the patch changes no source file of the package",
    Reason.TESTS_FAIL: "tests fail that pass on the base and with the expert's patch",
    Reason.WORKLOAD_FAILS: "a timed workload fails, or breaks the rules of timing",
    Reason.WRONG_RESULT: "a call's result is not the base's",
    Reason.NOT_FASTER: "it is not faster than the base at 95 %",
    Reason.BELOW_EXPERT: "it reaches less of the expert's speedup than the threshold",
    Reason.LATER_CALLS_ONLY: "first calls are not faster as the expert's are: something is remembered",
    Reason.CONTRADICTED: "the clocks outside do not confirm what its own process says",
    Reason.NOT_GRADED: "the grading itself failed, repeatedly: it does not count, and the next run tries again",
    Reason.MALFORMED: "the model's answer does not have the form asked for",
    Reason.REFUSED: "the model or its provider refused to answer",
}
"""One line a reason, for people: what the funnel and `show` print."""

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
    Reason.SYNTAX_ERROR_BASE: "`python` in a recipe: another interpreter",
    Reason.SYNTAX_ERROR_HEAD: "`python` in a recipe: another interpreter",
    Reason.NEEDS_PYTHON_2: "nothing; --since leaves out the years before the package's Python 3",
    Reason.NO_INTERPRETER: "an interpreter of that version (uv python install), or `python` in a recipe",
    Reason.RESOLUTION_FAILED: "`requirements` and `python` in a recipe; the log names what excludes what",
    Reason.BUILD_FAILED: "`build`, `build_env` and `requirements` in a recipe",
    Reason.BUILD_TIMEOUT: "a larger [build] timeout in --settings",
    Reason.IMPORT_FAILED: "`packages`, `source_dirs` and `requirements` in a recipe",
    Reason.SYSTEM_PACKAGE_MISSING: "apt-get install what the log names, or [build] system_packages in --settings",
    Reason.EXPECTATIONS_CHANGED: "nothing: the change alters behaviour",
    Reason.NO_TESTS: "`test_paths` in a recipe, or --workloads asv,replay,generated",
    Reason.NO_TEST_EXECUTES_CHANGE: "a larger [generate] max_test_files in --settings, or --workloads generated",
    Reason.TEST_CHANGED: "--workloads replay,generated",
    Reason.FAILS_ON_BASE: "`requirements`, `test_requirements` and `python` in a recipe, if the tests pass elsewhere",
    Reason.FAILS_ON_HEAD: "nothing: the change alters behaviour",
    Reason.FLAKY: "--workloads replay,generated",
    Reason.TEST_TIMEOUT: "larger [generate] timeout and test_timeout in --settings",
    Reason.NEEDS_FILE: "`build` in a recipe, if a command makes the file",
    Reason.NEEDS_SERVICE: "--workloads replay,generated: tests have no network",
    Reason.MODULE_MISSING: "`test_requirements` or `extras` in a recipe",
    Reason.NO_WORKLOADS: "other --workloads",
    Reason.NOT_RECORDED: "--workloads generated",
    Reason.NOT_REPLAYED: "--workloads generated",
}
"""What a person can do about the reasons of mine, judge and build, and about those that end a change in generate."""

TELLING: tuple[Reason, ...] = (
    # what unit tests say of the change itself
    Reason.EXPECTATIONS_CHANGED,
    Reason.FAILS_ON_HEAD,
    Reason.FAILS_ON_BASE,
    Reason.FLAKY,
    Reason.TEST_TIMEOUT,
    Reason.TEST_CHANGED,
    Reason.NEEDS_SERVICE,
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
"""Reasons of workloads, the most telling first: it is the one that a change without any kept workload gets."""
