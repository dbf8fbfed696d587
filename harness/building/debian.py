"""Debian packages by what was missing in a failed build, and their installation."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from perfquarry.data.children import Need, environment
from perfquarry.harness.rejections import tail

_SECONDS = 900.0

_GIVES = {
    "cargo": "cargo",
    "cmake": "cmake",
    "default-libmysqlclient-dev": "mysql.h mysql_config",
    "g++": "-lstdc++ g++",
    "gcc": "cc gcc",
    "gfortran": "-lgfortran gfortran",
    "libatlas-base-dev": "-latlas",
    "libblas-dev": "-lblas",
    "libbz2-dev": "bzlib.h -lbz2",
    "libcurl4-openssl-dev": "curl/curl.h -lcurl curl-config",
    "libdb-dev": "db.h",
    "libev-dev": "ev.h",
    "libevent-dev": "event.h",
    "libexpat1-dev": "expat.h",
    "libffi-dev": "ffi.h -lffi",
    "libfftw3-dev": "fftw3.h",
    "libfreetype-dev": "ft2build.h -lfreetype",
    "libgdal-dev": "gdal.h gdal-config",
    "libgeos-dev": "geos_c.h -lgeos_c geos-config",
    "libgl-dev": "GL/gl.h",
    "libgl1": "libGL.so.1",
    "libglib2.0-0": "libglib-2.0.so.0",
    "libglib2.0-dev": "glib.h",
    "libgmp-dev": "gmp.h -lgmp",
    "libgomp1": "libgomp.so.1",
    "libgsl-dev": "gsl/gsl_math.h",
    "libhdf5-dev": "hdf5.h -lhdf5",
    "libjpeg-dev": "jpeglib.h -ljpeg",
    "libkrb5-dev": "gssapi/gssapi.h krb5-config",
    "liblapack-dev": "-llapack",
    "liblapacke-dev": "lapacke.h",
    "liblcms2-dev": "lcms2.h",
    "libldap-dev": "lber.h ldap.h",
    "libleveldb-dev": "leveldb/db.h",
    "liblz4-dev": "lz4.h",
    "liblzma-dev": "lzma.h -llzma",
    "libmagic-dev": "magic.h",
    "libmagic1": "libmagic.so.1",
    "libmpc-dev": "mpc.h",
    "libmpfr-dev": "mpfr.h -lmpfr",
    "libncurses-dev": "curses.h -lncurses",
    "libnetcdf-dev": "netcdf.h",
    "libopenblas-dev": "cblas.h -lopenblas",
    "libopenjp2-7-dev": "openjpeg.h",
    "libpcre3-dev": "pcre.h",
    "libpng-dev": "png.h -lpng",
    "libpq-dev": "libpq-fe.h -lpq pg_config",
    "libproj-dev": "proj.h proj_api.h",
    "libreadline-dev": "readline/readline.h -lreadline",
    "libsasl2-dev": "sasl/sasl.h",
    "libsnappy-dev": "snappy-c.h snappy.h",
    "libsndfile1": "libsndfile.so.1",
    "libsndfile1-dev": "sndfile.h",
    "libsodium-dev": "sodium.h",
    "libsqlite3-dev": "sqlite3.h -lsqlite3",
    "libssl-dev": "openssl/opensslv.h openssl/ssl.h -lcrypto -lssl",
    "libsuitesparse-dev": "suitesparse/umfpack.h",
    "libtiff-dev": "tiff.h",
    "libwebp-dev": "webp/decode.h",
    "libxcb1": "libxcb.so.1",
    "libxml2-dev": "libxml/parser.h libxml/xmlversion.h libxml/xpath.h -lxml2 xml2-config",
    "libxslt1-dev": "libxslt/xslt.h -lxslt xslt-config",
    "libxxhash-dev": "xxhash.h",
    "libyaml-dev": "yaml.h -lyaml",
    "libzmq3-dev": "zmq.h",
    "libzstd-dev": "zstd.h -lzstd",
    "make": "make",
    "pkg-config": "pkg-config",
    "portaudio19-dev": "portaudio.h",
    "python3-dev": "Python.h",
    "rustc": "rustc",
    "swig": "swig",
    "tk-dev": "tk.h",
    "unixodbc-dev": "sql.h",
    "uuid-dev": "uuid/uuid.h",
    "zlib1g-dev": "zlib.h -lz",
}
"""By package: headers, libraries as `-lNAME` names them, shared objects, programs."""


def _given(pattern: str) -> dict[str, str]:
    """Packages by what they give of one kind, of which the pattern takes the name."""
    found = ((re.fullmatch(pattern, thing), package) for package, things in _GIVES.items() for thing in things.split())
    return {match[1]: package for match, package in found if match}


HEADERS = _given(r"(.+\.h)")
LIBRARIES = _given(r"-l(.+)")
SHARED_OBJECTS = _given(r"(lib.+\.so.*)")
PROGRAMS = _given(r"([^-.][^.]*)")


def install(packages: Sequence[str], lock: Path) -> str | None:
    """Installs Debian packages; None when they are there afterwards, else why they are not.

    Args:
        packages: names of the tables above; a name from a repository must never get here.
        lock: a file; one installation at a time.
    """
    tool = shutil.which("apt-get")
    if tool is None or os.geteuid() != 0:
        return "only root can install packages, and only with apt-get"
    command = [tool, "install", "--yes", "--quiet", "--no-upgrade", "--no-install-recommends", "--", *packages]
    try:
        with FileLock(lock, timeout=_SECONDS):
            done = subprocess.run(
                command,
                env=environment(Need.NETWORK, DEBIAN_FRONTEND="noninteractive", LC_ALL="C"),
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                stdin=subprocess.DEVNULL,
            )
    except (OSError, subprocess.SubprocessError, Timeout) as error:
        return f"`{' '.join(command)}` failed: {error}"
    return None if done.returncode == 0 else tail(f"`{' '.join(command)}` failed:\n{done.stdout}{done.stderr}", 2048)
