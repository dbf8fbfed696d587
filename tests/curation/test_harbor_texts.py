"""The texts of a task's folder for Harbor: valid, and without the answer where a solver looks."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime

from screened_task import task as a_task
from screened_task import workload as a_workload

from perfquarry.curation import harbor
from perfquarry.data.records import Task
from perfquarry.data.records.task import TaskWorkload
from perfquarry.harness.grading.task_folder import ExpertFiles
from perfquarry.harness.settings import MeasureSettings

IMAGE = f"registry.example.org/tasks/a@sha256:{'1' * 64}"
RUNNABLE = harbor.RunnableTask(
    python="/envs/it's/bin/python",
    source_roots=[".", "src"],
    tests=["tests/test_a.py"],
    protected="^tests/",
)
HIDDEN, SHOWN = "def experiment(data): return 'hidden input'", "def experiment(data): return 'shown input'"


def workload(source: str, code: str, role: str = "visible") -> TaskWorkload:
    return a_workload(code, workload_id=f"{source}-{role}", source=source, role=role)


def task(*workloads: TaskWorkload) -> Task:
    return a_task(
        task_id="a__b-0123456789",
        codebase="a/b",
        head_sha="1" * 40,
        created_at_commit=datetime(2024, 1, 1, tzinfo=UTC),
        title="Keep the answer in a set",
        message="Keep the answer in a set\n\nThat is how the expert did it.",
        patch="+    the_answer = set()\n",
        licence='Odd "licence" \\ \x7f\nof two lines',
        oracle_targets=[],
        realistic_targets=[],
        problem_realistic="Calls of `f` take more time than they have to.",
        problem_oracle="Make `g` faster.",
        workloads=list(workloads),
        speedup=1.1,
    )


def test_the_setting_decides_which_workloads_a_solver_reads() -> None:
    some = task(workload("generated", SHOWN), workload("unit-test", "tests/test_a.py::test_b"))
    texts = {name: harbor.instruction(some, "The text.", name) for name in ("oracle", "realistic", "gso", "fuzzy")}
    assert all(text.startswith("The text.") for text in texts.values())
    assert {name: "shown input" in text for name, text in texts.items()} == {
        "oracle": True, "realistic": True, "gso": False, "fuzzy": False,
    }  # fmt: skip


def test_the_toml_says_what_harbor_reads() -> None:
    read = tomllib.loads(harbor.task_toml(task(workload("unit-test", "t.py::a")), IMAGE, "no-network", "1.0"))
    assert read["schema_version"] == "1.4" and read["artifacts"] == ["/testbed"]
    assert read["task"]["name"] == "perfquarry/a__b-0123456789"
    assert read["verifier"]["environment_mode"] == "separate" and "environment" not in read["verifier"]
    assert (
        read["environment"]["docker_image"] == IMAGE and harbor.dockerfile(IMAGE) == f"FROM {IMAGE}\nWORKDIR /testbed\n"
    )
    assert read["environment"]["network_mode"] == "no-network" and read["environment"]["workdir"] == "/testbed"
    assert read["metadata"]["licence"] == 'Odd "licence" \\ \x7f\nof two lines'
    assert read["metadata"]["hidden_workloads"] == 0


def test_the_instruction_states_the_problem_and_not_the_answer() -> None:
    whole = task(
        workload("unit-test", "t.py::a"), workload("generated", SHOWN), workload("generated", HIDDEN, "hidden")
    )
    text = harbor.instruction(whole)
    assert text.startswith("Calls of `f`") and SHOWN in text and "/testbed" in text
    for secret in ("hidden input", "the_answer", "expert did", "answer in a set", "1" * 10, "Make `g`"):
        assert secret not in text
    assert harbor.instruction(whole, "A better text.").startswith("A better text.")
    assert "t.py::a" in harbor.instruction(task(workload("unit-test", "t.py::a")))


def test_the_grader_is_given_all_workloads_and_times_many_of_them_shorter() -> None:
    whole = task(workload("unit-test", "t.py::a"), workload("generated", HIDDEN, "hidden"))
    expert = ExpertFiles(("new.py",), ("old.py",), ("expert.0.b64",))
    given = harbor.grading(whole, RUNNABLE, ["base.0.b64"], expert, MeasureSettings())
    test, script = given["workloads"]
    assert (test["node"], test["script"], test["hidden"]) == ("t.py::a", False, False)
    assert (script["code"], script["script"], script["hidden"]) == (HIDDEN, True, True)
    assert (given["base"], given["gold"], given["gold_deleted"]) == (["base.0.b64"], ["expert.0.b64"], ["old.py"])
    assert given["schedule"]["pairs"] == 6
    assert given["schedule"]["turn_seconds"] == 0.25
    many = whole.model_copy(update={"workloads": whole.workloads * 4})
    shorter = harbor.grading(many, RUNNABLE, ["base.0.b64"], expert, MeasureSettings())
    assert shorter["schedule"]["turn_seconds"] == 0.125


def test_the_scripts_quote_what_they_name() -> None:
    assert "exec '/envs/it'\"'\"'s/bin/python' -E -s -S" in harbor.test_script(RUNNABLE)
    script = harbor.solution(ExpertFiles(written=("a.py",), deleted=("b c.py",), archive=("expert.0.b64",)))
    assert "rm -f 'b c.py'" in script and 'cat "$here/expert.0.b64" | base64 -d | tar -xz' in script
