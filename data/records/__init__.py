"""Records: one pydantic model a table. Start reading here."""

from perfquarry.data.records.attempt import Amendment, Attempt, Step
from perfquarry.data.records.build import Build, Side
from perfquarry.data.records.change import Change, ChangeKind, FileChange, FileRole, FileStatus, change_id_of
from perfquarry.data.records.count import Count, FunctionCount, SeedCount
from perfquarry.data.records.evidence import Evidence, SessionStatistics
from perfquarry.data.records.finding import Finding, Severity
from perfquarry.data.records.grade import Comparison, Grade, GradedWorkload
from perfquarry.data.records.intent import Effect, Intent, IntentClass
from perfquarry.data.records.late import LATE, MOST_TRIES, is_late
from perfquarry.data.records.llm_call import CallMode, LlmCall
from perfquarry.data.records.notice import Notice
from perfquarry.data.records.patch_reading import PatchReading
from perfquarry.data.records.problem import Problem, Setting
from perfquarry.data.records.pull import (
    RESOLVING,
    Issue,
    Link,
    LinkKind,
    Policy,
    Pull,
    PullCommit,
    QuotedResult,
    Remark,
)
from perfquarry.data.records.reasons import HELP, INFORMATIVE, MEANING, Reason
from perfquarry.data.records.release import (
    FolderStatus,
    ReleasedFolder,
    ReleasedRecipe,
    ReleasedTask,
    ReleasedTiming,
    ReleasedWorkload,
    Withdrawn,
)
from perfquarry.data.records.renewal import Renewal
from perfquarry.data.records.revalidation import RevalidatedWorkload, Revalidation
from perfquarry.data.records.row import Record, Row, Stamp, Status, content_id
from perfquarry.data.records.task import Task
from perfquarry.data.records.timing import Machine, Timing
from perfquarry.data.records.verdict import Signal, TouchedFunction, Verdict
from perfquarry.data.records.workload import Hit, Role, Source, Workload, node_of, workload_id_of

__all__ = [
    "HELP",
    "INFORMATIVE",
    "LATE",
    "MEANING",
    "MOST_TRIES",
    "RESOLVING",
    "Amendment",
    "Attempt",
    "Build",
    "CallMode",
    "Change",
    "ChangeKind",
    "Comparison",
    "Count",
    "Effect",
    "Evidence",
    "FileChange",
    "FileRole",
    "FileStatus",
    "Finding",
    "FolderStatus",
    "FunctionCount",
    "Grade",
    "GradedWorkload",
    "Hit",
    "Intent",
    "IntentClass",
    "Issue",
    "Link",
    "LinkKind",
    "LlmCall",
    "Machine",
    "Notice",
    "PatchReading",
    "Policy",
    "Problem",
    "Pull",
    "PullCommit",
    "QuotedResult",
    "Reason",
    "Record",
    "ReleasedFolder",
    "ReleasedRecipe",
    "ReleasedTask",
    "ReleasedTiming",
    "ReleasedWorkload",
    "Remark",
    "Renewal",
    "RevalidatedWorkload",
    "Revalidation",
    "Role",
    "Row",
    "SeedCount",
    "SessionStatistics",
    "Setting",
    "Severity",
    "Side",
    "Signal",
    "Source",
    "Stamp",
    "Status",
    "Step",
    "Task",
    "Timing",
    "TouchedFunction",
    "Verdict",
    "Withdrawn",
    "Workload",
    "change_id_of",
    "content_id",
    "is_late",
    "node_of",
    "workload_id_of",
]
