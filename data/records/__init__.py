"""Records: one pydantic model a table. Start reading here."""

from data.records.attempt import Amendment, Attempt, Step
from data.records.build import Build, Side
from data.records.change import Change, ChangeKind, FileChange, FileRole, FileStatus, change_id_of
from data.records.count import Count, FunctionCount, SeedCount
from data.records.evidence import Evidence, SessionStatistics
from data.records.finding import Finding, Severity
from data.records.late import LATE, MOST_TRIES, is_late
from data.records.llm_call import CallMode, LlmCall
from data.records.notice import Notice
from data.records.problem import Problem, Setting
from data.records.pull import (
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
from data.records.reasons import HELP, MEANING, TELLING, Reason
from data.records.release import Recipe, ReleasedTask, ReleasedTiming, ReleasedWorkload
from data.records.renewal import Renewal
from data.records.revalidation import RevalidatedWorkload, Revalidation
from data.records.row import Record, Row, Stamp, Status, content_id
from data.records.task import Task
from data.records.timing import Machine, Timing
from data.records.verdict import Signal, TouchedFunction, Verdict
from data.records.workload import Hit, Role, Source, Workload, node_of, workload_id_of

__all__ = [
    "HELP",
    "LATE",
    "MEANING",
    "MOST_TRIES",
    "RESOLVING",
    "TELLING",
    "Amendment",
    "Attempt",
    "Build",
    "CallMode",
    "Change",
    "ChangeKind",
    "Count",
    "Evidence",
    "FileChange",
    "FileRole",
    "FileStatus",
    "Finding",
    "FunctionCount",
    "Hit",
    "Issue",
    "Link",
    "LinkKind",
    "LlmCall",
    "Machine",
    "Notice",
    "Policy",
    "Problem",
    "Pull",
    "PullCommit",
    "QuotedResult",
    "Reason",
    "Recipe",
    "Record",
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
    "Workload",
    "change_id_of",
    "content_id",
    "is_late",
    "node_of",
    "workload_id_of",
]
