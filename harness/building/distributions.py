"""Distributions by import name: only what is known is ever installed for a missing module.

Any other name might be the repository's own helper, and a stranger's package on the index.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

_OTHER_NAMES = {
    "absl": "absl-py",
    "ahocorasick": "pyahocorasick",
    "antlr4": "antlr4-python3-runtime",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "bson": "pymongo",
    "corsheaders": "django-cors-headers",
    "crispy_forms": "django-crispy-forms",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python-headless",
    "Cython": "cython",
    "dateutil": "python-dateutil",
    "debug_toolbar": "django-debug-toolbar",
    "django_filters": "django-filter",
    "dns": "dnspython",
    "docx": "python-docx",
    "dogpile.cache": "dogpile-cache",
    "dotenv": "python-dotenv",
    "factory": "factory-boy",
    "fitz": "pymupdf",
    "fontTools": "fonttools",
    "git": "gitpython",
    "github": "pygithub",
    "google.auth": "google-auth",
    "google.protobuf": "protobuf",
    "grpc": "grpcio",
    "guardian": "django-guardian",
    "hamcrest": "pyhamcrest",
    "haystack": "django-haystack",
    "import_export": "django-import-export",
    "IPython": "ipython",
    "js_asset": "django-js-asset",
    "jwt": "pyjwt",
    "kafka": "kafka-python",
    "ldap": "python-ldap",
    "Levenshtein": "levenshtein",
    "linkify_it": "linkify-it-py",
    "lru": "lru-dict",
    "magic": "python-magic",
    "markdown_it": "markdown-it-py",
    "memcache": "python-memcached",
    "model_utils": "django-model-utils",
    "modelcluster": "django-modelcluster",
    "mpl_toolkits": "matplotlib",
    "mptt": "django-mptt",
    "MySQLdb": "mysqlclient",
    "nacl": "pynacl",
    "netCDF4": "netcdf4",
    "nose_parameterized": "nose-parameterized",
    "odf": "odfpy",
    "OpenSSL": "pyopenssl",
    "osgeo": "gdal",
    "paho": "paho-mqtt",
    "pdfminer": "pdfminer-six",
    "PIL": "pillow",
    "pkg_resources": "setuptools<81",
    "polymorphic": "django-polymorphic",
    "pptx": "python-pptx",
    "progressbar": "progressbar2",
    "psycopg2": "psycopg2-binary",
    "pylab": "matplotlib",
    "PyPDF2": "pypdf2",
    "PyQt5": "pyqt5",
    "pywt": "pywavelets",
    "pyximport": "cython",
    "rapidjson": "python-rapidjson",
    "rest_framework": "djangorestframework",
    "reversion": "django-reversion",
    "robot": "robotframework",
    "ruamel.yaml": "ruamel-yaml",
    "serial": "pyserial",
    "setuptools": "setuptools<81",
    "skbio": "scikit-bio",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "snappy": "python-snappy",
    "socks": "pysocks",
    "SPARQLWrapper": "sparqlwrapper",
    "sphinx_rtd_theme": "sphinx-rtd-theme",
    "storages": "django-storages",
    "subunit": "python-subunit",
    "taggit": "django-taggit",
    "treebeard": "django-treebeard",
    "umsgpack": "u-msgpack-python",
    "usb": "pyusb",
    "vcr": "vcrpy",
    "waffle": "django-waffle",
    "websocket": "websocket-client",
    "Xlib": "python-xlib",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
_MODULES = (".py", ".pyx", ".so")
# Called as they are imported, but for '-' in the place of '_' and '.'.
_SAME_NAME = """
BTrees ZODB aiodns aiofiles aiohttp aiomysql aioredis aioresponses aiosmtplib aiosqlite alabaster alembic amqp anyio
apipkg appdirs apscheduler argcomplete argh arpeggio arrow asgiref assertpy astroid asttokens async_timeout asyncpg
asynctest attrdict av avro babel backcall backports.functools_lru_cache backports.ssl_match_hostname
backports.tempfile backports.zoneinfo bcrypt beaker behave betamax bidict billiard bitarray black bleach blessed
blessings blinker boltons boto boto3 botocore bottle bottleneck brotli cachecontrol cachetools cairocffi cairosvg
cattrs celery cerberus certifi cffi cftime chameleon chardet charset_normalizer ciso8601 click cloudpickle cmarkgfm
colander colorama colorlog commonmark configargparse configobj confluent_kafka construct contextlib2 contourpy
convertdate cookiecutter coverage cramjam crcmod croniter cryptography cssselect cssutils curio cycler cytoolz dask
dataclasses_json datasets dateparser ddt decorator deepdiff defusedxml delorean deprecated deprecation dictdiffer dill
dirty_equals diskcache distro django django_countries django_extensions django_jinja django_tables2 docopt docutils
doublex elasticsearch elementpath eliot emoji environs ephem et_xmlfile eventlet exceptiongroup execnet expects fabric
faker fakeredis falcon fastapi fastavro fastcache fasteners fastjsonschema fastparquet feedparser filelock fixtures
flake8 flaky flask flexmock flit_core flufl.lock fqdn freezegun frozenlist fsspec ftfy funcsigs funcy future genshi
genty geopandas geopy gevent gitdb glom gmpy gmpy2 graphviz greenlet gssapi gunicorn h11 h2 h5netcdf h5py hatchling
hiredis holidays hpack html2text html5lib httpbin httpcore httplib2 httpretty httpx humanfriendly humanize hypercorn
hyperframe hyperlink hypothesis hypothesmith idna ijson imageio imageio_ffmpeg immutables importlib_metadata
importlib_resources incremental inflect inflection iniconfig intervaltree invoke ipykernel ipywidgets iso8601 isodate
isort itsdangerous jaraco.classes jaraco.collections jaraco.context jaraco.functools jaraco.itertools jaraco.text jedi
jellyfish jieba jinja2 jmespath joblib joserfc jsonpatch jsonpath_ng jsonpath_rw jsonpickle jsonpointer jsonref
jsonschema kazoo kerchunk keyring kiwisolver kombu langdetect lap lark ldap3 libcst llvmlite lmdb lockfile
logilab.common loguru lupa lxml lz4 mako marisa_trie markdown markdown2 markupsafe marshmallow matplotlib mccabe
mdit_py_plugins mdurl mimesis minimock mistune mmh3 mock mockito model_bakery model_mommy mongomock monotonic
more_itertools moto motor mpmath msgpack msgspec multidict munch mypy_extensions namedlist natsort nbconvert nbformat
ndindex netaddr netifaces networkx nh3 nine nltk nose nose2 numba numcodecs numexpr numpy numpydoc oauthlib olefile
openpyxl orderedmultidict orjson packaging pandas parameterized paramiko paramunittest parse parsedatetime parsel
parso partd passlib pathlib2 pathspec pathtools patsy pbkdf2 pbr peewee pendulum pep8 persistent pexpect phonenumbers
pika pikepdf pkginfo plaster platformdirs plotly pluggy plumbum ply polars polib portalocker praw premailer pretend
prettytable priority prompt_toolkit psutil psycopg ptyprocess purl py pyarrow pyasn1 pybind11 pybtex pycares
pycodestyle pycosat pycountry pycparser pycurl pydantic pydocstyle pydot pydotplus pyexcel pyfakefs pyflakes pyftpdlib
pygit2 pyglet pygments pygraphviz pyinotify pylibmc pylint pymemcache pymongo pympler pymysql pyodbc pyparsing pypdf
pyperclip pyphen pyproj pyquery pyroaring pyrsistent pysnooper pystache pytest pytest_arraydiff pytest_astropy
pytest_asyncio pytest_benchmark pytest_check pytest_cov pytest_datadir pytest_django pytest_doctestplus pytest_env
pytest_flask pytest_forked pytest_httpbin pytest_httpserver pytest_lazyfixture pytest_localserver pytest_mock
pytest_mpl pytest_qt pytest_randomly pytest_regressions pytest_remotedata pytest_rerunfailures pytest_split
pytest_subtests pytest_timeout pytest_tornado pytest_trio pytest_twisted pytest_xdist pythran pytimeparse pytz qrcode
qtpy quantities queuelib rapidfuzz rasterio ratelimit rdflib readme_renderer recommonmark redis regex reportlab
repoze.lru repoze.sendmail repoze.zcml requests requests_mock requests_toolbelt responses respx rethinkdb retrying
rfc3339_validator rfc3986 rfc3987 rich rope rsa rtree scandir schema schematics scipy seaborn selenium semver
setuptools_scm sh shapely shellingham shortuuid simpleeval simplegeneric simplejson singledispatch six smbprotocol
smmap sniffio snowballstemmer sortedcontainers soupsieve sparse sphinx sqlalchemy sqlglot sqlparse srsly starlette
statsd statsmodels stestr stevedore stopit strict_rfc3339 strictyaml structlog sure svgwrite symengine sympy tables
tablib tabulate tblib tenacity termcolor testfixtures testscenarios testtools text_unidecode textdistance texttable
threadpoolctl thriftpy2 tifffile time_machine tinycss2 tinydb toml tomli tomlkit toolz toposort tornado tox tqdm
traitlets transaction translationstring trio trustme twisted typeguard typer typing_extensions tzdata tzlocal
udatetime ujson unicodecsv unidecode unidiff unittest2 uritemplate urllib3 user_agents uvicorn uvloop validators
venusian vine virtualenv voluptuous waitress wand watchdog watchfiles wcwidth weasyprint webassets webcolors webob
websockets webtest werkzeug wheel whoosh wrapt wsproto wtforms wurlitzer xarray xlrd xlsxwriter xlutils xlwt xmlschema
xmltodict xxhash yamllint yappi yarl zarr zc.buildout zc.lockfile zeroconf zict zipp zodbpickle zope.browser
zope.cachedescriptors zope.component zope.configuration zope.contenttype zope.copy zope.deferredimport
zope.deprecation zope.dottedname zope.event zope.exceptions zope.filerepresentation zope.hookable zope.i18n
zope.i18nmessageid zope.interface zope.lifecycleevent zope.location zope.proxy zope.publisher zope.schema
zope.security zope.size zope.sqlalchemy zope.tal zope.tales zope.testing zope.testrunner zope.traversing zstandard
zstd
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


_DATA = re.compile(r"(^|[_-])(data|testdata|fixtures|resources|samples|corpus)$")
"""Folders of what tests read."""


def own_names(trees: Iterable[Path]) -> Callable[[str], bool]:
    """Whether a folder or module of a tree could be imported by a name, from any folder that is no package itself.

    Names have one part or two; what tests read as data is imported by none. Trees are walked when it is first asked.
    """

    @functools.cache
    def names() -> frozenset[str]:
        found: set[str] = set()
        for tree in trees:
            for place, folders, files in os.walk(tree):
                if "__init__.py" not in files:
                    found |= {*folders, *map(_module, files)}
                    for folder in filter(is_namespace, folders):
                        found |= {f"{folder}.{_module(one.name)}" for one in Path(place, folder).iterdir()}
                folders[:] = [folder for folder in folders if not _DATA.search(folder)]
        return frozenset(found)

    return lambda name: name in names()


def _module(name: str) -> str:
    """The name by which a file or folder is imported, its own where it is none."""
    return name.partition(".")[0] if name.endswith(_MODULES) else name
