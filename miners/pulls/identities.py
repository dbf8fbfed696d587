"""As whom GitHub is asked, and what each of them may still ask. Keys come from the environment only."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import github
from github import Auth
from github.Requester import Requester

from perfquarry.data.errors import InputError
from perfquarry.miners.settings import PullSettings

GITHUB = "https://api.github.com"
_USER_AGENT = "perfquarry"


@dataclass
class Quota:
    """What is left of one resource ('core', 'graphql') for one identity."""

    remaining: int = 1_000_000
    """Unknown until GitHub says: as much as can be."""
    until: float = 0.0
    """Time (of `time.time`) before which it is not asked: a reset, or the end of a secondary limit."""
    secondary: int = 0
    """Secondary limits met in a row."""


@dataclass
class Identity:
    """A token, or an installation of an app."""

    name: str
    """For people: 'token 2 of 3'. Never the token."""
    requester: Requester
    quotas: dict[str, Quota] = field(default_factory=dict)

    def quota(self, resource: str) -> Quota:
        """That of a resource."""
        return self.quotas.setdefault(resource, Quota())

    def note(self, resource: str, headers: Mapping[str, str]) -> None:
        """Reads the rate limit from an answer's headers."""
        resource = headers.get("x-ratelimit-resource", resource)
        remaining, reset = headers.get("x-ratelimit-remaining"), headers.get("x-ratelimit-reset")
        if remaining is not None and reset is not None:
            quota = self.quota(resource)
            quota.remaining = int(float(remaining))
            if quota.remaining <= 0:
                quota.until = max(quota.until, float(reset) + 1)  # it may come at any time within that second


def base_url_of(settings: PullSettings, host: str) -> str:
    """Address of the REST API of a host: GitHub's own, or an Enterprise Server's."""
    if settings.base_url:
        return settings.base_url
    return GITHUB if host in ("", "github.com", "www.github.com") else f"https://{host}/api/v3"


def identities(settings: PullSettings, base_url: str, codebase: str) -> list[Identity]:
    """All that the environment names: GITHUB_TOKEN, GITHUB_TOKENS (several), GITHUB_APP_ID with its private key.

    The installation of an app is GITHUB_APP_INSTALLATION_ID, else that of the repository.

    Raises:
        InputError: there is none, or the app's key cannot be read.
    """
    listed = [os.environ.get("GITHUB_TOKEN", ""), *re.split(r"[\s,]+", os.environ.get("GITHUB_TOKENS", ""))]
    tokens = list(dict.fromkeys(token.strip() for token in listed if token.strip()))
    found = [
        Identity(f"token {number} of {len(tokens)}", _requester(Auth.Token(token), settings, base_url))
        for number, token in enumerate(tokens, 1)
    ]
    if os.environ.get("GITHUB_APP_ID"):
        found.append(Identity("the app's installation", _installation(settings, base_url, codebase)))
    if not found:
        raise InputError(
            "no access to GitHub: set GITHUB_TOKEN (GITHUB_TOKENS for several), or GITHUB_APP_ID and "
            "GITHUB_APP_PRIVATE_KEY; without any, --offline reads what git alone knows"
        )
    return found


def _installation(settings: PullSettings, base_url: str, codebase: str) -> Requester:
    app = Auth.AppAuth(os.environ["GITHUB_APP_ID"], _private_key())
    named = os.environ.get("GITHUB_APP_INSTALLATION_ID")
    try:
        if named:
            number = int(named)
        else:
            requester = _requester(app, settings, base_url)
            number = int(requester.requestJsonAndCheck("GET", f"/repos/{codebase}/installation")[1]["id"])
        return _requester(app.get_installation_auth(number), settings, base_url)
    except (github.GithubException, OSError, ValueError, TypeError) as error:
        reason = getattr(error, "status", type(error).__name__)
        raise InputError(
            f"the GitHub App has no installation for {codebase} ({reason}): check GITHUB_APP_ID, its key and "
            "GITHUB_APP_INSTALLATION_ID"
        ) from None  # the cause may quote the key


def _private_key() -> str:
    if key := os.environ.get("GITHUB_APP_PRIVATE_KEY"):
        return key.replace("\\n", "\n")
    path = os.environ.get("GITHUB_APP_PRIVATE_KEY_PATH")
    if not path:
        raise InputError("GITHUB_APP_ID is set without GITHUB_APP_PRIVATE_KEY or GITHUB_APP_PRIVATE_KEY_PATH")
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise InputError(f"the app's private key cannot be read from GITHUB_APP_PRIVATE_KEY_PATH: {error}") from error


def _requester(auth: Auth.Auth, settings: PullSettings, base_url: str) -> Requester:
    """PyGithub's, without its own retries and pauses: `miners.pulls.client` has them for all identities together."""
    return github.Github(
        auth=auth,
        base_url=base_url,
        timeout=settings.timeout,
        user_agent=_USER_AGENT,
        retry=None,
        seconds_between_requests=None,
        seconds_between_writes=None,
    ).requester


def freest(those: Sequence[Identity], resource: str) -> Identity:
    """The one that may ask now and has most left; else the one that may ask soonest."""
    now = time.time()
    return max(those, key=lambda one: _rank(one.quota(resource), now))


def _rank(quota: Quota, now: float) -> tuple[bool, float]:
    free = quota.until <= now
    return free, quota.remaining if free else -quota.until
