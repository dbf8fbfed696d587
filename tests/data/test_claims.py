"""Claims on SQLite and on a real Postgres: one holder a key, whatever happens to the holders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perfquarry.data.alive import SignOfLife, dead
from perfquarry.data.claims import Claims
from perfquarry.data.errors import ClaimsUnavailable, InputError
from perfquarry.data.files import is_locked
from tests.real_servers import free_port

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/claims.sqlite"
    return str(request.getfixturevalue("postgres_url"))


class Workers:
    """Processes of a home, or of machines of their own, that share a database."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self._folder = url, folder
        self.scope = folder.name[-16:]
        self._open: list[Claims] = []

    def one(self, machine: str = "here", lease: float = 60.0) -> Claims:
        self._open.append(Claims(self.url, self._folder / machine, lease))
        return self._open[-1]

    def close(self) -> None:
        for claims in self._open:
            claims.close()


@pytest.fixture
def workers(url: str, tmp_path: Path) -> Iterator[Workers]:
    made = Workers(url, tmp_path)
    yield made
    made.close()


def test_a_key_has_one_holder_until_it_is_released(workers: Workers) -> None:
    a, b, scope = workers.one(), workers.one(), workers.scope
    since = a.now()
    assert a.take(scope, ["x", "y"], since) == ["x", "y"]
    assert b.take(scope, ["z", "y", "x"], since) == ["z"]
    assert a.take(scope, ["y"], since) == ["y"]  # a batch that is tried again
    assert b.take("other scope", ["x"], since) == ["x"]
    assert (a.elsewhere(scope), b.elsewhere(scope)) == ({"z"}, {"x", "y"})
    b.release(scope, ["x", "y"])  # not its own
    assert b.take(scope, ["x"], since) == []
    a.release(scope, ["x"])
    assert b.take(scope, ["x"], since) == ["x"]
    assert (a.holds(scope, "x"), a.holds(scope, "y"), b.holds(scope, "x")) == (False, True, True)


def test_what_was_finished_after_the_list_was_made_is_not_taken_again(workers: Workers) -> None:
    a, b, scope = workers.one(), workers.one(), workers.scope
    listed = b.now()
    assert a.take(scope, ["x"], a.now()) == ["x"]
    a.finish(scope, ["x"])
    assert b.elsewhere(scope) == set()
    assert b.take(scope, ["x"], listed) == []
    time.sleep(0.01)  # the clock's resolution
    assert b.take(scope, ["x"], b.now()) == ["x"]  # a list that was made later says that it is to be done again


def test_a_lease_runs_out_without_a_heartbeat_and_not_with_one(workers: Workers) -> None:
    living, suspended, other = (workers.one(machine, lease=2.0) for machine in "abc")
    scope, since = workers.scope, living.now()
    assert living.take(scope, ["x"], since) == ["x"]
    assert suspended.take(scope, ["y"], since) == ["y"]
    suspended._closed.set()  # what a machine that sleeps does
    deadline = time.monotonic() + 30
    while not (gained := other.take(scope, ["x", "y"], since)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert gained == ["y"]
    assert not suspended.holds(scope, "y") and living.holds(scope, "x")
    suspended.finish(scope, ["y"])  # too late: it is another's
    assert other.holds(scope, "y")


HOLDER = """
import sys, time
from pathlib import Path
from perfquarry.data.claims import Claims
claims = Claims(sys.argv[1], Path(sys.argv[2]))
print(claims.take(sys.argv[3], ["x", "y"], claims.now()), claims.holder, flush=True)
time.sleep(600)
"""


def test_a_killed_process_of_this_home_loses_its_claims_at_once(workers: Workers, tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", HOLDER, workers.url, str(tmp_path / "here"), workers.scope]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    gained, _, holder = process.stdout.readline().strip().rpartition(" ")
    assert gained == "['x', 'y']"
    here, elsewhere = workers.one(), workers.one("another machine")
    assert here.elsewhere(workers.scope) == {"x", "y"}
    assert is_locked(tmp_path / "here" / holder)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert elsewhere.elsewhere(workers.scope) == {"x", "y"}  # sees no sign: it waits for the lease
    assert here.elsewhere(workers.scope) == set()
    assert here.take(workers.scope, ["x"], here.now()) == ["x"]
    assert not is_locked(tmp_path / "here" / holder)
    assert is_locked(tmp_path / "here" / here.holder)


def test_many_workers_do_every_key_once(workers: Workers) -> None:
    keys = [f"k{number}" for number in range(60)]
    done: list[str] = []
    since = workers.one().now()

    def work(claims: Claims) -> None:
        for key in keys:
            if claims.take(workers.scope, [key], since):
                done.append(key)
                claims.finish(workers.scope, [key])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, [workers.one() for _ in range(6)]))
    assert sorted(done) == sorted(keys)


def test_large_batches_are_claimed_in_pieces(workers: Workers) -> None:
    keys = [f"{number:016x}" for number in range(5000)]
    a, b = workers.one(), workers.one()
    assert a.take(workers.scope, keys[1500:2500], a.now()) == keys[1500:2500]
    assert b.take(workers.scope, keys, b.now()) == keys[:1500] + keys[2500:]
    b.release(workers.scope, keys)
    assert a.elsewhere(workers.scope) == set()


def test_the_next_of_several_to_come_finds_the_tables_made(url: str, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for claims in pool.map(lambda _: Claims(url, tmp_path / "signs"), range(8)):
            claims.close()
    assert list((tmp_path / "signs").iterdir()) == []


def test_signs_of_the_dead_are_reported_once(tmp_path: Path) -> None:
    alive = SignOfLife(tmp_path, "alive")
    (tmp_path / "ended").touch()
    assert list(dead(tmp_path)) == ["ended"]
    assert list(dead(tmp_path)) == []
    alive.end()
    assert not is_locked(tmp_path / "alive")


@pytest.mark.parametrize("url", ["mysql://somewhere/x", "no url", "sqlite://", "unknown+driver://x/y"])
def test_other_databases_are_bad_input(url: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        Claims(url, tmp_path)


def test_a_database_that_does_not_answer_is_named_without_its_password(tmp_path: Path) -> None:
    url = f"postgresql://worker:secret@127.0.0.1:{free_port()}/perfquarry"
    with pytest.raises(ClaimsUnavailable, match="worker") as caught:
        Claims(url, tmp_path)
    assert "secret" not in str(caught.value)
