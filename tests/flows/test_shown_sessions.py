"""`show` takes the pairs of a session from the machine and the settings that its statistics are of."""

from __future__ import annotations

from rich.console import Console

from perfquarry.curation.blocks import measured_session, sessions_of
from perfquarry.curation.settings import SelectSettings
from perfquarry.curation.summary import summarise
from perfquarry.curation.task_reports import evidence_lines
from perfquarry.data.records import Evidence
from tests.curation.simulated_timings import MACHINE, STAMP, rows_of_pairs

OWN = rows_of_pairs("w", 1, [0.5, 0.51, 0.52, 0.49, 0.5, 0.5])
OTHER = MACHINE.model_copy(update={"machine_id": "m2"})
FAILED = [row.model_copy(update={"machine": OTHER, "outcome": "failed", "samples": []}) for row in OWN]
SLOWER = [
    row.model_copy(update={"config_hash": "later", "samples": [2 * one for one in row.samples]})
    for row in rows_of_pairs("w", 1, [0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
]


def test_timings_of_others_do_not_hide_its_own() -> None:
    (own,) = sessions_of(OWN)
    statistics = summarise(own, SelectSettings())
    assert statistics is not None
    assert not sessions_of([*OWN, *FAILED])[0].plain, "mixed, nothing is left: what `show` once did"
    for rows in ([*OWN, *FAILED], [*FAILED, *SLOWER, *OWN], [*OWN, *SLOWER, *FAILED]):
        session = measured_session(statistics, rows)
        assert session is not None and session.logs.tolist() == own.logs.tolist()
    assert measured_session(statistics, FAILED) is None


def test_the_plot_stands_below_the_session() -> None:
    statistics = summarise(sessions_of(OWN)[0], SelectSettings())
    assert statistics is not None
    evidence = Evidence(**STAMP.fields(), workload_id="w", change_id="change", sessions=[statistics])
    console = Console(width=80)
    with console.capture() as shown:
        console.print(*evidence_lines(evidence, "test_one", [*OWN, *FAILED]), sep="\n")
    assert "6 values" in shown.get() and "no longer" not in shown.get()
