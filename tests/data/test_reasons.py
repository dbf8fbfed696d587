"""Every reason has its words."""

from __future__ import annotations

from perfquarry.data.records import HELP, INFORMATIVE, MEANING, Reason


def test_every_reason_has_a_meaning() -> None:
    assert all(reason.meaning for reason in Reason) and set(MEANING) == set(Reason)


def test_every_rejection_before_measuring_says_what_would_help() -> None:
    """Those of scripts are about one script among many: what helps is another one."""
    reasons = list(Reason)
    early = set(reasons[: reasons.index(Reason.UNPARSABLE)]) | {Reason.NO_WORKLOADS, Reason.MODULE_MISSING}
    assert early <= set(HELP)
    assert all(HELP.values())
    assert set(INFORMATIVE) <= set(Reason)
