"""Which sources of workloads a command line asks, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfquarry.data.errors import InputError
from perfquarry.data.figures import seconds_of
from perfquarry.flows.options import settings_from


@pytest.mark.parametrize(
    ("workloads", "llm", "first", "further", "model"),
    [
        (None, None, ["unit-test"], ["asv", "replay"], ""),
        (None, "exchange:answers", ["unit-test"], ["asv", "replay", "generated"], "exchange:answers"),
        ("unit-test", "exchange:answers", ["unit-test"], [], ""),
        ("replay,unit-test", None, ["unit-test", "replay"], [], ""),
        ("generated", "exchange:answers", ["generated"], [], "exchange:answers"),
    ],
)
def test_sources_that_are_named_are_those_that_are_asked(
    workloads: str | None, llm: str | None, first: list[str], further: list[str], model: str
) -> None:
    made = settings_from(None, workloads=workloads, llm=llm).generate
    assert (made.sources, made.further, made.generated.model or "") == (first, further, model)


def test_a_model_that_is_asked_last_changes_no_hash_and_one_that_is_asked_first_does() -> None:
    plain, last, first = (
        settings_from(None, workloads=workloads, llm=llm).generate.config_hash()
        for workloads, llm in ((None, None), (None, "exchange:answers"), ("unit-test,generated", "exchange:answers"))
    )
    assert plain == last != first


def test_a_settings_file_names_sources_where_the_command_does_not(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[generate]\nsource = "asv"\nthen = "replay"\n')
    assert (made := settings_from(file).generate).sources == ["asv"] and made.further == ["replay"]
    assert (made := settings_from(file, workloads="unit-test").generate).sources == ["unit-test"] and not made.further


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("1.5h", 5400), (" 2 D ", 172800)])
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "m", "0m", "-3m", "3 weeks", "1h30m"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="such as 90s"):
        seconds_of(text)
