"""The forms of code whose coming or going hints at an improvement, for Python and for C, C++ and Cython."""

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


def _any(*alternatives: str) -> re.Pattern[str]:
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
        re.compile(r"[\[({][^\n\[\](){}]{1,80} for \w"),
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
        _any(
            "lru_cache", "cached_?property", r"functools\.cache\b", r"cache\[", r"cache\.get\(", "memoi[sz]e",
            "cacheit",
            "cached\\b", "_cached", r"_?memo\[", r"\w{1,40}_cache\b", r"if (self\.\w{1,40}) is None:\s+\1 ="
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
    Form("local_alias", "an attribute is looked up once",
        re.compile(r"^[ \t]*_?\w+ = \w+(?:\.\w+)+$", re.M), None, True),
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
    Form("slots", "instances without a dictionary", _any("__slots__", "slots=True")),
    Form(
        "containers",
        "a container or tool made for the job",
        _any(
            "bisect", "insort", "heapq", "heappush", "heappop", "heapify", "nlargest", "nsmallest", "deque", "Counter",
            "defaultdict", "itemgetter", "attrgetter", "islice", "accumulate", "groupby", "starmap",
            "itertools", "partial\\b",
        ),
        None,
        True,
    ),
    Form(
        "lazy_iteration",
        "items are produced one by one instead of in a list",
        re.compile(r"\([^\n\[\]()]{1,80} for \w|\.iter(?:items|values|keys)\(|\b(?:xrange|izip|imap|islice"
                   r"|map)\(|\byield\b"),
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
        _any(r"isinstance\(", r"hasattr\(", r"getattr\(", r"issubclass\(", r"callable\("),
    ),
    Form(
        "checks_dropped",
        "fewer checks, conversions or introspection",
        None,
        _any(
            r"hasattr\(", r"getattr\(", r"inspect\.", r"isinstance\(", "try:", r"eval\(", r"exec\(", r"sympify\(",
            r"simplify\(", r"asarray\(", r"\*\*kwargs",
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
        "module_constant",
        "something is computed once, at import",
        re.compile(r"^_?[A-Z][A-Z_\d]{2,40}(?:: [^\n=]{1,40})? = [\w({\[]|^_\w{2,40} = (?:frozenset|set"
                   r"|dict|\{|re\.|\()", re.M),
        re.compile(r"\S"),
        True,
    ),
    Form(
        "threads",
        "work is done in parallel",
        _any("prange", "ThreadPool", "omp parallel", "num_threads", r"concurrent\.futures", r"asyncio\.gather\("),
    ),
)  # fmt: skip

NATIVE = (
    Form("nogil", "runs without the interpreter lock",
        _any("nogil", r"Py_BEGIN_ALLOW_THREADS", r"NPY_BEGIN_\w*THREADS\w*")),
    Form(
        "typed",
        "typed Cython variables or memoryviews",
        _any(
            r"cdef (?!class|extern|struct|enum)\w", "cpdef",
            r"(?:double|float|int|intp_t|npy_intp|Py_ssize_t)\s?\[[:,]",
            r"(?:cnp|np)\.\w{1,20}_t\b", r"cython\.(?:locals|int|double|final|cfunc|inline)\b",
        ),
    ),
    Form(
        "cython_checks_off",
        "Cython's run-time checks are off",
        _any("boundscheck", "wraparound", "cdivision", "nonecheck", "initializedcheck", "infer_types"),
    ),
    Form(
        "simd",
        "vector instructions",
        _any(
            r"_mm\d*_\w", r"npyv_\w", r"v(?:ld|st|add|mul|dup|ceq)\w{0,6}_[fsu]\d", "NPY_SIMD", "AVX",
            r"SSE\d?\b", "NEON",
            "SVE", r"__m\d{3}", "hn::", "hwy", "VSX", "x86_simd", "SVML", "__svml", "__builtin_",
        ),
    ),
    Form(
        "unchecked_calls",
        "macros and calls that skip checks",
        _any(
            r"Py(?:List|Tuple)_(?:GET|SET)_\w", r"_PyObject_\w", "METH_FASTCALL", r"\w{0,12}[vV]ectorcall",
            r"PyDict_GetItem",
            r"Py\w{1,20}_CheckExact", r"tp_\w", r"PyArray_(?:DATA|BYTES|NDIM|DIMS|STRIDES)\b",
        ),
    ),
    Form(
        "compiler_hints",
        "hints for the compiler",
        _any(
            "restrict\\b", r"(?:NPY_)?(?:UN)?(?:LIKELY|likely)\(", "NPY_PREFETCH", "prefetch", "inline\\b",
            r"NPY_F?INLINE",
            "__forceinline", "noexcept", r"NPY_GCC_\w", "__attribute__",
        ),
    ),
    Form("block_copy", "memory is moved in blocks", _any(r"mem(?:cpy|move|set|cmp|chr)\(", r"std::copy\b")),
    Form(
        "fewer_allocations",
        "fewer allocations and interpreter calls",
        None,
        _any(
            r"(?:malloc|calloc|realloc)\b", r"PyMem_\w", r"PyDataMem_\w", r"PyArray_(?:malloc|New|Copy|EMPTY|ZEROS)",
            r"PyObject_(?:Call|GetAttr|Is)\w", r"PyUnicode_\w", "PyTuple_New", "Py_BuildValue", r"PyArg_Parse",
            r"PySequence_\w", r"PyNumber_\w", r"std::vector",
        ),
    ),
    Form("blas", "a linear-algebra library does it",
        _any(r"cblas_\w", r"[sdcz](?:gemm|gemv|dot|axpy|syrk)\b", "get_blas_funcs")),
)  # fmt: skip
