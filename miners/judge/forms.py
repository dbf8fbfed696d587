"""The forms of Python code whose coming or going hints at an improvement."""

from __future__ import annotations

import re
from typing import NamedTuple


class Form(NamedTuple):
    """A form of code that a change has more of (`gain`), less of (`drop`), or both; both must then hold."""

    name: str
    says: str
    """What it means, for people."""
    gain: re.Pattern[str] | None = None
    drop: re.Pattern[str] | None = None
    python_only: bool = False


def any_of(*alternatives: str) -> re.Pattern[str]:
    """One of several words or openings, each from the start of a word."""
    return re.compile(rf"\b(?:{'|'.join(alternatives)})")


LOOP = re.compile(r"^(?:async )?(?:for|while)\b[^\n]*:$|\b(?:for|while)\s?\(", re.M)
_RE_CALL = r"(?:match|sub|search|findall|split|finditer|fullmatch)\("
_LISTS = re.compile(r"\.(?:append|add|extend)\(")

PYTHON = (
    Form(
        "vectorised",
        "a loop became array operations or a built-in",
        re.compile(
            r"\b(?:np|numpy|xp|da|pd)\.\w|\.(?:sum|dot|cumsum|any|all|max|min|take|reduceat|nonzero|reshape)\("
            r"|\b(?:any|all|sum|map|chain|isin|where|einsum|searchsorted|bincount|from_iterable)\("
        ),
        LOOP,
        True,
    ),
    Form(
        "comprehension",
        "a loop of appends became a comprehension",
        re.compile(r"[\[({][^\n\[\]{}]{1,80} for \w"),
        _LISTS,
        True,
    ),
    Form(
        "batched_update",
        "single updates in a loop became one call",
        re.compile(r"\.(?:update|extend|writelines|join|executemany|add_edges_from|add_nodes_from|difference)\("),
        LOOP,
        True,
    ),
    Form(
        "set_membership",
        "a set or dictionary instead of a search",
        re.compile(r"\b(?:set|frozenset)\(|\bin \{|= \{[^:\n}]+\}|\.(?:intersection|issubset|isdisjoint|difference)\("),
        None,
        True,
    ),
    Form(
        "caching",
        "a result is kept for later",
        any_of(
            "lru_cache",
            "cached_?property",
            r"functools\.cache\b",
            r"cache\[",
            r"cache\.get\(",
            "memoi[sz]e",
            "cacheit",
            "cached\\b",
            "_cached",
            r"_?memo\[",
            r"\w{1,40}_cache\b",
            r"if (self\.\w{1,40}) is None:\s+\1 =",
        ),
    ),
    Form(
        "precompiled",
        "a pattern or format is compiled once instead of at each use",
        re.compile(rf"\bre\.compile\(|_(?:re|regex|pattern|rx)\.{_RE_CALL}|\bStruct\(|\b[A-Z_]{{4,}}\("),
        re.compile(rf"\bre\.{_RE_CALL}|\bstruct\.(?:un)?pack(?:_from)?\("),
        True,
    ),
    Form(
        "regex_dropped",
        "fewer regular expressions are run",
        None,
        re.compile(rf"\b(?:re|\w{{0,30}}(?:_re|regex|pattern))\.{_RE_CALL}|\bre\.compile\("),
        True,
    ),
    Form(
        "local_alias", "an attribute is looked up once", re.compile(r"^[ \t]*_?\w+ = \w+(?:\.\w+)+$", re.M), None, True
    ),
    Form(
        "fewer_copies",
        "fewer copies or conversions",
        None,
        re.compile(
            r"\b(?:list|tuple|dict|deepcopy|sorted|np\.array)\(|\.(?:copy|tolist|toarray|todense|keys"
            r"|astype|items)\(|\[:\]"
        ),
    ),
    Form(
        "no_copy",
        "works in place or on a view",
        re.compile(
            r"\b(?:copy\s?=\s?False|out\s?=\s?\w|asarray\(|memoryview\(|frombuffer\(|np\.empty\(|inplace\s?=\s?True"
            r"|overwrite_\w{1,20}\s?=\s?True|fromiter\(|ascontiguousarray\(|copyto\(|bytearray\()"
        ),
    ),
    Form(
        "string_building",
        "pieces are joined once instead of added up",
        re.compile(r"\.join\(|\b(?:bytearray|BytesIO|StringIO)\("),
        re.compile(r"\+="),
        True,
    ),
    Form("slots", "instances without a dictionary", any_of("__slots__", "slots=True")),
    Form(
        "containers",
        "a container or tool made for the job",
        any_of(
            "bisect",
            "insort",
            "heapq",
            "heappush",
            "heappop",
            "heapify",
            "nlargest",
            "nsmallest",
            "deque",
            "Counter",
            "defaultdict",
            "itemgetter",
            "attrgetter",
            "islice",
            "accumulate",
            "groupby",
            "starmap",
            "itertools",
            "partial\\b",
        ),
        None,
        True,
    ),
    Form(
        "lazy_iteration",
        "items are produced one by one instead of in a list",
        re.compile(
            r"\((?:[^\n\[\]()]|\([^\n()]{0,40}\)){1,80} for \w"
            r"|\.iter(?:items|values|keys)\(|\b(?:xrange|izip|imap|islice"
            r"|map)\(|\byield\b"
        ),
        re.compile(r"\[[^\n\[\]]{1,80} for \w|\.(?:items|values|keys)\(\)|\b(?:range|zip|list)\(|\.append\("),
        True,
    ),
    Form(
        "linear_search_dropped",
        "fewer searches, shifts or sorts of lists",
        None,
        re.compile(
            r"\.(?:pop\(0\)|insert\(0,|index\(|remove\(|count\(|sort\()|\bnot in \w{1,40}(?:\.\w{1,40})*:"
            r"|\bin (?:list|sorted)\("
        ),
    ),
    Form(
        "type_check",
        "an identity instead of a general check",
        re.compile(r"\btype\(\w{1,40}\) (?:is|in)\b|\.__class__ is\b|\bis (?:None|True|False|not None)\b"),
        any_of(r"isinstance\(", r"hasattr\(", r"getattr\(", r"issubclass\(", r"callable\("),
    ),
    Form(
        "checks_dropped",
        "fewer checks, conversions or introspection",
        None,
        any_of(
            r"hasattr\(",
            r"getattr\(",
            r"inspect\.",
            r"isinstance\(",
            "try:",
            r"eval\(",
            r"exec\(",
            r"sympify\(",
            r"simplify\(",
            r"asarray\(",
            r"\*\*kwargs",
        ),
    ),
    Form(
        "cheaper_form",
        "a cheaper way to ask the same",
        re.compile(
            r"\.(?:startswith|translate|partition|rpartition|get)\(|\b(?:math\.\w|ord\(|except (?:Key|Index"
            r"|Attribute)Error"
            r"|__contains__\b|__getitem__\b|__new__\b)"
        ),
    ),
    Form(
        "threads",
        "work is done in parallel",
        any_of("prange", "ThreadPool", "omp parallel", "num_threads", r"concurrent\.futures", r"asyncio\.gather\("),
    ),
)
