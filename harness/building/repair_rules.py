"""The table of repairs: what a log says, and what helps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.utils import canonicalize_name

from perfquarry.data.records import Amendment, Step
from perfquarry.harness.building.debian import HEADERS, LIBRARIES, PROGRAMS, SHARED_OBJECTS
from perfquarry.harness.building.distributions import candidates, distribution, is_namespace, known_distributions

_ABC = (
    r"(?:Async)?Generator|(?:Async)?Iterable|(?:Async)?Iterator|Awaitable|ByteString|Callable|Container|Coroutine"
    r"|Hashable|ItemsView|KeysView|(?:Mutable)?Mapping|MappingView|(?:Mutable)?Sequence|(?:Mutable)?Set|Reversible"
    r"|Sized|ValuesView"
)
_ALIASES = "bool|int|float|complex|object|str|long|unicode"


@dataclass(frozen=True)
class Rule:
    """When the pattern is found in a log, one of the remedies; the group of the pattern says which of `packages`."""

    name: str
    pattern: str
    python_below: str = ""
    """'X.Y': the first version without what the code uses."""
    requirements: tuple[str, ...] = ()
    packages: Mapping[str, str] = field(default_factory=dict)
    """Debian packages by what the pattern's group finds; the name of a pattern without a group is empty."""


def _gone(name: str, below: str, *patterns: str) -> Rule:
    return Rule(f"{name}: Python < {below}", "|".join(patterns), python_below=below)


def _no_name(module: str, *names: str) -> str:
    """A name that a module no longer has, however it is asked for."""
    listed = "|".join(names)
    return (
        rf"module '{module}' has no attribute '(?:{listed})'|cannot import name '(?:{listed})' from '{module}'"
        rf"|from {module} import [^\n]*\n[^\n]*cannot import name '(?:{listed})'"  # before Python 3.7
    )


def _no_module(*names: str) -> str:
    return rf"No module named '(?:{'|'.join(names)})(?:\.[\w.]+)?'"


_BATTERIES = (
    "aifc|audioop|cgi|cgitb|chunk|crypt|imghdr|lib2to3|mailcap|nntplib|ossaudiodev|pipes|sndhdr|spwd|sunau|telnetlib"
    "|uu|xdrlib"
)

_DJANGO = {
    "1.8": (_no_module(r"django\.db\.models\.related", r"django\.test\.simple"),),
    "1.9": (
        _no_module(r"django\.(?:forms|db\.backends)\.util", r"django\.utils\.(?:importlib|unittest|tzinfo)"),
        _no_module(r"django\.contrib\.contenttypes\.generic"),
        _no_name(r"django\.utils\.datastructures", "SortedDict", "MergeDict"),
    ),
    "1.10": (
        _no_name(r"django\.conf\.urls(?:\.defaults)?", "patterns"),
        _no_module(r"django\.core\.context_processors"),
    ),
    "1.11": (_no_name(r"django\.forms\.widgets", "flatatt"),),
    "2": (_no_module(r"django\.core\.urlresolvers"), r"missing 1 required positional argument: 'on_delete'"),
    "3": (
        _no_module(r"django\.utils\.(?:six|lru_cache)", r"django\.contrib\.staticfiles\.templatetags"),
        _no_name(r"django\.utils\.encoding", "python_2_unicode_compatible"),
        _no_name(r"django\.shortcuts", "render_to_response"),
    ),
    "4": (
        _no_name(r"django\.utils\.encoding", "force_text", "smart_text"),
        _no_name(r"django\.utils\.translation", r"u(?:n?p?gettext(?:_lazy)?)"),
        _no_name(r"django\.conf\.urls", "url"),
        _no_name(r"django\.utils\.http", "urlquote", "is_safe_url"),
    ),
    "5": (_no_name(r"django\.utils\.timezone", "utc"),),
}
"""What Django no longer has, by the first version without it."""

