"""The forms of C, C++ and Cython code whose coming or going hints at an improvement."""

from __future__ import annotations

from perfquarry.miners.judge.forms import Form, any_of

NATIVE = (
    Form(
        "nogil",
        "runs without the interpreter lock",
        any_of("nogil", r"Py_BEGIN_ALLOW_THREADS", r"NPY_BEGIN_\w*THREADS\w*"),
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
            r"_PyObject_\w",
            "METH_FASTCALL",
            r"\w{0,12}[vV]ectorcall",
            r"PyDict_GetItem",
            r"Py\w{1,20}_CheckExact",
            r"tp_\w",
            r"PyArray_(?:DATA|BYTES|NDIM|DIMS|STRIDES)\b",
        ),
    ),
    Form(
        "compiler_hints",
        "hints for the compiler",
        any_of(
            "restrict\\b",
            r"(?:NPY_)?(?:UN)?(?:LIKELY|likely)\(",
            "NPY_PREFETCH",
            "prefetch",
            "inline\\b",
            r"NPY_F?INLINE",
            "__forceinline",
            "noexcept",
            r"NPY_GCC_\w",
            "__attribute__",
        ),
    ),
    Form("block_copy", "memory is moved in blocks", any_of(r"mem(?:cpy|move|set|cmp|chr)\(", r"std::copy\b")),
    Form(
        "fewer_allocations",
        "fewer allocations and interpreter calls",
        None,
        any_of(
            r"(?:malloc|calloc|realloc)\b",
            r"PyMem_\w",
            r"PyDataMem_\w",
            r"PyArray_(?:malloc|New|Copy|EMPTY|ZEROS)",
            r"PyObject_(?:Call|GetAttr|Is)\w",
            r"PyUnicode_\w",
            "PyTuple_New",
            "Py_BuildValue",
            r"PyArg_Parse",
            r"PySequence_\w",
            r"PyNumber_\w",
            r"std::vector",
        ),
    ),
    Form(
        "blas",
        "a linear-algebra library does it",
        any_of(r"cblas_\w", r"[sdcz](?:gemm|gemv|dot|axpy|syrk)\b", "get_blas_funcs"),
    ),
)
