"""Claims of work: of many workers, on one machine or several, only one does a key at a time.

A claim is a lease that its holder's heartbeat renews. It ends when the holder says so, when
the lease runs out, or, on the holder's own machine, as soon as its process has ended. What
marks work as done for ever are the tables; a claim keeps only for others that made their
list of what is to do before the rows were there that the key is done.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Float,
    Index,
    MetaData,
    String,
    Table,
    create_engine,
    delete,
    event,
    func,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql.functions import FunctionElement
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random

from perfquarry.data.alive import SignOfLife, dead
from perfquarry.data.errors import ClaimsUnavailable, InputError

LEASE_SECONDS = 60.0
"""How long a claim outlives the last heartbeat of a holder on another machine (seconds)."""
KEPT_SECONDS = 30 * 86400.0
"""How long a key stays marked as done: longer than anybody works off one list (seconds)."""
BUSY_SECONDS = 30.0
"""How long a SQLite database may be locked by others."""
_AT_ONCE = 1000
"""Keys of one statement."""
_PREPARING = 0x70657266
"""Number of the advisory lock under which the table is made."""
_log = logging.getLogger("perfquarry.claims")

_claims = Table(
    "claims",
    MetaData(),
    Column("scope", String(16), primary_key=True),
    Column("key", String(64), primary_key=True),
    Column("holder", String(32), nullable=False),
    Column("until", Float, nullable=False),
    Column("done_at", Float),
    Index("claims_of_holder", "holder"),
)
_held = _claims.c.done_at.is_(None)


class _now(FunctionElement[float]):
    """Seconds since 1970 by the database's clock, the one clock that all workers share."""

    type = Float()
    inherit_cache = True


