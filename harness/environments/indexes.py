"""The host's package index settings, for uv.

uv does not read pip's settings. Where the host has configured pip but not uv, pip's are
translated, so that environments come from the same indexes as everything else here.
Index addresses may hold credentials: they are passed in the environment, never on a
command line, and so reach no row and no log.
"""

from __future__ import annotations

import configparser
import functools
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

NO_INDEX = "PERFQUARRY_NO_INDEX"
"""Set where pip must not use an index; uv has an option for it, but no variable."""

_PASSED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "NETRC", "SSL_CERT_FILE", "SSL_CERT_DIR")
_PASSED_PREFIXES = ("UV_", "XDG_")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
# settings of ours or of the session around us that must not steer an installation
_DROPPED = {"UV_PYTHON", "UV_PROJECT", "UV_PROJECT_ENVIRONMENT", "UV_EXCLUDE_NEWER", "UV_CONSTRAINT", "UV_OVERRIDE"}
_UV_INDEX_SETTINGS = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")
_CONFIG_WORDS = ("index", "find-links")


def installer_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment variables for uv: nothing of ours but what finding and fetching packages needs.

    Building a source distribution runs its code, so keys and tokens of the caller's
    environment are left out.
    """
    environ = os.environ if environ is None else environ
    kept = {
        name: value
        for name, value in environ.items()
        if (name in _PASSED or name.startswith(_PASSED_PREFIXES) or name.lower() in _PROXIES) and name not in _DROPPED
    }
    for name, value in _from_pip(environ).items():
        kept.setdefault(name, value)
    return kept


def _from_pip(environ: Mapping[str, str]) -> dict[str, str]:
    """uv's variables that say what pip's settings say; index settings only where uv has none of its own."""
    files = _read_pip_files(environ.get("PIP_CONFIG_FILE"), environ.get("XDG_CONFIG_HOME"), environ.get("HOME"))
    pip = {**files, **_pip_variables(environ)}
    found: dict[str, str] = {}
    if "cert" in pip:
        found["SSL_CERT_FILE"] = pip["cert"]
    if "trusted-host" in pip:
        found["UV_INSECURE_HOST"] = pip["trusted-host"]
    if "proxy" in pip:
        found["HTTPS_PROXY"] = found["HTTP_PROXY"] = pip["proxy"]
    if any(name in environ for name in _UV_INDEX_SETTINGS) or _uv_files_name_an_index(environ):
        return found
    if "find-links" in pip:
        found["UV_FIND_LINKS"] = ",".join(pip["find-links"].split())
    if pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        return {**found, NO_INDEX: "1"}
    if "index-url" in pip:
        found["UV_DEFAULT_INDEX"] = pip["index-url"]
    if "extra-index-url" in pip:
        found["UV_INDEX"] = " ".join(pip["extra-index-url"].split())
        # pip takes the best version over all indexes, uv by itself the first index that has the name
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return found


def _pip_variables(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name[4:].lower().replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith("PIP_") and value and name != "PIP_CONFIG_FILE"
    }


@functools.cache
def _read_pip_files(named: str | None, xdg: str | None, home: str | None) -> Mapping[str, str]:
    """Settings of pip's configuration files, later files winning, in pip's order of places."""
    if named == os.devnull:
        return {}
    found: dict[str, str] = {}
    for path in [*_pip_places(xdg, home), *([Path(named)] if named else [])]:
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue  # pip would refuse to work with it; its other files still count
        for section in ("global", "install"):
            if parser.has_section(section):
                found.update({key.replace("_", "-"): value.strip() for key, value in parser.items(section)})
    return found


def _pip_places(xdg: str | None, home: str | None) -> Iterator[Path]:
    yield Path("/etc/pip.conf")
    yield Path("/etc/xdg/pip/pip.conf")
    if sys.platform == "darwin":
        yield Path("/Library/Application Support/pip/pip.conf")
    if home:
        yield Path(home) / ".pip/pip.conf"
        if sys.platform == "darwin":
            yield Path(home) / "Library/Application Support/pip/pip.conf"
        yield Path(xdg or f"{home}/.config") / "pip/pip.conf"
    yield Path(sys.prefix) / "pip.conf"


def _uv_files_name_an_index(environ: Mapping[str, str]) -> bool:
    """Whether a uv configuration of the user or the system has index settings, which uv reads by itself."""
    home = environ.get("HOME", "")
    places = [Path("/etc/uv/uv.toml"), Path(environ.get("XDG_CONFIG_HOME") or f"{home}/.config") / "uv/uv.toml"]
    if "UV_CONFIG_FILE" in environ:
        places.append(Path(environ["UV_CONFIG_FILE"]))
    for path in places:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if any(word in text for word in _CONFIG_WORDS):
            return True
    return False