RULES: tuple[Rule, ...] = (
    # what the language and its library lost
    _gone("async as a name", "3.7", r"\basync\b[^\n]*\n\s*\^+\s*\n\s*SyntaxError: invalid syntax"),
    _gone("typing.GenericMeta", "3.7", _no_name("typing", "GenericMeta", "_ForwardRef")),
    _gone("time.clock", "3.8", _no_name("time", "clock")),
    _gone("cgi.escape", "3.8", _no_name("cgi", "escape")),
    _gone("platform.dist", "3.8", _no_name("platform", "dist", "linux_distribution")),
    _gone("fractions.gcd", "3.9", _no_name("fractions", "gcd")),
    _gone("base64.encodestring", "3.9", _no_name("base64", "encodestring", "decodestring")),
    _gone("tp_print", "3.9", r"PyTypeObject.*has no member named [‘']tp_print"),
    _gone("collections' ABCs", "3.10", _no_name("collections", _ABC)),
    _gone("PyThreadState's tracing", "3.10", r"has no member named [‘']use_tracing"),
    _gone("inspect.getargspec", "3.11", _no_name("inspect", "getargspec", "formatargspec")),
    _gone("asyncio.coroutine", "3.11", _no_name("asyncio", "coroutine")),
    _gone("longintrepr.h", "3.11", r"longintrepr\.h: No such file"),
    _gone("frame's fields", "3.11", r"incomplete typedef [‘']PyFrameObject"),
    _gone("distutils", "3.12", _no_module("distutils")),
    Rule("distutils of setuptools", _no_module("distutils"), requirements=("setuptools<81",)),
    _gone("imp, asyncore", "3.12", _no_module("imp", "asyncore", "asynchat", "smtpd")),
    _gone("importer of six", "3.12", r"No module named '(?:[\w.]+\.)?six\.moves"),
    _gone("SafeConfigParser", "3.12", _no_name("configparser", "SafeConfigParser"), "no attribute 'readfp'"),
    _gone("pkgutil.ImpImporter", "3.12", _no_name("pkgutil", "ImpImporter")),
    _gone("ssl.wrap_socket", "3.12", _no_name("ssl", "wrap_socket", "match_hostname")),
    _gone("PyLongObject's digits", "3.12", r"PyLongObject.*has no member named [‘']ob_digit"),
    _gone("PyThreadState's exception", "3.12", r"has no member named [‘']curexc_type"),
    _gone("numpy.distutils", "3.12", _no_module(r"numpy\.distutils")),
    _gone("dead batteries", "3.13", _no_module(_BATTERIES)),
    _gone("unittest.makeSuite", "3.13", _no_name("unittest", "makeSuite", "findTestCases")),
    _gone("ast.Str", "3.14", _no_name("ast", "Str", "Num", "NameConstant", "Bytes")),
    # what libraries lost
    Rule("2to3 by setuptools", "use_2to3 is invalid", requirements=("setuptools<58",)),
    Rule("setuptools' Feature", _no_name("setuptools", "Feature"), requirements=("setuptools<46",)),
    Rule("setuptools' test", _no_module(r"setuptools\.command\.test"), requirements=("setuptools<72",)),
    Rule("distutils' msvccompiler", _no_module(r"distutils\.msvccompiler"), requirements=("setuptools<74",)),
    Rule("pkg_resources", _no_module("pkg_resources"), requirements=("setuptools<81",)),
    Rule("numpy's aliases", _no_name("numpy", _ALIASES), requirements=("numpy<1.24",)),
    Rule(
        "numpy 2",
        r"was removed in the NumPy 2\.0 release|compiled using NumPy 1\.x cannot be run in|numpy\.dtype size changed",
        requirements=("numpy<2",),
    ),
    Rule(
        "Cython 3",
        r"\.pyx:\d+:\d+: (?:undeclared name not builtin: (?:long|unicode|basestring|xrange)"
        r"|Cannot assign type .*(?:noexcept|except))",
        requirements=("cython<3",),
    ),
    Rule(
        "Cython",
        r"(?i:\b(?:needs|requires|install) cython\b)|fatal error: [\w./-]+\.(?:c|cc|cpp|cxx): No such file",
        requirements=("cython",),
    ),
    Rule("pytest-benchmark 3.2", r"self\.pytest_warn = config\.warn", requirements=("pytest-benchmark>=3.2",)),
    Rule(
        "pytest 4",
        r"yield tests were removed in pytest 4\.0|\[pytest\] section in setup\.cfg files is no longer supported"
        r"|Fixture \"\w+\" called directly|Defining 'pytest_plugins' in a non-top-level conftest is no longer"
        r"|no attribute 'get_marker'|'Config' object has no attribute 'warn'|usage of Module\.Function is deprecated",
        requirements=("pytest<4",),
    ),
    Rule("pytest 8.4", r"'yield' keyword is allowed in fixtures, but not in tests", requirements=("pytest<8.4",)),
    Rule("pytest.config", _no_name("pytest", "config"), requirements=("pytest<5",)),
    Rule("pytest's from_parent", r"Direct construction of .* has been deprecated", requirements=("pytest<6",)),
    Rule("py.test", _no_module(r"py\.(?:test|path|io|code)"), requirements=("py",)),
    Rule("attrs' convert", r"unexpected keyword argument 'convert'", requirements=("attrs<19.2",)),
    Rule("entry points", r"'EntryPoints' object has no attribute 'get'", requirements=("importlib-metadata<5",)),
    Rule("jinja2 3.1", _no_name("jinja2", "Markup", "escape", "contextfilter"), requirements=("jinja2<3.1",)),
    Rule("markupsafe 2.1", _no_name("markupsafe", "soft_unicode"), requirements=("markupsafe<2.1",)),
    Rule("flask 2.3", _no_name(r"flask\.json", "JSONEncoder"), requirements=("flask<2.3",)),
    Rule("flask 3", _no_name("flask", "Markup", "escape"), requirements=("flask<3",)),
    Rule(
        "werkzeug 3",
        _no_name(r"werkzeug\.urls", "url_quote") + "|" + _no_name(r"werkzeug\.http", "parse_authorization_header"),
        requirements=("werkzeug<3",),
    ),
    *(Rule(f"Django {gone}", "|".join(all_of), requirements=(f"django<{gone}",)) for gone, all_of in _DJANGO.items()),
    # what is missing on the machine
    Rule("header", r"(?:fatal error|error): ([\w./+-]+\.h): No such file", packages=HEADERS),
    Rule("library", r"cannot find -l([\w+]+)|Could not find lib(?:rary )?([\w+]+)", packages=LIBRARIES),
    Rule("shared object", r"\b(lib[\w.+-]+\.so[\d.]*): cannot open shared object file", packages=SHARED_OBJECTS),
    Rule("dependency of meson", r'Dependency "([\w+-]+)" not found', packages=LIBRARIES),
    Rule("Rust compiler", r"can't find Rust compiler", packages={"": "cargo"}),
    Rule("Fortran compiler", r"Unknown compiler\(s\): \[\['gfortran'\]", packages={"": "gfortran"}),
    Rule(
        "program",
        r"(?<![\w+-])([\w+-]+)(?: executable)?(?:: (?:command )?not found| not found\.)"
        r"|(?:No such file or directory: |unable to execute )'([\w+-]+)'|Could not find ([\w+-]+) executable",
        packages=PROGRAMS,
    ),
)
"""In the order of trying."""

