"""Asks GitHub: one call at a time, as whoever may ask most, again after faults, waiting where it says so."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, cast

import github
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from perfquarry.data.errors import GithubFailed, InputError
from perfquarry.llm.secrets import without_secrets
from perfquarry.miners.pulls.identities import Identity, freest
from perfquarry.miners.settings import PullSettings

log = logging.getLogger("perfquarry.pulls")

T = TypeVar("T")

_MINUTE = 60.0


class Page(NamedTuple):
    """One answer of the REST API."""

    modified: bool
    """False: it is as it was when it had the ETag."""
    value: list[dict[str, Any]]
    etag: str
    more: bool
    """Whether a further page follows."""


class _Fault(Exception):
    """A call failed in a way that may pass."""


class _Limited(Exception):
    """A rate limit: it costs time, not an attempt."""


@dataclass
class GitHubClient:
    """GitHub's GraphQL and REST APIs, through PyGithub's requesters."""

    identities: list[Identity]
    """As whom it is asked; each call takes the one with most left."""
    settings: PullSettings
    report: Callable[[str], None] = lambda text: None
    """Gets a line about each wait, about once a second while it lasts."""
    calls: Counter[str] = field(default_factory=Counter)
    """'graphql', 'rest', 'not_modified' (of rest), 'retried', 'limited'."""
    waited: float = 0.0
    """Seconds spent on rate limits."""

    def query(self, text: str, variables: dict[str, Any], lighter: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """The data of a GraphQL query; what GitHub could not find is null in it.

        Args:
            text: the query.
            variables: its variables; read anew for each attempt.
            lighter: called before each attempt after two faults in a row: the query may have been too much.

        Raises:
            InputError: no such repository, or every key is refused.
            GithubFailed: GitHub refuses the query, or still fails after all retries.
        """

        def ask(identity: Identity) -> dict[str, Any]:
            self.calls["graphql"] += 1
            headers, body = identity.requester.graphql_query(text, variables)
            identity.note("graphql", headers)
            data = body.get("data")
            if not isinstance(data, dict):
                raise _Fault(f"an answer without data: {str(body)[:200]}")
            return data

        return self._persistently("graphql", ask, lighter)

    def get(self, path: str, parameters: dict[str, Any], etag: str | None = None) -> Page:
        """One page of a list of the REST API; with an `etag` it costs no quota as long as nothing changed.

        An ETag holds for whom it was given to: calls with one, if only an empty one, are made as the first identity.

        Raises:
            InputError, GithubFailed: as `query` does.
        """

        def ask(identity: Identity) -> Page:
            self.calls["rest"] += 1
            wanted = {"If-None-Match": etag} if etag else {}
            requester = identity.requester
            status, headers, body = requester.requestJson("GET", path, dict(parameters), wanted)
            identity.note("core", headers)
            if status == 304:
                self.calls["not_modified"] += 1
                return Page(False, [], etag or "", False)
            value = json.loads(body)
            if status >= 400:
                raise requester.createException(status, headers, value if isinstance(value, dict) else {})
            if not isinstance(value, list):
                raise _Fault(f"an answer that is no list: {str(value)[:200]}")
            return Page(True, value, headers.get("etag", ""), 'rel="next"' in headers.get("link", ""))

        return self._persistently("core", ask, first=etag is not None)

    def _persistently(
        self,
        resource: str,
        ask: Callable[[Identity], T],
        lighter: Callable[[], None] = lambda: None,
        *,
        first: bool = False,
    ) -> T:
        def before(state: RetryCallState) -> None:
            self.calls["retried"] += 1
            log.info("GitHub: %s; trying again", state.outcome and state.outcome.exception())
            if state.attempt_number > 1:
                lighter()

        retrying = Retrying(
            retry=retry_if_exception_type(_Fault),
            stop=stop_after_attempt(self.settings.retries + 1),
            wait=wait_random_exponential(multiplier=self.settings.backoff, max=_MINUTE),
            before_sleep=before,
            reraise=True,
        )
        try:
            return cast(T, retrying(self._once, resource, ask, first))
        except _Fault as fault:
            raise GithubFailed(
                f"GitHub failed {self.settings.retries + 1} times in a row; at last: {fault}. "
                "What was read is kept: run again to go on."
            ) from fault.__cause__

    def _once(self, resource: str, ask: Callable[[Identity], T], first: bool) -> T:
        while True:
            identity = self.identities[0] if first else freest(self.identities, resource)
            self._wait_for(identity, resource)
            try:
                answer = ask(identity)
            except github.GithubException as error:
                try:
                    return cast(T, self._partial(identity, resource, error))
                except _Limited:
                    self.calls["limited"] += 1
                    continue
            except (OSError, ValueError) as error:  # requests' errors are OSErrors; ValueError: half a body
                raise _Fault(without_secrets(f"{type(error).__name__}: {error}"[:300])) from error
            identity.quota(resource).secondary = 0
            return answer

    def _wait_for(self, identity: Identity, resource: str) -> None:
        until = identity.quota(resource).until
        if until - time.time() > self.settings.longest_wait:
            raise GithubFailed(f"GitHub's rate limit lasts {until - time.time():.0f} s more: run again after that")
        if until > time.time():
            log.info("GitHub's rate limit (%s, %s): waiting %.0f s", resource, identity.name, until - time.time())
        while (left := until - time.time()) > 0:
            self.report(f"GitHub's rate limit ({resource}, {identity.name}): {left:.0f} s left")
            pause = min(left, 1.0)
            time.sleep(pause)
            self.waited += pause

    def _partial(self, identity: Identity, resource: str, error: github.GithubException) -> dict[str, Any]:
        """The data of an answer that reports errors but those of things not found; raises for all others."""
        headers = {name.lower(): value for name, value in (error.headers or {}).items()}
        identity.note(resource, headers)
        body = error.data if isinstance(error.data, dict) else {}
        listed = body.get("errors")
        errors = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        message = "; ".join(str(one.get("message", "")) for one in errors) or str(body.get("message") or "")
        words = without_secrets(f"HTTP {error.status}: {message}"[:300])
        if _is_limit(error.status, errors, message, headers):
            self._block(identity, resource, message, headers)
            raise _Limited(words)
        if error.status == 401:
            self._drop(identity, words)
            raise _Limited(words)
        data = body.get("data")
        if errors and all(one.get("type") == "NOT_FOUND" for one in errors) and isinstance(data, dict):
            if data.get("repository", ...) is None:
                raise InputError(f"GitHub knows no such repository, or these keys may not see it: {message}")
            return data
        if error.status >= 500 or _may_pass(errors):
            raise _Fault(words)
        if error.status == 404:
            raise InputError(f"GitHub knows no such repository, or these keys may not see it ({words})")
        raise GithubFailed(f"GitHub refuses what we ask: {words}")

    def _block(self, identity: Identity, resource: str, message: str, headers: Mapping[str, str]) -> None:
        """As GitHub's "Best practices for using the REST API" say under "Handle rate limit errors"."""
        quota = identity.quota(resource)
        if (after := headers.get("retry-after", "")).isdigit():
            wait = float(after)
        elif quota.remaining <= 0 and "secondary" not in message.lower():
            return  # until the reset, as `Identity.note` read
        else:
            wait = self.settings.secondary_wait * 2**quota.secondary
            quota.secondary += 1
        quota.until = max(quota.until, time.time() + wait)

    def _drop(self, identity: Identity, words: str) -> None:
        log.warning("GitHub refuses %s (%s)", identity.name, words)
        self.identities.remove(identity)
        if not self.identities:
            raise InputError(f"GitHub refuses every key in the environment ({words}): check GITHUB_TOKEN, GITHUB_APP_*")


def _is_limit(status: int, errors: Sequence[Mapping[str, Any]], message: str, headers: Mapping[str, str]) -> bool:
    words = "rate limit" in message.lower() or "abuse detection" in message.lower()
    if errors:
        return words or any(str(one.get("type", "")).startswith("RATE_LIMIT") for one in errors)
    spent = headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers
    return status == 429 or (status == 403 and (words or spent))


def _may_pass(errors: Sequence[Mapping[str, Any]]) -> bool:
    """Errors of GitHub's own machinery: they have no type, or speak of a timeout."""
    words = ("something went wrong", "timeout", "timed out", "couldn't respond")
    return any(any(word in str(one.get("message", "")).lower() for word in words) for one in errors)
