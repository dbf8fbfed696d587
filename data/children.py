"""The environment of every process that we start: made of nothing but what that kind of child needs.

Keys of models, of GitHub, of the Hub and of stores reach only the processes that use them (docs/security.md).
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from enum import Enum

SECRET = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|HEADERS)(_ID|_PATH|_FILE)?$|_TOKENS$", re.IGNORECASE
)
"""Names of variables that hold keys."""


class Need(Enum):
    """What a child may need beyond the names that all programs use; the value is an expression for whole names."""

    NETWORK = r"(?i:https?|no|all)_(?i:proxy)|SSL_CERT_(FILE|DIR)|(CURL|REQUESTS)_CA_BUNDLE"
    """Proxies and certificates."""
    SESSION = r"SSH_AUTH_SOCK|XDG_(CONFIG_HOME|RUNTIME_DIR)|DBUS_SESSION_BUS_ADDRESS"
    """The user's SSH agent, settings and key ring: git and a remote repository."""
    TOOLCHAINS = r"(PYENV_ROOT|RUSTUP_HOME|CARGO_HOME|UV_PYTHON_INSTALL_DIR|XDG_(CACHE|DATA)_HOME)"
    """Where interpreters and compilers are."""
    PREFECT = r"(PREFECT_|XDG_|PYTHON)\w+(?<!_API_KEY)(?<!_TOKEN)(?<!_SECRET)|VIRTUAL_ENV|DO_NOT_TRACK"
    """Settings of Prefect's server, with the password of its database."""
    INDEX = r"(UV|PIP)_\w+"
    """Addresses and keys of indexes of packages."""
    MODELS = r"(OPENAI|ANTHROPIC)_\w+"
    """Keys and addresses of the models' providers."""
    TABLES = r"AWS_\w+|GOOGLE_APPLICATION_CREDENTIALS|PERFQUARRY_\w+"
    """Keys and addresses of the tables' store and database."""
    SETTINGS = r"\w+"
    """All that is no key: our own program, started once more."""
    EVERYTHING = r"(?s:.+)"
    """Keys, too: our own program, started to do all that this one can."""


_ALL_PROGRAMS = re.compile(r"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TERM|COLUMNS|LD_LIBRARY_PATH")
_WITH_KEYS = (Need.PREFECT, Need.INDEX, Need.MODELS, Need.TABLES, Need.EVERYTHING)


def environment(*needs: Need, **more: str) -> dict[str, str]:
    """The environment of a child.

    Args:
        needs: what it needs of this process's environment.
        more: variables that are set, whatever they are here.
    """
    return {name: value for name, value in os.environ.items() if _passes(name, needs)} | more


def answer_of(argv: Sequence[str], *needs: Need, seconds: float = 20.0, **more: str) -> str:
    """What a program prints that is asked something; nothing where it cannot be asked, fails or takes too long.

    `needs` and `more` are those of `environment`.
    """
    try:
        done = subprocess.run(
            argv, env=environment(*needs, **more), capture_output=True, text=True, timeout=seconds, cwd="/", check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _passes(name: str, needs: tuple[Need, ...]) -> bool:
    wanted = [need for need in needs if re.fullmatch(need.value, name)]
    if any(need in _WITH_KEYS for need in wanted):
        return True
    return not SECRET.search(name) and (bool(wanted) or _ALL_PROGRAMS.fullmatch(name) is not None)
