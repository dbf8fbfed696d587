"""Mines the history of repositories for performance improvements and turns them into verified tasks.

What is public is listed here and described in `perfquarry.api`; everything else may change with any version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perfquarry.api import Decision, HomeTables, ReleaseTables, decide, open_home, open_release

__all__ = ["Decision", "HomeTables", "ReleaseTables", "__version__", "decide", "open_home", "open_release"]


def __getattr__(name: str) -> Any:
    """What is public, imported when it is first asked for: the command needs none of it."""
    if name == "__version__":
        from importlib.metadata import version

        return version("perfquarry")
    if name not in __all__:
        raise AttributeError(f"module 'perfquarry' has no attribute {name!r}")
    from perfquarry import api

    return getattr(api, name)