@compiles(_now, "sqlite")
def _now_of_sqlite(*_: Any, **__: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(_now, "postgresql")
def _now_of_postgres(*_: Any, **__: Any) -> str:
    return "extract(epoch from clock_timestamp())::double precision"


class Claims:
    """The claims of this process.

    Every method raises ClaimsUnavailable when the database does not answer.

    Args:
        url: SQLAlchemy URL of a SQLite or Postgres database (`Home.database`); its table is made when missing.
        signs: folder of the signs of life of this home's processes.
        lease: seconds a claim outlives the last heartbeat.

    Raises:
        InputError: the URL names no such database.
    """

    def __init__(self, url: str, signs: Path, lease: float = LEASE_SECONDS) -> None:
        self._engine = _engine(url)
        self._signs, self._lease = signs, lease
        self._closed = threading.Event()
        self._heart: threading.Thread | None = None
        self._starting = threading.Lock()
        self._prepare()
        self._sign = SignOfLife(signs, uuid.uuid4().hex)

    @property
    def holder(self) -> str:
        """Name of this process among the holders."""
        return self._sign.name

    def now(self) -> float:
        """The database's time (seconds since 1970): to be asked before a list of what is to do is made."""
        with self._connected() as connection:
            return float(connection.execute(select(_now())).scalar_one())

    def take(self, scope: str, keys: Sequence[str], since: float) -> list[str]:
        """Claims keys that nobody holds and that were not finished after `since`; returns those gained."""
        self._beat_from_now_on()
        until, gained = _now() + self._lease, set[str]()
        taken = {"holder": self.holder, "until": until, "done_at": None}
        free = (_held & ((_claims.c.until < _now()) | (_claims.c.holder == self.holder))) | (_claims.c.done_at < since)
        statement = (
            self._insert()
            .values(scope=scope, **taken)
            .on_conflict_do_update(index_elements=["scope", "key"], set_=taken, where=free)
            .returning(_claims.c.key)
        )
        for some in _pieces(sorted(keys)):  # in one order, so that two workers cannot wait for each other
            with self._connected() as connection:
                gained.update(connection.execute(statement, [{"key": key} for key in some]).scalars())
        return [key for key in keys if key in gained]

    def finish(self, scope: str, keys: Sequence[str]) -> None:
        """The rows of these keys are in the tables: whoever has an older list passes them over."""
        self._each(lambda some: update(_claims).where(*self._own(scope, some)).values(done_at=_now()), keys)

    def release(self, scope: str, keys: Sequence[str]) -> None:
        """Others may take these keys."""
        self._each(lambda some: delete(_claims).where(*self._own(scope, some)), keys)

    def holds(self, scope: str, key: str) -> bool:
        """Whether this process has the key still: a suspended one may have lost it meanwhile."""
        with self._connected() as connection:
            return connection.execute(select(_claims.c.key).where(*self._own(scope, [key]))).first() is not None

    def elsewhere(self, scope: str) -> set[str]:
        """Keys that living others hold; claims of this machine's ended processes are freed first."""
        self.bury()
        others = (_claims.c.scope == scope) & _held & (_claims.c.holder != self.holder) & (_claims.c.until >= _now())
        with self._connected() as connection:
            return set(connection.execute(select(_claims.c.key).where(others)).scalars())

    def bury(self) -> None:
        """Frees the claims of processes of this home that have ended."""
        for holder in dead(self._signs):
            with self._connected() as connection:
                freed = connection.execute(delete(_claims).where(_held, _claims.c.holder == holder)).rowcount
            if freed:
                _log.info("took over %d claim(s) of a worker that ended", freed)

    def close(self) -> None:
        """Frees what this process holds and ends its heartbeat."""
        self._closed.set()
        with self._starting:
            if self._heart is not None:
                self._heart.join()  # a connection that it uses would outlive the engine
        try:
            with self._connected() as connection:
                connection.execute(delete(_claims).where(_held, _claims.c.holder == self.holder))
        finally:
            self._sign.end()
            self._engine.dispose()

    def _own(self, scope: str, keys: Sequence[str]) -> tuple[ColumnElement[bool], ...]:
        return (_claims.c.scope == scope, _claims.c.key.in_(keys), _claims.c.holder == self.holder, _held)

    def _each(self, statement: Callable[[Sequence[str]], Any], keys: Sequence[str]) -> None:
        for some in _pieces(sorted(keys)):
            with self._connected() as connection:
                connection.execute(statement(some))

    def _insert(self) -> Any:
        return (sqlite if self._engine.dialect.name == "sqlite" else postgresql).insert(_claims)

    def _prepare(self) -> None:
        with self._connected() as connection:
            if self._engine.dialect.name == "postgresql":  # it refuses the second of two who make a table at once
                connection.execute(select(func.pg_advisory_xact_lock(_PREPARING)))
            connection.execute(CreateTable(_claims, if_not_exists=True))
            for index in _claims.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))
            connection.execute(delete(_claims).where(_claims.c.done_at < _now() - KEPT_SECONDS))

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            where = self._engine.url.render_as_string(hide_password=True)
            raise ClaimsUnavailable(f"the database of claims {where} failed: {_first_line(error)}") from error

    def _beat_from_now_on(self) -> None:
        with self._starting:
            if self._heart is None:
                self._heart = threading.Thread(target=self._beat, name="claims", daemon=True)
                self._heart.start()

    def _beat(self) -> None:
        renewed = update(_claims).where(_held, _claims.c.holder == self.holder).values(until=_now() + self._lease)
        while not self._closed.wait(self._lease / 4):
            try:
                with self._connected() as connection:
                    connection.execute(renewed)
            except ClaimsUnavailable as error:
                _log.warning("%s; trying again in %.0f s", error, self._lease / 4)


def _engine(url: str) -> Engine:
    try:
        address = make_url(url)
        if address.drivername == "postgresql":
            address = address.set(drivername="postgresql+psycopg")
        if address.get_backend_name() == "postgresql":
            return create_engine(address, pool_pre_ping=True)
        if address.get_backend_name() != "sqlite" or not address.database:
            raise InputError(f"claims are kept in SQLite files or Postgres, not in {address.drivername}")
    except (ArgumentError, NoSuchModuleError) as error:
        raise InputError(f"PERFQUARRY_DATABASE is no SQLAlchemy URL: {_first_line(error)}") from error
    Path(address.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(address, connect_args={"timeout": BUSY_SECONDS})

    # two that change it at once do not wait for each other, whatever their timeout is
    changing = Retrying(
        retry=retry_if_exception_type(sqlite3.OperationalError),
        stop=stop_after_delay(BUSY_SECONDS),
        wait=wait_random(0.01, 0.1),
        reraise=True,
    )

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, _: object) -> None:
        changing(connection.execute, "PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


def _pieces(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), _AT_ONCE):
        yield keys[start : start + _AT_ONCE]


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]
