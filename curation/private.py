"""Secrets and e-mail addresses of people, which nothing we publish may hold."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import NamedTuple

_SECRETS: dict[str, re.Pattern[str]] = {
    "private key": re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    "AWS key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "GitHub token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})\b"),
    "GitLab token": re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}\b"),
    "Slack token": re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}\b"),
    "Slack webhook": re.compile(r"hooks\.slack\.com/services/T\w+/B\w+/\w{16,}"),
    "Google key": re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"),
    "OpenAI or Anthropic key": re.compile(r"\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}\b"),
    "Hugging Face token": re.compile(r"\bhf_[A-Za-z0-9]{30,}\b"),
    "PyPI token": re.compile(r"\bpypi-AgEI[A-Za-z0-9_-]{50,}"),
    "JSON web token": re.compile(r"\beyJ[A-Za-z0-9_-]{10,1000}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    "password in an address": re.compile(
        r"\b[a-z][a-z0-9+.-]{0,30}://[^/\s:@'\"]+:(?!\*|<|\{|%|\$)([^/\s@'\"]{3,})@[\w.-]+"
    ),
}
_ASSIGNED = re.compile(
    r"(?i)(?:passw(?:or)?d|secret|token|api_?key|access_?key)\w{0,64}[\"']?\s*[:=]\s*[rbu]?[\"']([^\"'\s]{12,})[\"']"
)
_EMAIL = re.compile(
    r"(?<![\w.+%@/-])[A-Za-z0-9][\w.+%-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,18}\b(?![\w-]*[:(/@])"
)
_NOBODY = re.compile(
    r"(?i)@(?:[\w-]+\.)*(?:example|test|invalid|localhost|local)(?:\.(?:com|org|net))?$|^(?:git|noreply|no-reply)@"
    r"|@(?:users\.noreply\.github\.com)$|\.(?:py|png|jpe?g|gif|svg|txt|html?|js|css|json|md|rst)$"
)
_RANDOM_BITS = 3.3
"""Entropy, bits a character, from which an assigned text looks drawn by chance."""
REMOVED = "<address removed>"


class Secret(NamedTuple):
    """A text that looks like a secret, and what kind it is of."""

    kind: str
    text: str


def secrets_in(text: str) -> list[Secret]:
    """What looks like a secret, each once: in a provider's published format, or assigned and drawn by chance."""
    found = [Secret(kind, match[0]) for kind, one in _SECRETS.items() for match in one.finditer(text)]
    found += [
        Secret("assigned secret", match[1])
        for match in _ASSIGNED.finditer(text)
        if _entropy(match[1]) >= _RANDOM_BITS and re.search(r"\d", match[1]) and re.search(r"[A-Za-z]", match[1])
    ]
    return list(dict.fromkeys(found))


def addresses_in(text: str) -> list[str]:
    """E-mail addresses in a text, each once. Reserved (RFC 2606, RFC 6761) and no-reply addresses are nobody's."""
    addresses = (match[0] for match in _EMAIL.finditer(text)) if "@" in text else ()
    return list(dict.fromkeys(one for one in addresses if not _NOBODY.search(one)))


def without_addresses(text: str) -> str:
    """The text with every person's address replaced."""
    return _EMAIL.sub(lambda match: match[0] if _NOBODY.search(match[0]) else REMOVED, text)


def masked(secret: str) -> str:
    """Enough of it to find it again, not enough to use it."""
    return f"{secret[:4]}…{secret[-4:]} ({len(secret)} characters)" if len(secret) > 12 else f"{secret[:2]}…"


def _entropy(text: str) -> float:
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)
