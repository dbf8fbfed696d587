"""The forms of C, C++ and Cython code whose coming or going hints at an improvement."""

from __future__ import annotations

import re

from miners.judge.forms import Form, any_of

NATIVE = (
    Form(
        "nogil",
        "runs without the interpreter lock",
        any_of("nogil", r"Py_BEGIN_ALLOW_THREADS", r"NPY_BEGIN_\w*THREADS\w*", "gil_scoped_release"),
    ),
    Form(
        "typed",
        "typed Cython variables or memoryviews",
        any_of(
            r"cdef (?!class|extern|struct|enum)\w",
            "cpdef",
            r"(?:double|float|int|intp_t|npy_intp|Py_ssize_t)\s?\[[:,]",
            r"(?:cnp|np)\.\w{1,20}_t\b",
            r"cython\.(?:locals|int|double|final|cfunc|inline)\b",
        ),
    ),
    Form(
        "cython_direct",
        "Cython code that needs less of Python's call machinery",
        any_of(
            "cdef inline",
            r"cython\.(?:final|cfunc|ccall|inline|freelist|internal|no_gc)\b",
            r"__new__\(",
            r"\w{1,30}\[[:, ]{0,12}::1\]",
            r"noexcept\b",
            r"(?:from|cimport) cpython\b",
            r"cdef (?:list|dict|tuple|bytes|str|unicode|bytearray|set)\b",
        ),
    ),
    Form(
        "cython_checks_off",
        "Cython's run-time checks are off",
        any_of("boundscheck", "wraparound", "cdivision", "nonecheck", "initializedcheck", "infer_types"),
    ),
    Form(
        "simd",
        "vector instructions",
        any_of(
            r"_mm\d*_\w",
            r"npyv_\w",
            r"v(?:ld|st|add|mul|dup|ceq)\w{0,6}_[fsu]\d",
            "NPY_SIMD",
            "AVX",
            r"SSE\d?\b",
            "NEON",
            "SVE",
            r"__m\d{3}",
            "hn::",
            "hwy",
            "VSX",
            "x86_simd",
            "SVML",
            "__svml",
            "__builtin_",
        ),
    ),
    Form(
        "unchecked_calls",
        "macros and calls that skip checks",
        any_of(
            r"Py(?:List|Tuple)_(?:GET|SET)_\w",
            r"Py(?:Bytes|String|Unicode|ByteArray|Float|Set|Dict)_(?:AS|GET|READ|WRITE|DATA)_?[A-Z]*\(",
            r"_PyObject_\w",
            "METH_FASTCALL",
            "METH_O\\b",
            r"\w{0,12}[vV]ectorcall",
            r"PyDict_(?:GetItem|Next)",
            r"tp_\w",
            r"PyArray_(?:DATA|BYTES|NDIM|DIMS|STRIDES)\b",
        ),
    ),
    Form(
        "common_types_first",
        "a way of its own for common types",
        any_of(
            r"Py\w{1,20}_CheckExact",
            r"PyUnicode_(?:IS_\w|KIND\b)",
            r"Py_IS_TYPE\(",
            r"Py_TYPE\(\w{1,40}\) ==",
            r"type_?num == ",
            r"case NPY_\w",
            r"(?:elsize|item_?size) == ",
        ),
    ),
    Form(
        "contiguous",
        "a way of its own for contiguous or aligned memory",
        re.compile(
            r"contig(?:uous)?(?:\b|_)|CONTIG(?:UOUS)?\b|\bPyArray_IS(?:CARRAY|ALIGNED)|_REDUCE_ALIGNED|\bIS_\w{1,12}_REDUCE\b"
            r"|stride\w{0,4}(?:\[\w{1,8}\])? == (?:\d|sizeof|item|elsize)"
        ),
    ),
    Form(
        "compiler_hints",
        "hints for the compiler",
        any_of(
            r"(?:__)?restrict\b",
            r"(?:\w{1,16}_)?(?:UN)?LIKELY\(",
            r"(?:un)?likely\(",
            "NPY_PREFETCH",
            "prefetch",
            "inline\\b",
            r"\w{1,16}_F?INLINE\b",
            "__forceinline",
            "noexcept",
            r"NPY_GCC_\w",
            "__attribute__",
            r"pragma (?:GCC|clang|omp|unroll|ivdep)",
            r"\w{0,20}(?:UNROLL|unroll)\w",
        ),
    ),
    Form("block_copy", "memory is moved in blocks", any_of(r"mem(?:cpy|move|set|cmp|chr)\(", r"std::(?:copy|fill)\b")),
    Form(
        "fewer_allocations",
        "fewer allocations",
        None,
        any_of(
            r"(?:malloc|calloc|realloc|strdup)\b",
            r"PyMem_\w",
            r"PyObject_(?:Malloc|MALLOC|New|Init)",
            r"PyDataMem_\w",
            r"PyArray_(?:malloc|New|Copy|EMPTY|ZEROS|From|Simple)",
            r"std::vector",
            r"new \w{1,40}[\[(]",
        ),
    ),
    Form(
        "fewer_objects",
        "fewer Python objects are made or counted",
        None,
        any_of(
            r"Py(?:Long|Float|Int|Bool|Unicode|Bytes|String|Tuple|List|Dict|Complex|Slice)_(?:From|New|Pack)",
            "Py_BuildValue",
            r"Py_X?(?:IN|DE)CREF",
        ),
    ),
    Form(
        "fewer_interpreter_calls",
        "fewer calls of the interpreter's general functions",
        None,
        any_of(
            r"PyObject_(?:Call|GetAttr|SetAttr|HasAttr|Is|GetItem|SetItem|Rich|Size|Length|GetIter|Str)\w*",
            r"PyArg_(?:Parse|Unpack)",
            r"PySequence_\w",
            r"PyMapping_\w",
            r"PyNumber_\w",
            r"PyIter_\w",
            r"PyImport_\w",
            r"PyErr_(?:Occurred|Clear|Fetch|ExceptionMatches)",
            r"PyUnicode_\w",
        ),
    ),
    Form(
        "made_once",
        "names and objects are made once and kept",
        any_of(
            r"Py(?:Unicode|String)_Intern\w",
            r"interned?(?:_str\w{0,8})?\b",
            r"_Py_ID\(",
            r"_?Py_IDENTIFIER",
            r"npy_cache_import\w{0,10}",
            r"static (?:PyObject|PyTypeObject|PyArray_Descr) ?\*",
            r"free_?list",
        ),
    ),
    Form(
        "buffers",
        "memory is reused or on the stack",
        any_of(
            r"alloca\(",
            r"\w{0,16}(?:small|stack|static|scratch|work)_?(?:buf|mem|space)\w{0,8}",
            r"\w{1,30}\[\w{0,20}(?:BUF|STACK|SMALL|MAXDIMS)\w{0,20}\]",
            r"reserve\(",
        ),
    ),
    Form(
        "moved_values",
        "C++ values are moved or referred to instead of copied",
        re.compile(
            r"\bstd::(?:move|forward)\b|\bconst [\w:]{1,40}(?:<[\w:, ]{0,40}>)? ?&\w|\bstring_view\b|\bemplace\w{0,8}\("
            r"|\bspan<|\bconstexpr\b|\bunordered_(?:map|set)\b"
        ),
    ),
    Form(
        "cheaper_arithmetic",
        "shifts and products instead of divisions and functions",
        re.compile(r"<<|>>| [*&] "),
        re.compile(r"\b(?:pow|fmod|floor|ceil|sqrt|exp|log|l?rint|round)[fl]?\(| [/%] \w|\b(?:double|float)\b"),
    ),
    Form("lookup_table", "results are looked up", any_of(r"static const \w{1,20}(?: \w{1,20})? \w{1,40}\[")),
    Form(
        "blas",
        "a linear-algebra library does it",
        any_of(r"cblas_\w", r"[sdcz](?:gemm|gemv|dot|axpy|syrk)\b", "get_blas_funcs"),
    ),
)
