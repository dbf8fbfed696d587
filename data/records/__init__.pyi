from .attempt import Amendment, Attempt, Step
from .build import Build, Side
from .change import Change, ChangeKind, FileChange, FileRole, FileStatus, change_id_of
from .count import Count, FunctionCount, SeedCount
from .evidence import Evidence, SessionStatistics
from .finding import Finding, Severity
from .grade import Comparison, Grade, GradedWorkload
from .intent import Effect, Intent, IntentClass
from .late import LATE, MOST_TRIES, is_late
from .llm_call import CallMode, LlmCall
from .notice import Notice
from .patch_reading import PatchReading
from .problem import Problem, Setting
from .pull import (
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
from .reasons import HELP, INFORMATIVE, MEANING, Reason
from .release import (
    FolderStatus,
    ReleasedFolder,
    ReleasedRecipe,
    ReleasedTask,
    ReleasedTiming,
    ReleasedWorkload,
    Withdrawn,
)
from .renewal import Renewal
from .revalidation import RevalidatedWorkload, Revalidation
from .row import Record, Row, Stamp, Status, content_id
from .task import Task
from .timing import Machine, Timing
from .verdict import Signal, TouchedFunction, Verdict
from .workload import Hit, Role, Source, Workload, node_of, workload_id_of

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
