"""What both SDKs have in common: calls, retries by the SDK, errors, parameters a server does not know."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from perfquarry.data.errors import InputError, ModelFailed
from perfquarry.llm.failures import about_the_text, failed, loaded, words_of
from perfquarry.llm.request import Reply, Request
from perfquarry.llm.settings import LlmSettings

R = TypeVar("R")
_log = logging.getLogger("perfquarry.llm")


def environment(provider: str, keys: Sequence[str], default: str, settings: LlmSettings) -> tuple[str | None, str]:
    """Key and address of a provider. A server of one's own needs no key.

    Raises:
        InputError: no key, or an address that holds one.
    """
    address = settings.base_url or os.environ.get(f"{provider.upper()}_BASE_URL") or default
    if "@" in urlsplit(address).netloc:
        raise InputError(f"the base_url of {provider} holds credentials: put the key into {keys[0]}")
    key = next((value for name in keys if (value := os.environ.get(name))), None)
    if key is None and address == default:
        raise InputError(f"no key of {provider} in the environment: set {keys[0]}, or base_url for a server without")
    return key, address


class SdkProvider(ABC):
    """A provider reached by its SDK, which retries 408, 409, 429, 5xx and lost connections as Retry-After says."""

    name: str
    where: str
    """Address of the server; replies of different servers are kept apart."""
    droppable: Mapping[str, tuple[str, ...]]
    """Parameters that can be done without, and words of a refusal that name them."""
    unsupported: frozenset[str] = frozenset()
    """What is left out from the beginning."""
    failures: tuple[type[Exception], ...]
    """The SDK's errors."""

    def __init__(self) -> None:
        self._unsupported: dict[str, frozenset[str]] = {}

    @staticmethod
    @abstractmethod
    def body(request: Request[Any], unsupported: frozenset[str] = frozenset()) -> dict[str, Any]:
        """The request as the provider's API takes it, without the parameters that the server does not support."""

    @staticmethod
    @abstractmethod
    def reply(body: Mapping[str, Any]) -> Reply:
        """The reply in a response's body, whatever that is."""

    @abstractmethod
    def _post(self, body: dict[str, Any]) -> str:
        """Sends a body; returns that of the response."""

    @abstractmethod
    def submit(self, requests: Sequence[Request[Any]]) -> str:
        """Begins a batch; returns its id. Raises ModelFailed."""

    @abstractmethod
    def results(self, batch: str) -> dict[str, Reply | str] | None:
        """Replies of a batch, or why there is none, by custom_id; None while it works. Raises ModelFailed."""

    @abstractmethod
    def close(self) -> None:
        """Closes the connections."""

    def send(self, request: Request[Any]) -> Reply:
        """Asks, once more for each parameter the server turns out not to know.

        Raises:
            ModelFailed: the server fails for longer than retries last, or refuses us.
        """
        while True:
            unsupported = self._unsupported.get(request.model, self.unsupported)
            body = self.body(request, unsupported)
            response, error = self._try(partial(self._post, body))
            if error is None:
                return self.reply(loaded(response or ""))
            status = getattr(error, "status_code", 0)
            if instead := about_the_text(status, getattr(error, "body", "")):
                return instead
            parameter = self._unknown(error, unsupported) if status in (400, 404, 415, 422, 501) else None
            if parameter is None:
                raise failed(request.model, self.where, error)
            _log.warning("%s does not take %s: it is left out", request.model, parameter)
            self._unsupported[request.model] = unsupported | {parameter}

    def _unknown(self, error: Exception, unsupported: frozenset[str]) -> str | None:
        words = words_of(getattr(error, "body", "")).lower()
        for parameter, marks in self.droppable.items():
            if parameter not in unsupported and any(mark in words for mark in marks):
                return parameter
        return None

    def _try(self, call: Callable[[], R]) -> tuple[R | None, Exception | None]:
        """The error comes back as a value: raised inside `except`, ours would carry the SDK's with its headers."""
        try:
            return call(), None
        except Exception as error:
            if not isinstance(error, (*self.failures, ValueError)):
                raise
            return None, error

    def _done(self, what: str, call: Callable[[], R]) -> R:
        result, error = self._try(call)
        if error is not None:
            raise failed(what, self.where, error)
        if result is None:
            raise ModelFailed(f"{self.where} gave nothing for {what}")
        return result
