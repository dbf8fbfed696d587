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
    # judge
    NO_SOURCE_CHANGE = "no_source_change"
    RENAME_ONLY = "rename_only"
    COMMENTS_ONLY = "comments_only"
    REVERT = "revert"
    UNLIKELY = "unlikely_performance"
    IN_DISGUISE = "in_disguise"
    NOT_ON_CPU = "not_on_cpu"
    # build
    SYNTAX_ERROR_BASE = "syntax_error_at_base"
    SYNTAX_ERROR_HEAD = "syntax_error_at_head"
    NO_INTERPRETER = "no_interpreter"
    RESOLUTION_FAILED = "dependencies_not_resolvable"
    BUILD_FAILED = "build_failed"
    BUILD_TIMEOUT = "build_timeout"
    IMPORT_FAILED = "import_failed"
    SYSTEM_PACKAGE_MISSING = "system_package_missing"
    # generate
    NO_TESTS = "no_tests"
    NO_TEST_EXECUTES_CHANGE = "no_test_executes_change"
    TEST_CHANGED = "test_modified_by_change"
    FAILS_ON_BASE = "tests_fail_at_base"
    FAILS_ON_HEAD = "tests_fail_at_head"
    FLAKY = "flaky"
    TEST_TIMEOUT = "test_timeout"
    # measure
    WORKLOAD_FAILED = "workload_failed"
    WORKLOAD_TIMEOUT = "workload_timeout"
    # select
    NO_GAIN = "no_gain"
    SLOWER = "slower"
    NOT_SIGNIFICANT = "not_significant"
    NOT_CONFIRMED = "not_confirmed"
    UNSTABLE = "unstable"
    COLD_ONLY = "cold_only"
    TOO_FEW_SAMPLES = "too_few_samples"
    # calls of models
    MALFORMED = "malformed"
    REFUSED = "refused"


MEANING: dict[Reason, str] = {
    Reason.ROOT_COMMIT: "the commit has no parent, so there is no base",
    Reason.EMPTY_DIFF: "base and head have the same tree",
    Reason.MISSING_OBJECTS: "the clone lacks objects of the base or the head",
    Reason.DIFF_TOO_LARGE: "the diff is larger than the crawl reads",
    Reason.NO_SOURCE_CHANGE: "only tests, docs, build files or generated files changed",
    Reason.RENAME_ONLY: "files were moved, their contents stayed",
    Reason.COMMENTS_ONLY: "only comments, docstrings or white space changed",
    Reason.REVERT: "the change undoes an earlier one",
    Reason.UNLIKELY: "the judge's probability is below the threshold",
    Reason.IN_DISGUISE: "it speaks of performance and is a fix, a feature or a refactoring",
    Reason.NOT_ON_CPU: "its gain cannot be shown on a CPU",
    Reason.SYNTAX_ERROR_BASE: "a changed source file does not parse at the base",
    Reason.SYNTAX_ERROR_HEAD: "a changed source file does not parse at the head",
    Reason.NO_INTERPRETER: "no installed interpreter fits the commit's range of Python versions",
    Reason.RESOLUTION_FAILED: "the dependencies of that date cannot be installed together",
    Reason.BUILD_FAILED: "a build command ended with an error",
    Reason.BUILD_TIMEOUT: "a build command did not end within its limit",
    Reason.IMPORT_FAILED: "the built package cannot be imported",
    Reason.SYSTEM_PACKAGE_MISSING: "a header, library or program is missing; the log names the Debian package",
    Reason.NO_TESTS: "the repository has no test file at that commit that can reach the change",
    Reason.NO_TEST_EXECUTES_CHANGE: "tests ran, but none executes a changed line",
    Reason.TEST_CHANGED: "the tests that execute the change are themselves modified by it",
    Reason.FAILS_ON_BASE: "the tests that execute the change fail at the base",
    Reason.FAILS_ON_HEAD: "the tests that execute the change pass at the base and fail at the head",
    Reason.FLAKY: "the tests do not pass every time",
    Reason.TEST_TIMEOUT: "the tests did not end within their limit",
    Reason.WORKLOAD_FAILED: "the workload failed while it was timed",
    Reason.WORKLOAD_TIMEOUT: "the workload did not end within its limit while it was timed",
    Reason.NO_GAIN: "no workload is faster by more than the smallest accepted gain",
    Reason.SLOWER: "the head is slower than the base",
    Reason.NOT_SIGNIFICANT: "the gain does not hold after correction for the number of workloads tried",
    Reason.NOT_CONFIRMED: "the gain of the first session did not appear again in the second",
    Reason.UNSTABLE: "base against base differs as much: the workload cannot be timed reliably here",
    Reason.COLD_ONLY: "only the first call in a process is faster",
    Reason.TOO_FEW_SAMPLES: "too few blocks were finished to decide",
    Reason.MALFORMED: "the model's answer does not have the form asked for",
    Reason.REFUSED: "the model or its provider refused to answer",
}
"""One line a reason, for people: what the funnel and `show` print."""
