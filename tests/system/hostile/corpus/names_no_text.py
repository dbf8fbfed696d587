# Its name holds halves of characters, NULs and line ends.
# as: test_hostile.py
# generate: kept
# measure: -
# process: yes
import pytest
from heap import smallest


@pytest.mark.parametrize("x", [1], ids=["\ud800\0\n\x1b[31m"])
def test_it(x):
    smallest([1])
