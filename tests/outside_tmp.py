"""A place outside of /tmp, of which every sandbox has its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_CHECKOUT = Path(__file__).resolve().parents[1]


def outside_tmp() -> Path:
    """The checkout; where that is below /tmp, another folder that may be written. Skips without one."""
    for place in (_CHECKOUT, *map(Path, ("/srv", "/opt", "/var/lib"))):
        if not place.is_relative_to("/tmp") and os.access(place, os.W_OK):
            return place
    pytest.skip("the checkout is below /tmp, and no folder outside of it can be written: this was NOT tried")
