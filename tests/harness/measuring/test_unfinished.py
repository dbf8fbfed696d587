"""Timings that were cut, and who goes on with them."""

from pathlib import Path

from simulated_timings import session_rows

from perfquarry.harness.measuring.unfinished import Unfinished


def test_whole_pairs_are_kept_until_the_timings_are_there(tmp_path: Path) -> None:
    unfinished = Unfinished(tmp_path / "timings" / "change.jsonl")
    assert unfinished.rows() == []
    first, second, third = (session_rows("w", number, change_id="c") for number in (1, 2, 3))
    unfinished.add(first)
    unfinished.add(second)
    assert Unfinished(unfinished.path).rows() == [*first, *second]
    whole = unfinished.path.read_bytes()
    unfinished.path.write_bytes(whole[: len(whole) - 20])  # a kill
    assert unfinished.rows() == first
    unfinished.add(second)
    unfinished.add(third)
    assert unfinished.rows() == [*first, *second, *third]
    unfinished.remove()
    assert unfinished.rows() == [] and not unfinished.path.exists()
    unfinished.remove()