MODULE = "missing module"
MAJOR = "major version before"
ADVICE = "pip install, says an error"
CI_PACKAGES = "packages of the CI"
_MISSING_MODULE = re.compile(r"No module named '?([A-Za-z_][\w.]*)")
_LOST = re.compile(
    r"cannot import name '\w+' from (?:partially initialized module )?'([A-Za-z_][\w.]*)'"
    r"|from ([A-Za-z_][\w.]*) import [^\n]*\n[^\n]*cannot import name"  # before Python 3.7
    r"|No module named '([A-Za-z_]\w*\.[\w.]+)'|module '([A-Za-z_][\w.]*)' has no attribute"
    r"|/site-packages/(\w+)/__init__\.py\", line \d+, in <module>\n +raise ImportError"  # it has another name now
)
_ADVICE = re.compile(r"\bpip3? install (?:-U |--upgrade )?['\"`]?([A-Za-z][\w.-]*)")
_FOR_MODULES: frozenset[Step] = frozenset({"build", "import", "collect"})


@dataclass(frozen=True)
class Situation:
    """What failed, and what is known that may help."""

    step: Step
    log: str
    amendment: Amendment = field(default_factory=Amendment)
    """What it was tried with."""
    declared: Sequence[str] = ()
    """Requirements the tree names anywhere."""
    installed: Mapping[str, str] = field(default_factory=dict)
    """By top-level module: the distribution that has it, 'name==version'."""
    is_own: Callable[[str], bool] = lambda name: False
    """Whether a name is of the repository itself: a top-level one, or 'a.b' where `a` is a namespace (`zope`)."""
    python: tuple[int, int] | None = None
    """Of the interpreter it was tried with."""
    ci_packages: Sequence[str] = ()
    """Debian packages its CI installs; none where packages may not be installed."""


