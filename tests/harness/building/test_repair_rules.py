"""Every rule of repair with a line that calls for it: seen on a machine, or written by hand where that is said."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from packaging.requirements import Requirement

from perfquarry.data.records import Amendment, Step
from perfquarry.harness.building.distributions import candidates, distribution_of, own_names
from perfquarry.harness.building.repair_rules import (
    ADVICE,
    CI_PACKAGES,
    MAJOR,
    MODULE,
    RULES,
    Situation,
    plus,
    proposals,
)

OTHER = "AttributeError: module 'numpy' has no attribute 'core2'\nNameError: name 'long' is not defined\n"

SEEN = {
    "async as a name: Python < 3.7": (
        "    from asyncio import async\n                            ^\nSyntaxError: invalid syntax"
    ),
    "typing.GenericMeta: Python < 3.7": "ImportError: cannot import name 'GenericMeta' from 'typing' (/x/typing.py)",
    "time.clock: Python < 3.8": "AttributeError: module 'time' has no attribute 'clock'",
    "cgi.escape: Python < 3.8": "ImportError: cannot import name 'escape' from 'cgi' (/lib/python3.8/cgi.py)",
    "platform.dist: Python < 3.8": "AttributeError: module 'platform' has no attribute 'linux_distribution'",
    "fractions.gcd: Python < 3.9": "ImportError: cannot import name 'gcd' from 'fractions' (/lib/fractions.py)",
    "base64.encodestring: Python < 3.9": "AttributeError: module 'base64' has no attribute 'encodestring'",
    "tp_print: Python < 3.9": (
        "a.c:3:115: error: ‘PyTypeObject’ {aka ‘struct _typeobject’} has no member named ‘tp_print’"
    ),
    "collections' ABCs: Python < 3.10": "ImportError: cannot import name 'Mapping' from 'collections' (/x/__init__.py)",
    "PyThreadState's tracing: Python < 3.10": (
        "a.c:3:63: error: ‘PyThreadState’ {aka ‘struct _ts’} has no member named ‘use_tracing’"
    ),
    "inspect.getargspec: Python < 3.11": "ImportError: cannot import name 'getargspec' from 'inspect' (/x/inspect.py)",
    "asyncio.coroutine: Python < 3.11": (
        "AttributeError: module 'asyncio' has no attribute 'coroutine'. Did you mean: 'coroutines'?"
    ),
    "frame's fields: Python < 3.11": (
        "a.c:4:33: error: invalid use of incomplete typedef ‘PyFrameObject’ {aka ‘struct _frame’}"
    ),
    "distutils: Python < 3.12": "ModuleNotFoundError: No module named 'distutils'",
    "distutils of setuptools": "ModuleNotFoundError: No module named 'distutils'",
    "imp, asyncore: Python < 3.12": "ModuleNotFoundError: No module named 'asyncore'",
    "SafeConfigParser: Python < 3.12": "AttributeError: 'ConfigParser' object has no attribute 'readfp'",
    "pkgutil.ImpImporter: Python < 3.12": (
        "AttributeError: module 'pkgutil' has no attribute 'ImpImporter'. Did you mean: 'zipimporter'?"
    ),
    "ssl.wrap_socket: Python < 3.12": "ImportError: cannot import name 'match_hostname' from 'ssl' (/lib/ssl.py)",
    "PyLongObject's digits: Python < 3.12": (
        "a.c:2:97: error: ‘PyLongObject’ {aka ‘struct _longobject’} has no member named ‘ob_digit’"
    ),
    "PyThreadState's exception: Python < 3.12": (
        "a.c:2:79: error: ‘PyThreadState’ {aka ‘struct _ts’} has no member named ‘curexc_type’"
    ),
    "dead batteries: Python < 3.13": "ModuleNotFoundError: No module named 'cgi'",
    "unittest.makeSuite: Python < 3.13": "AttributeError: module 'unittest' has no attribute 'makeSuite'",
    "flask 2.3": "ImportError: cannot import name 'JSONEncoder' from 'flask.json' (/x/flask/json/__init__.py)",
    "flask 3": "ImportError: cannot import name 'Markup' from 'flask' (/x/flask/__init__.py)",
    "werkzeug 3": "ImportError: cannot import name 'parse_authorization_header' from 'werkzeug.http' (/x/http.py)",
    "Django 1.8": "ModuleNotFoundError: No module named 'django.db.models.related'",
    "Django 1.9": (
        "    from django.utils.datastructures import SortedDict\nImportError: cannot import name 'SortedDict'"
    ),
    "Django 1.11": "    from django.forms.widgets import flatatt\nImportError: cannot import name 'flatatt'",
    "Cython": "ImportError: Building msgpack from VCS needs Cython. Install Cython or use sdist package.",
    "header": "c.c:1:10: fatal error: sasl/sasl.h: No such file or directory",
    "library": "/usr/bin/ld: cannot find -lxml2: No such file or directory",
    "program": "sh: 1: pg_config: not found",
}
BY_HAND = {
    "Django 1.10": "ModuleNotFoundError: No module named 'django.core.context_processors'",
    "Django 2": "TypeError: __init__() missing 1 required positional argument: 'on_delete'",
    "Django 3": "ModuleNotFoundError: No module named 'django.utils.six'",
    "Django 4": "ImportError: cannot import name 'ugettext_lazy' from 'django.utils.translation' (/x/__init__.py)",
    "Django 5": "ImportError: cannot import name 'utc' from 'django.utils.timezone' (/x/timezone.py)",
    "longintrepr.h: Python < 3.11": "x.c:207:12: fatal error: longintrepr.h: No such file or directory",
    "importer of six: Python < 3.12": "ModuleNotFoundError: No module named 'requests.packages.urllib3.six.moves'",
    "numpy.distutils: Python < 3.12": "ModuleNotFoundError: No module named 'numpy.distutils'",
    "ast.Str: Python < 3.14": "AttributeError: module 'ast' has no attribute 'Str'",
    "2to3 by setuptools": "error in demjson setup command: use_2to3 is invalid.",
    "setuptools' Feature": "ImportError: cannot import name 'Feature' from 'setuptools' (/x/setuptools/__init__.py)",
    "setuptools' test": "ModuleNotFoundError: No module named 'setuptools.command.test'",
    "distutils' msvccompiler": "ModuleNotFoundError: No module named 'distutils.msvccompiler'",
    "pkg_resources": "ModuleNotFoundError: No module named 'pkg_resources'",
    "numpy's aliases": "AttributeError: module 'numpy' has no attribute 'bool'.\n`np.bool` was a deprecated alias",
    "numpy 2": "AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead.",
    "Cython 3": "pkg/fast.pyx:12:18: undeclared name not builtin: long",
    "pytest-benchmark 3.2": "INTERNALERROR>     self.pytest_warn = config.warn",
    "pytest 4": "yield tests were removed in pytest 4.0 - test_all will be ignored",
    "pytest 8.4": "'yield' keyword is allowed in fixtures, but not in tests (test_cases)",
    "pytest.config": "E   AttributeError: module 'pytest' has no attribute 'config'",
    "pytest's from_parent": "Direct construction of YamlFile has been deprecated, please use YamlFile.from_parent.",
    "py.test": "ModuleNotFoundError: No module named 'py.test'",
    "attrs' convert": "TypeError: attrib() got an unexpected keyword argument 'convert'",
    "entry points": "AttributeError: 'EntryPoints' object has no attribute 'get'",
    "jinja2 3.1": "ImportError: cannot import name 'contextfilter' from 'jinja2' (/x/jinja2/__init__.py)",
    "markupsafe 2.1": "ImportError: cannot import name 'soft_unicode' from 'markupsafe' (/x/__init__.py)",
    "dependency of meson": 'meson.build:209:9: ERROR: Dependency "openblas" not found, tried pkgconfig and cmake',
    "Rust compiler": "error: can't find Rust compiler",
    "Fortran compiler": "meson.build:1:0: ERROR: Unknown compiler(s): [['gfortran'], ['flang-new'], ['nvfortran']]",
    "shared object": "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
}


def proposed(log: str, step: Step = "import", **known: object) -> dict[str, Amendment]:
    """First amendment of each rule."""
    found: dict[str, Amendment] = {}
    for name, amendment in proposals(Situation(step, log, **known)):  # type: ignore[arg-type]
        found.setdefault(name, amendment)
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_has_a_line_that_calls_for_it_and_for_little_else(rule: object) -> None:
    name = rule.name  # type: ignore[attr-defined]
    line = {**SEEN, **BY_HAND}[name]
    found = proposed(f"Traceback:\n{line}\n", "environment")
    assert name in found
    assert set(found) - {name} <= {"distutils: Python < 3.12", "distutils of setuptools"}
    amendment = found[name]
    below = name.rpartition("Python < ")[2] if "Python < " in name else ""
    assert amendment.python_below == below
    assert bool(amendment.python_below) + bool(amendment.requirements) + bool(amendment.system_packages) == 1
    for line in amendment.requirements:
        Requirement(line)
    assert name not in proposed(OTHER)


def test_the_table_and_its_lines_are_of_the_same_rules() -> None:
    assert not SEEN.keys() & BY_HAND.keys()
    assert {rule.name for rule in RULES} == SEEN.keys() | BY_HAND.keys()


@pytest.mark.parametrize(
    ("log", "packages"),
    [
        ("a.c:15:10: fatal error: ffi.h: No such file or directory", ["libffi-dev"]),
        ("collect2\n/usr/bin/ld: cannot find -lxml2\n/usr/bin/ld: cannot find -lz\n", ["libxml2-dev", "zlib1g-dev"]),
        ("Error: pg_config executable not found.", ["libpq-dev"]),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'curl-config'", ["libcurl4-openssl-dev"]),
        ("Could not find geos-config executable. Either append the path to", ["libgeos-dev"]),
        ("OSError: Could not find library geos_c or load any of its variants", ["libgeos-dev"]),
        ("a.c:1:10: fatal error: of_their_own.h: No such file or directory", None),
        ("error: command 'gcc' failed with exit status 1", None),
        ("bash: their-tool: not found", None),
    ],
)
def test_system_packages(log: str, packages: list[str] | None) -> None:
    assert [one.system_packages for one in proposed(log, "build").values()] == ([packages] if packages else [])


def test_an_interpreter_is_only_left_out_when_it_was_used() -> None:
    log = "No module named 'distutils'"
    assert next(iter(proposed(log, python=(3, 12)))) == "distutils: Python < 3.12"
    assert next(iter(proposed(log, python=(3, 11)))) == "distutils of setuptools"


def test_missing_modules_are_taken_as_declared_else_by_known_names_never_by_guess() -> None:
    log = "".join(f"E   ModuleNotFoundError: No module named '{n}'\n" for n in ("yaml", "theirs.a", "helper", "mock.x"))
    declared = ["pyyaml<6", "theirs==1.0", "other"]
    situation = Situation("collect", log, declared=declared)
    found = [one.requirements for rule, one in proposals(situation) if rule == MODULE]
    assert found == [["mock", "pyyaml<6", "theirs==1.0"], ["pyyaml<6"], ["pyyaml"], ["theirs==1.0"], ["mock"]]
    situation = Situation("import", log, declared=declared, is_own=lambda name: name in ("theirs", "mock", "yaml"))
    assert list(proposals(situation)) == []
    assert MODULE not in proposed(log, "environment")


LOST = """\
    from kombu.utils.compat import OrderedDict  # noqa
