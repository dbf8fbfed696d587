"""Recordings that tables in the docs were made from can be read, and say who answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfquarry.curation.problems.written import Statements
from perfquarry.llm.recordings import Cassette, Recording
from perfquarry.miners.judge.opinion import Opinion
from perfquarry.testgen.generated import Samples

RECORDINGS = Path(__file__).parents[2] / "benchmarks" / "recordings"


@pytest.mark.parametrize("repository", sorted((RECORDINGS / "generate").iterdir()), ids=lambda path: path.name)
def test_answers_of_a_model_are_recordings(repository: Path) -> None:
    cassette = Cassette(repository)
    for path in repository.glob("*.json"):
        one = Recording.model_validate_json(path.read_bytes())
        assert one.origin == "a language model through exchange" and cassette.get(one.address)
        assert len(Samples.model_validate(one.answer).scripts) <= 6


def test_texts_of_a_model_are_recordings() -> None:
    cassette, paths = Cassette(RECORDINGS / "problem"), list((RECORDINGS / "problem").glob("*.json"))
    for path in paths:
        one = Recording.model_validate_json(path.read_bytes())
        assert one.origin == "a language model through exchange" and one.address == path.stem
        assert cassette.get(one.address) and Statements.model_validate(one.answer)
    assert len(paths) == 25


def test_opinions_of_a_model_are_recordings() -> None:
    cassette = Cassette(RECORDINGS / "judge")
    lines = (RECORDINGS / "judge" / "answers.jsonl").read_bytes().splitlines()
    for line in lines:
        one = Recording.model_validate_json(line)
        assert one.origin == "a language model through exchange"
        assert cassette.get(one.address) and Opinion.model_validate(one.answer)
    assert len(lines) == 1920
