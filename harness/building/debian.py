"""Debian packages by what a failed build lacked, and their installation."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from perfquarry.data.children import Need, environment
from perfquarry.harness.rejections import tail

_SECONDS = 900.0

HEADERS = {
    "bzlib.h": "libbz2-dev",
    "cblas.h": "libopenblas-dev",
    "curl/curl.h": "libcurl4-openssl-dev",
    "curses.h": "libncurses-dev",
    "db.h": "libdb-dev",
    "ev.h": "libev-dev",
    "event.h": "libevent-dev",
    "expat.h": "libexpat1-dev",
    "ffi.h": "libffi-dev",
    "fftw3.h": "libfftw3-dev",
    "ft2build.h": "libfreetype-dev",
    "gdal.h": "libgdal-dev",
    "geos_c.h": "libgeos-dev",
    "GL/gl.h": "libgl-dev",
    "glib.h": "libglib2.0-dev",
    "gmp.h": "libgmp-dev",
    "gsl/gsl_math.h": "libgsl-dev",
    "gssapi/gssapi.h": "libkrb5-dev",
    "hdf5.h": "libhdf5-dev",
    "jpeglib.h": "libjpeg-dev",
    "lapacke.h": "liblapacke-dev",
    "lber.h": "libldap-dev",
    "lcms2.h": "liblcms2-dev",
    "ldap.h": "libldap-dev",
    "leveldb/db.h": "libleveldb-dev",
    "libpq-fe.h": "libpq-dev",
    "libxml/parser.h": "libxml2-dev",
    "libxml/xmlversion.h": "libxml2-dev",
    "libxml/xpath.h": "libxml2-dev",
    "libxslt/xslt.h": "libxslt1-dev",
    "lz4.h": "liblz4-dev",
    "lzma.h": "liblzma-dev",
    "magic.h": "libmagic-dev",
    "mpc.h": "libmpc-dev",
    "mpfr.h": "libmpfr-dev",
    "mysql.h": "default-libmysqlclient-dev",
    "netcdf.h": "libnetcdf-dev",
    "openjpeg.h": "libopenjp2-7-dev",
    "openssl/opensslv.h": "libssl-dev",
    "openssl/ssl.h": "libssl-dev",
    "pcre.h": "libpcre3-dev",
    "png.h": "libpng-dev",
    "portaudio.h": "portaudio19-dev",
    "proj.h": "libproj-dev",
    "proj_api.h": "libproj-dev",
    "Python.h": "python3-dev",
    "readline/readline.h": "libreadline-dev",
    "sasl/sasl.h": "libsasl2-dev",
    "snappy-c.h": "libsnappy-dev",
    "snappy.h": "libsnappy-dev",
    "sndfile.h": "libsndfile1-dev",
    "sodium.h": "libsodium-dev",
    "sql.h": "unixodbc-dev",
    "sqlite3.h": "libsqlite3-dev",
    "suitesparse/umfpack.h": "libsuitesparse-dev",
    "tiff.h": "libtiff-dev",
    "tk.h": "tk-dev",
    "uuid/uuid.h": "uuid-dev",
    "webp/decode.h": "libwebp-dev",
    "xxhash.h": "libxxhash-dev",
    "yaml.h": "libyaml-dev",
    "zlib.h": "zlib1g-dev",
    "zmq.h": "libzmq3-dev",
    "zstd.h": "libzstd-dev",
}
LIBRARIES = {
    "atlas": "libatlas-base-dev",
    "blas": "libblas-dev",
    "bz2": "libbz2-dev",
    "crypto": "libssl-dev",
    "curl": "libcurl4-openssl-dev",
    "ffi": "libffi-dev",
    "freetype": "libfreetype-dev",
    "geos_c": "libgeos-dev",
    "gfortran": "gfortran",
    "gmp": "libgmp-dev",
    "hdf5": "libhdf5-dev",
    "jpeg": "libjpeg-dev",
    "lapack": "liblapack-dev",
    "lzma": "liblzma-dev",
    "mpfr": "libmpfr-dev",
    "ncurses": "libncurses-dev",
    "openblas": "libopenblas-dev",
    "png": "libpng-dev",
    "pq": "libpq-dev",
    "readline": "libreadline-dev",
    "sqlite3": "libsqlite3-dev",
    "ssl": "libssl-dev",
    "stdc++": "g++",
    "xml2": "libxml2-dev",
    "xslt": "libxslt1-dev",
    "yaml": "libyaml-dev",
    "z": "zlib1g-dev",
    "zstd": "libzstd-dev",
}
"""As `-lNAME` names them."""
SHARED_OBJECTS = {
    "libGL.so.1": "libgl1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgomp.so.1": "libgomp1",
    "libmagic.so.1": "libmagic1",
    "libsndfile.so.1": "libsndfile1",
    "libxcb.so.1": "libxcb1",
}
PROGRAMS = {
    "cargo": "cargo",
    "cc": "gcc",
    "cmake": "cmake",
    "curl-config": "libcurl4-openssl-dev",
    "g++": "g++",
    "gcc": "gcc",
    "gdal-config": "libgdal-dev",
    "geos-config": "libgeos-dev",
    "gfortran": "gfortran",
    "krb5-config": "libkrb5-dev",
    "make": "make",
    "mysql_config": "default-libmysqlclient-dev",
    "pg_config": "libpq-dev",
    "pkg-config": "pkg-config",
    "rustc": "rustc",
    "swig": "swig",
    "xml2-config": "libxml2-dev",
    "xslt-config": "libxslt1-dev",
}


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
