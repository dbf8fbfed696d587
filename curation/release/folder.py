"""The folder of a release: written whole, read back, its checksums.

README.md      dataset card; its YAML header names the configurations
tasks/TASK/    one folder for each task, as Harbor reads it (`curation.release.task_folders`)
manifest.json  hash and status of each task folder
registry.json  where git finds the task folders; written by the upload, when they are there
SCHEMA.md      every column of every configuration
CHANGELOG.md   what each version added, removed, changed
release.json   the manifest
SHA256SUMS     of all other files (`sha256sum -c SHA256SUMS`)
data/CONFIGURATION/test-00000-of-00001.parquet
jsonl/gso.jsonl, jsonl/sweperf.jsonl   for loaders that read files of lines
plots/*.svg
sources/REPO.pack   the bases' files (`curation.release.sources`)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from perfquarry.curation.formats import GSO_SCHEMA, SWEPERF_SCHEMA, gso_row, sweperf_row, unit_tests
from perfquarry.data.errors import InputError
from perfquarry.data.files import appearing
from perfquarry.data.records import (
    Record,
    ReleasedFolder,
    ReleasedTask,
    ReleasedTiming,
    Revalidation,
    Task,
    Withdrawn,
)
from perfquarry.data.records.inputs import validation_message
from perfquarry.data.schema import arrow_schema, to_table

R = TypeVar("R", bound=Record)
CONFIGURATIONS: dict[str, pa.Schema] = {
    "default": arrow_schema(ReleasedTask),
    "side_effect": arrow_schema(ReleasedTask),
    "behaviour_changed": arrow_schema(ReleasedTask),
    "tasks": arrow_schema(ReleasedFolder),
    "gso": GSO_SCHEMA,
    "sweperf": SWEPERF_SCHEMA,
    "timings": arrow_schema(ReleasedTiming),
    "revalidations": arrow_schema(Revalidation),
    "withdrawn": arrow_schema(Withdrawn),
}
ASIDE = ("side_effect", "behaviour_changed")
"""Configurations of tasks whose gain was not meant, or that alter behaviour; left out where there are none."""
LINES = ("gso", "sweperf")
"""Configurations that are also written as lines of JSON."""
SUMS = "SHA256SUMS"
REGISTRY = "registry.json"
UNLISTED = frozenset({SUMS, REGISTRY})
"""Files that the checksums do not name."""


def parquet_of(folder: Path, configuration: str) -> Path:
    """The file of a configuration."""
    return folder / "data" / configuration / "test-00000-of-00001.parquet"


def tables(
    rows: Sequence[ReleasedTask],
    tasks: Sequence[Task],
    timings: Sequence[ReleasedTiming],
    revalidations: Sequence[Revalidation] = (),
    folders: Sequence[ReleasedFolder] = (),
    withdrawn: Sequence[Withdrawn] = (),
) -> dict[str, pa.Table]:
    """All configurations. SWE-Perf's has no row for a task without unit tests.

    What stands in a configuration aside is in none of the others but `timings` and `revalidations`.
    """
    meant = [row for row in rows if row.intent not in ASIDE]
    names = {row.task_id for row in meant}
    tasks = [task for task in tasks if task.task_id in names]
    with_tests = [task for task in tasks if unit_tests(task)]
    return {
        "default": to_table(meant, ReleasedTask),
        **{name: to_table([row for row in rows if row.intent == name], ReleasedTask) for name in ASIDE},
        "tasks": to_table(folders, ReleasedFolder),
        "gso": pa.Table.from_pylist([gso_row(task) for task in tasks], schema=GSO_SCHEMA),
        "sweperf": pa.Table.from_pylist([sweperf_row(task) for task in with_tests], schema=SWEPERF_SCHEMA),
        "timings": to_table(timings, ReleasedTiming),
        "revalidations": to_table(revalidations, Revalidation),
        "withdrawn": to_table(withdrawn, Withdrawn),
    }


def write_tables(folder: Path, parts: Mapping[str, pa.Table]) -> None:
    """Writes the configurations as Parquet (zstd), two of them as lines of JSON, too."""
    for name, table in parts.items():
        write_table(folder, name, table)
    (folder / "jsonl").mkdir(exist_ok=True)
    for name in LINES:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in parts[name].to_pylist())
        (folder / "jsonl" / f"{name}.jsonl").write_text(text, encoding="utf-8")


def write_table(folder: Path, configuration: str, table: pa.Table) -> None:
    """Writes one configuration as Parquet (zstd); one without rows has no file, for `datasets` cannot load it."""
    file = parquet_of(folder, configuration)
    if table.num_rows:
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, file, compression="zstd")


def configurations_of(folder: Path) -> list[str]:
    """The configurations that have rows, and a file."""
    return [name for name in CONFIGURATIONS if parquet_of(folder, name).exists()]


def is_there(folder: Path, configuration: str) -> bool:
    """Whether a configuration has a file to be read; `default` must have one."""
    return configuration == "default" or parquet_of(folder, configuration).parent.exists()


def read(folder: Path, model: type[R], configuration: str) -> list[R]:
    """The rows of a configuration as records; none where the configuration has no file.

    Another version of perfquarry may have written them.

    Raises:
        InputError: the file cannot be read, or a row is no valid record.
    """
    if not is_there(folder, configuration):
        return []
    return as_records(read_table(folder, configuration), model, parquet_of(folder, configuration))


def read_table(folder: Path, configuration: str) -> pa.Table:
    """A configuration as it is in its file.

    Raises:
        InputError: the file cannot be read.
    """
    file = parquet_of(folder, configuration)
    try:
        return pq.read_table(plain(file), partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read {file}: {error}") from error


def as_records(table: pa.Table, model: type[R], file: Path) -> list[R]:
    """Rows of a configuration as records, without what only a newer perfquarry knows.

    Raises:
        InputError: a row of `file` is no valid record.
    """
    known = pa.struct(arrow_schema(model))
    name = ""
    found = []
    try:
        for row in table.to_pylist():
            name = str(row.get("task_id", ""))
            found.append(model.model_validate(_known(row, known)))
    except ValidationError as error:
        raise InputError(
            f"{file}: {name[:100]!r} is refused: {validation_message(error)}: "
            "fetch the release again, from somebody you trust"
        ) from error
    except pa.ArrowException as error:
        raise InputError(f"cannot read {file}: {error}") from error
    return found


def _known(value: Any, kind: pa.DataType) -> Any:
    """A value without the fields of structures that only a newer perfquarry knows."""
    if isinstance(value, dict) and pa.types.is_struct(kind):
        return {field.name: _known(value[field.name], field.type) for field in kind if field.name in value}
    if isinstance(value, list) and pa.types.is_list(kind):
        return [_known(one, kind.value_type) for one in value]
    return value


def read_tasks(folder: Path) -> list[ReleasedTask]:
    """The tasks of a release, which may be a stranger's: the record's types refuse what could do harm here.

    Raises:
        InputError: as `read`.
    """
    return read(folder, ReleasedTask, "default")


def read_every_task(folder: Path) -> list[ReleasedTask]:
    """Those of the configurations aside, too.

    Raises:
        InputError: as `read`.
    """
    names = [name for name in configurations_of(folder) if name in ("default", *ASIDE)]
    return [task for name in names for task in read(folder, ReleasedTask, name)]


@contextmanager
def writing(to: Path) -> Iterator[Path]:
    """A folder that becomes `to` when everything in it is written; an older release there is replaced.

    Raises:
        InputError: `to` is there and is no release, or cannot be written.
    """
    if to.exists() and not ((to / SUMS).is_file() or (to.is_dir() and not any(to.iterdir()))):
        raise InputError(f"{to} is there and is no release: name another folder with --to")
    place = to.resolve()  # a symbolic link stays, and what it names is replaced
    try:
        with appearing(place, over=True) as partial:
            partial.mkdir()
            yield partial
            write_sums(partial)
    except OSError as error:
        raise InputError(f"cannot write the release {to}: {error.strerror or error}") from error


def write_sums(folder: Path) -> None:
    """Writes `SHA256SUMS` of all other files, in the form of sha256sum."""
    lines = [f"{digest(folder / name)}  {name}\n" for name in files_of(folder) if name not in UNLISTED]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def read_sums(folder: Path) -> dict[str, str]:
    """Digests by file.

    Raises:
        InputError: there is no such list.
    """
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{folder} is no release: cannot read {SUMS}: {error.strerror or error}") from error
    pairs = (line.partition("  ") for line in lines)
    return {name: value for value, _, name in pairs}


def files_of(folder: Path) -> list[str]:
    """All files below a folder, relative, sorted.

    Raises:
        InputError: there is a symbolic link among them: it could name any file of this machine.
    """
    return sorted(plain(path).relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


def plain(file: Path) -> Path:
    """The file of a release, which must be no symbolic link.

    Raises:
        InputError: it is one.
    """
    if file.is_symlink() or (file.exists() and not file.is_file()):
        raise InputError(f"{file} is no plain file: fetch the release again, from somebody you trust")
    return file


def digest(file: Path) -> str:
    """SHA-256 of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
