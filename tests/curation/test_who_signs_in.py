"""Who has to sign in to the review page, by where it is served."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.requests import Request

from perfquarry.curation.review.serving import Bind, guard_of
from perfquarry.data.home import Home


@pytest.mark.parametrize(
    ("host", "reviewers", "allowed", "signs_in"),
    [
        ("127.0.0.1", ("ann",), (), False),
        ("127.0.0.1", ("ann", "bob"), (), True),
        ("127.0.0.1", ("ann",), ("reviews.example.org",), True),  # whoever comes through a proxy
        ("0.0.0.0", ("ann",), (), True),
    ],
)
def test_who_need_not_sit_at_this_machine_signs_in(
    tmp_path: Path, host: str, reviewers: tuple[str, ...], allowed: tuple[str, ...], signs_in: bool
) -> None:
    guard = guard_of(Home(tmp_path), Bind(host, 0, reviewers, allowed))
    assert guard.sign_in is signs_in
    assert guard.reviewer(Request({"type": "http", "headers": []})) == (None if signs_in else "ann")
    assert guard.reviewer_of(guard.token("ann")) == "ann"
