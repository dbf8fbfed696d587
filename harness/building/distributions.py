"""Distributions by import name: only what is known is ever installed for a missing module.

Any other name might be the repository's own helper, and a stranger's package on the index.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

_OTHER_NAMES = {
    "absl": "absl-py",
    "antlr4": "antlr4-python3-runtime",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python-headless",
    "Cython": "cython",
    "dateutil": "python-dateutil",
    "dns": "dnspython",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fontTools": "fonttools",
    "git": "gitpython",
    "google.protobuf": "protobuf",
    "IPython": "ipython",
    "jwt": "pyjwt",
    "ldap": "python-ldap",
    "magic": "python-magic",
    "mpl_toolkits": "matplotlib",
    "MySQLdb": "mysqlclient",
    "nacl": "pynacl",
    "OpenSSL": "pyopenssl",
    "osgeo": "gdal",
    "PIL": "pillow",
    "pkg_resources": "setuptools<81",
    "psycopg2": "psycopg2-binary",
    "pylab": "matplotlib",
    "PyQt5": "pyqt5",
    "pywt": "pywavelets",
    "pyximport": "cython",
    "ruamel.yaml": "ruamel-yaml",
    "serial": "pyserial",
    "setuptools": "setuptools<81",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "snappy": "python-snappy",
    "socks": "pysocks",
    "sphinx_rtd_theme": "sphinx-rtd-theme",
    "usb": "pyusb",
    "websocket": "websocket-client",
    "Xlib": "python-xlib",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
_MODULES = (".py", ".pyx", ".so")
# Called as they are imported, but for '-' in the place of '_' and '.'.
_SAME_NAME = """
aiodns aiohttp alabaster anyio appdirs argcomplete asgiref asttokens async_timeout asyncpg babel backcall
blinker bottleneck brotli cachetools certifi cffi chardet charset_normalizer click cloudpickle colorama coverage
cryptography cycler cytoolz dask datasets decorator defusedxml dill distro django docopt docutils ephem
exceptiongroup execnet faker fastapi fastcache feedparser filelock flaky flask freezegun frozenlist fsspec
funcsigs future gevent gmpy gmpy2 graphviz greenlet gunicorn h5py html5lib httpbin httpcore httpx hypothesis
idna imageio importlib_metadata importlib_resources iniconfig ipykernel ipywidgets isodate itsdangerous jedi
jinja2 joblib jsonpatch jsonpickle jsonschema keyring kiwisolver lark llvmlite lmdb lxml lz4 mako markdown
markupsafe matplotlib mock monotonic more_itertools mpmath msgpack multidict mypy_extensions natsort netaddr
networkx nose nose2 numba numexpr numpy numpydoc oauthlib openpyxl orjson packaging pandas parameterized
paramiko parso partd pathlib2 pathspec patsy pbr peewee pexpect platformdirs pluggy ply polars pretend
prettytable prompt_toolkit psutil ptyprocess py pyarrow pyasn1 pybind11 pycares pycosat pycparser pycurl
pydantic pyglet pygments pymongo pymysql pyparsing pytest pythran pytz qtpy redis regex requests requests_mock
requests_toolbelt responses rich scandir scipy seaborn selenium semver setuptools_scm shapely simpleeval
simplejson six sniffio sortedcontainers soupsieve sphinx sqlalchemy starlette statsmodels symengine tables
tabulate tblib tenacity termcolor testtools text_unidecode threadpoolctl toml tomli tomlkit toolz toposort
tornado tqdm traitlets trio trustme twisted typeguard typer typing_extensions tzdata tzlocal ujson unidecode
urllib3 uvloop virtualenv wcwidth webob websockets webtest werkzeug wheel wrapt wurlitzer xarray xlrd xlsxwriter
xmltodict xxhash yappi yarl zict zipp zstandard
pytest_arraydiff pytest_astropy pytest_asyncio pytest_benchmark pytest_check pytest_cov pytest_datadir
pytest_django pytest_doctestplus pytest_env pytest_flask pytest_forked pytest_httpbin pytest_httpserver
pytest_lazyfixture pytest_localserver pytest_mock pytest_mpl pytest_qt pytest_randomly pytest_regressions
pytest_remotedata pytest_rerunfailures pytest_split pytest_subtests pytest_timeout pytest_tornado pytest_trio
pytest_twisted pytest_xdist
backports.functools_lru_cache backports.ssl_match_hostname backports.tempfile backports.zoneinfo
flufl.lock jaraco.classes jaraco.collections jaraco.context jaraco.functools jaraco.itertools jaraco.text
logilab.common repoze.lru repoze.sendmail repoze.zcml zc.buildout zc.lockfile zope.browser zope.cachedescriptors
zope.component zope.configuration zope.contenttype zope.copy zope.deferredimport zope.deprecation zope.dottedname
zope.event zope.exceptions zope.filerepresentation zope.hookable zope.i18n zope.i18nmessageid zope.interface
zope.lifecycleevent zope.location zope.proxy zope.publisher zope.schema zope.security zope.size zope.sqlalchemy
zope.tal zope.tales zope.testing zope.testrunner zope.traversing
BTrees persistent transaction translationstring venusian ZODB
"""


def distribution_of(module: str) -> str | None:
    """The requirement that provides a module, where that is known."""
    for name in _prefixes(module):
        if name in _OTHER_NAMES:
            return _OTHER_NAMES[name]
        if name in _SAME_NAME.split():
            return str(canonicalize_name(name))
    return None


def distribution(line: str) -> str | None:
    """Canonical name of a requirement from the index; None for a URL, a path, or what is no requirement."""
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        return None
    return None if requirement.url else str(canonicalize_name(requirement.name))


@functools.cache
def known_distributions() -> frozenset[str]:
    """Canonical names of all that may be installed for a module."""
    return frozenset(filter(None, map(distribution, (*_OTHER_NAMES.values(), *_SAME_NAME.split()))))


def candidates(module: str, declared: Iterable[str]) -> Iterator[str]:
    """Requirements that may provide a module, the likeliest first: as the tree declares it, then as it is known.

    Args:
        declared: PEP 508 requirements the tree names anywhere.
    """
    known = distribution_of(module)
    names = {str(canonicalize_name(name.replace(".", "-"))) for name in _prefixes(module)}
    names |= {str(canonicalize_name(Requirement(known).name))} if known else set()
    found = [line for line in declared if canonicalize_name(Requirement(line).name) in names]
    yield from dict.fromkeys([*found, *([known] if known else [])])


def _prefixes(module: str) -> Iterator[str]:
    """'a.b.c', 'a.b', 'a'."""
    while module:
        yield module
        module = module.rpartition(".")[0]


def is_namespace(name: str) -> bool:
    """Whether distributions of several authors put their packages into a package of that name, such as 'zope'."""
    return any(known.startswith(f"{name}.") for known in (*_OTHER_NAMES, *_SAME_NAME.split()))


def own_names(trees: Iterable[Path]) -> Callable[[str], bool]:
    """Whether a folder or module of a tree could be imported by a name, from any folder that is no package itself.

    Names have one part or two. The trees are walked when it is first asked.
    """

    @functools.cache
    def names() -> frozenset[str]:
        found: set[str] = set()
        for tree in trees:
            for place, folders, files in os.walk(tree):
                if "__init__.py" in files:
                    continue
                found |= {*folders, *map(_module, files)}
                for folder in filter(is_namespace, folders):
                    found |= {f"{folder}.{_module(one.name)}" for one in Path(place, folder).iterdir()}
        return frozenset(found)

    return lambda name: name in names()


def _module(name: str) -> str:
    """The name by which a file or folder is imported, its own where it is none."""
    return name.partition(".")[0] if name.endswith(_MODULES) else name
