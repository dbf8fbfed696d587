#!/bin/sh
# Pins every requirement with hashes for all platforms; run after changing pyproject.toml.
# No index line is written: each machine installs from the index it is configured for.
set -eu
cd "$(dirname "$0")/.."
uv="${UV:-.venv/bin/uv}"
pin() { "$uv" pip compile -q --universal --python-version 3.11 --generate-hashes \
    --no-header --no-annotate --no-emit-index-url --no-emit-find-links "$@"; }
pin requirements/bootstrap.in -o requirements/bootstrap.txt
pin pyproject.toml -o requirements/runtime.txt
pin --extra dev pyproject.toml -o requirements/dev.txt
