"""A change with everything the earlier stages would have written about it."""

from datetime import UTC, datetime

from simulated_timings import STAMP, session_rows

from perfquarry.data.records import (
    Build,
    Change,
    FileChange,
    TouchedFunction,
    Verdict,
    Workload,
    change_id_of,
    workload_id_of,
)
from perfquarry.data.registry import Repository

BASE, HEAD = "b" * 40, "0123456789abcdef" * 2 + "01234567"
CHANGE_ID = change_id_of(STAMP.repo, BASE, HEAD)
REPOSITORY = Repository(name="sample", codebase="owner/sample", url="https://example.org/owner/sample", licence="MIT")
CHANGE = Change(
    **STAMP.fields(),
    change_id=CHANGE_ID,
    kind="commit",
    base_sha=BASE,
    head_sha=HEAD,
    authored_at=datetime(2020, 1, 1, tzinfo=UTC),
    merged_at=datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC),
    title="Memoise the frobnication",
    message="Memoise the frobnication\n\nKeeps earlier answers in a dictionary.",
    files=[
        FileChange(path="pkg/new.py", old_path="pkg/old.py", status="renamed", added=5, deleted=2, role="source"),
        FileChange(path="tests/test_new.py", status="modified", added=50, deleted=0, role="test"),
        FileChange(path="CHANGES.rst", status="modified", added=1, deleted=0, role="docs"),
    ],
    pull_number=12,
    issues=[3],
)
VERDICT = Verdict(
    **STAMP.fields(),
    change_id=CHANGE_ID,
    judge="heuristic",
    is_performance="yes",
    probability=0.9,
    apis=["pkg.frobnicate"],
    functions=[
        TouchedFunction(path="pkg/new.py", name="<module>", change="modified"),
        TouchedFunction(path="pkg/new.py", name="Frob.run", change="modified"),
        TouchedFunction(path="pkg/new.py", name="_memo_lookup", change="added"),
        TouchedFunction(path="tests/test_new.py", name="test_frob", change="modified"),
    ],
)
BUILDS = [
    Build(
        **STAMP.fields(),
        build_id="x",
        change_id=CHANGE_ID,
        side=side,
        sha=sha,
        python="3.11.7",
        requirements=["pytest==8.0"],
        commands=["uv pip install pytest==8.0"],
    )
    for side, sha in (("head", HEAD), ("base", BASE))
]
NODES = ["tests/test_old.py::test_frob", "tests/test_old.py::test_other"]


def workload(node: str) -> Workload:
    identity = workload_id_of(CHANGE_ID, "unit-test", node)
    return Workload(
        **STAMP.fields(),
        workload_id=identity,
        change_id=CHANGE_ID,
        source="unit-test",
        code=node,
        calls=["pkg/old.py::frobnicate", f"pkg/old.py::{node[-9:]}"],
    )


WORKLOADS = [workload(node) for node in NODES]


def measured(number: int, first: float, second: float | None = None, **options):
    """Both sessions of workload `number` with their true speedups; no second session without `second`."""
    identity = WORKLOADS[number].workload_id
    rows = session_rows(identity, 1, speedup=first, change_id=CHANGE_ID, **options)
    if second is not None:
        rows += session_rows(identity, 2, speedup=second, change_id=CHANGE_ID, **options)
    return rows