def proposals(situation: Situation) -> Iterator[tuple[str, Amendment]]:
    """(Rule's name, the amendment that is tried next), the most promising first."""
    for rule in RULES:
        found = [next(filter(None, match.groups()), "") for match in re.finditer(rule.pattern, situation.log)]
        packages = sorted({rule.packages[name] for name in found if name in rule.packages})
        if found and (packages or not rule.packages) and _applies(rule, situation):
            yield rule.name, plus(situation.amendment, rule.requirements, rule.python_below, packages)
    if situation.step in _FOR_MODULES:
        for line in _majors(situation):
            yield MAJOR, plus(situation.amendment, [line])
        for lines in _modules(situation):
            yield MODULE, plus(situation.amendment, lines)
        for line in _advised(situation):
            yield ADVICE, plus(situation.amendment, [line])
    wanted = sorted(set(situation.ci_packages) & _KNOWN_PACKAGES)
    if situation.step in ("environment", "build") and wanted:
        yield CI_PACKAGES, plus(situation.amendment, packages=wanted)


_KNOWN_PACKAGES = {name for table in (HEADERS, LIBRARIES, SHARED_OBJECTS, PROGRAMS) for name in table.values()}


def plus(
    amendment: Amendment, requirements: Sequence[str] = (), python_below: str = "", packages: Sequence[str] = ()
) -> Amendment:
    """An amendment with more; the lower of two bounds on the interpreter holds."""
    bounds = [bound for bound in (amendment.python_below, python_below) if bound]
    return Amendment(
        requirements=sorted({*amendment.requirements, *requirements}),
        python_below=min(bounds, key=minor, default=""),
        system_packages=sorted({*amendment.system_packages, *packages}),
    )


def minor(version: str) -> tuple[int, int]:
    """(3, 10) of '3.10'."""
    major, _, rest = version.partition(".")
    return int(major), int(rest)


def _applies(rule: Rule, situation: Situation) -> bool:
    return not rule.python_below or situation.python is None or situation.python >= minor(rule.python_below)


def _advised(situation: Situation) -> Iterator[str]:
    """What errors say is to be installed, as the tree declares it, or by the name of a known distribution."""
    known = known_distributions()
    for name in dict.fromkeys(canonicalize_name(found) for found in _ADVICE.findall(situation.log)):
        declared = next((line for line in situation.declared if distribution(line) == name), None)
        if declared or name in known:
            yield declared or name


def _majors(situation: Situation) -> Iterator[str]:
    """Upper bounds on what is installed without a name that is asked of it: the major version before, or 0.6 of 0.7.

    What no rule of the table knows: where an interpreter is younger than a commit, its libraries are, too.
    """
    for groups in _LOST.findall(situation.log):
        module = next(filter(None, groups))
        name, _, version = situation.installed.get(module.partition(".")[0], "").partition("==")
        if version and not situation.is_own(_own(module)):
            major, *rest = version.split(".")
            yield f"{name}<{major}" if major.strip("0") else f"{name}<{'.'.join([major, *rest[:1]])}"


def _modules(situation: Situation) -> Iterator[Sequence[str]]:
    """Requirements for all missing modules at once, then for each of them alone."""
    names = dict.fromkeys(name.rstrip(".") for name in _MISSING_MODULE.findall(situation.log))
    missing = [name for name in names if not situation.is_own(_own(name))]
    options = [found for name in missing if (found := list(candidates(name, situation.declared)))]
    if options:
        yield [found[0] for found in options]
        yield from ([line] for found in options for line in found)


def _own(module: str) -> str:
    """By what of its name a module would be the repository's own: 'a' of 'a.b.c', 'zope.b' of 'zope.b.c'."""
    first, _, rest = module.partition(".")
    return f"{first}.{rest.partition('.')[0]}" if rest and is_namespace(first) else first