ImportError: cannot import name 'OrderedDict'
ImportError: cannot import name 'deque' from 'collections' (/x/collections/__init__.py)
ImportError: cannot import name 'a' from 'lib' (/x/lib/__init__.py)
ModuleNotFoundError: No module named 'graphql.core'
ModuleNotFoundError: No module named 'kombu'
AttributeError: module 'yaml' has no attribute 'warnings'
ImportError: cannot import name 'x' from partially initialized module 'early.a' (most likely due to a circular import)
  File "/e/lib/python3.6/site-packages/faker/__init__.py", line 7, in <module>
    raise ImportError(error)
ImportError: The ``fake-factory`` package is now called ``Faker``.
"""


def test_of_a_library_that_lost_a_name_the_major_version_before_is_tried() -> None:
    installed = {"kombu": "kombu==4.0.2", "graphql": "graphql-core==3.2.6", "yaml": "pyyaml==6.0", "lib": "lib==2.0"}
    installed |= {"early": "early==0.17.1", "faker": "fake-factory==9999.9.9"}
    situation = Situation("import", LOST, installed=installed, is_own=lambda name: name == "lib")
    assert [made.requirements for rule, made in proposals(situation) if rule == MAJOR] == [
        ["kombu<4"],
        ["graphql-core<3"],
        ["pyyaml<6"],
        ["early<0.17"],
        ["fake-factory<9999"],
    ]
    assert MAJOR not in proposed(LOST, "environment", installed=installed) and MAJOR not in proposed(LOST)


def test_what_an_error_says_is_to_be_installed_is_taken_as_declared_or_by_a_known_name() -> None:
    log = "RuntimeError: it requires the httpx package.\nYou can install this with:\n  $ pip install httpx\n"
    log += "try `pip install Their_Tool` or pip install -U evil"
    situation = Situation("collect", log, declared=["their-tool>=2"])
    assert [(name, made.requirements) for name, made in proposals(situation)] == [
        (ADVICE, ["httpx"]),
        (ADVICE, ["their-tool>=2"]),
    ]


def test_packages_of_the_ci_are_the_last_resort_and_only_known_ones() -> None:
    found = proposed("make failed", "build", ci_packages=["libffi-dev", "evil", "texlive"])
    assert found == {CI_PACKAGES: Amendment(system_packages=["libffi-dev"])}
    assert proposed("failed", "import", ci_packages=["libffi-dev"]) == {}


def test_amendments_add_up() -> None:
    one = plus(Amendment(requirements=["b"], python_below="3.9"), ["a", "b"], "3.10", ["z"])
    assert one == Amendment(requirements=["a", "b"], python_below="3.9", system_packages=["z"])
    assert one and not Amendment()
    assert set(get_args(Step)) >= {"collect", "built"}


@pytest.mark.parametrize(
    ("module", "distribution"),
    [
        ("yaml", "pyyaml"),
        ("google.protobuf.message", "protobuf"),
        ("google.cloud", None),
        ("typing_extensions", "typing-extensions"),
        ("pytest_asyncio", "pytest-asyncio"),
        ("zope.deprecation.interfaces", "zope-deprecation"),
        ("zope.unheard_of", None),
        ("zope", None),
        ("BTrees.OOBTree", "btrees"),
        ("Queue", None),
        ("helper", None),
    ],
)
def test_distributions(module: str, distribution: str | None) -> None:
    assert distribution_of(module) == distribution
    assert list(candidates(module, [])) == ([distribution] if distribution else [])


def test_names_of_the_repository(tmp_path: Path) -> None:
    data = "tests/testdata/python3/astroid/module.py"
    for name in ("src/lib/__init__.py", "src/lib/yaml.py", "tests/helper.py", "six.py", "fast.pyx", data):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    is_own = own_names([tmp_path])
    assert all(map(is_own, ("lib", "helper", "six", "tests", "fast")))
    assert not is_own("yaml") and not is_own("astroid")


def test_of_a_namespace_a_repository_owns_only_what_it_holds(tmp_path: Path) -> None:
    for name in ("src/zope/__init__.py", "src/zope/own/__init__.py", "src/zope/single.py", "lib/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    log = "".join(
        f"ModuleNotFoundError: No module named '{name}'\n"
        for name in ("zope.own.part", "zope.single", "zope.event.more", "lib.yaml")
    )
    found = list(proposals(Situation("collect", log, is_own=own_names([tmp_path]))))
    assert [amendment.requirements for _, amendment in found] == [["zope-event"]] * len(found) and found
