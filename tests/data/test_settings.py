"""Which settings decide what rows say, and so which hash they have."""

from __future__ import annotations

import pytest

from perfquarry.testgen.settings import GenerateSettings, ScriptSettings


@pytest.mark.parametrize(
    ("given", "source", "sources"),
    [
        ("unit-test", "unit-test", ["unit-test"]),
        ("replay, unit-test,replay", "unit-test,replay", ["unit-test", "replay"]),
        ("guesses,generated,asv,", "asv,generated,guesses", ["asv", "generated", "guesses"]),
    ],
)
def test_sources_have_one_order(given: str, source: str, sources: list[str]) -> None:
    settings = GenerateSettings(source=given)
    assert (settings.source, settings.sources) == (source, sources)
    assert settings.config_hash() == GenerateSettings(source=source).config_hash()


def test_settings_of_scripts_count_once_they_are_not_the_default() -> None:
    assert GenerateSettings().config_hash() == "813e7f4106a2db8e"  # of homes from before there were scripts
    assert GenerateSettings(scripts=ScriptSettings()).config_hash() == GenerateSettings().config_hash()
    other = GenerateSettings(scripts=ScriptSettings(min_seconds=1e-4))
    assert other.config_hash() != GenerateSettings().config_hash()
