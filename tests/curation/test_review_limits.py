"""What the review page must bear: bodies without end, numbers without bounds, statements that rewrite its log."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import httpx
import pyarrow.parquet as pq
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from perfquarry.curation.review.database import open_database
from perfquarry.curation.review.decisions import Decisions
from perfquarry.curation.review.guard import BODY_LIMIT
from perfquarry.curation.review.transfer import export_log, import_decisions
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home
from tests.curation.test_review_decisions import decisions, new_database, url  # noqa: F401 - fixtures
from tests.curation.test_review_pages import csrf_of
from tests.review_home import desk_of, fill, serving, task_of

TASK, OTHER = task_of(1, 2.0).task_id, task_of(2, 2.0).task_id


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A browser at a queue of two candidates, once for each kind of database."""
    home = Home(tmp_path_factory.mktemp("home"))
    fill(home, [task_of(1, 2.0), task_of(2, 2.0)])
    where = f"sqlite:///{home.root}/reviews.db" if request.param == "sqlite" else new_database(request)
    with serving(desk_of(home, where), home) as (address, _), httpx.Client(base_url=address, trust_env=False) as client:
        yield client


def form_of(client: httpx.Client, task: str = TASK, **more: object) -> dict[str, object]:
    return {"csrf": csrf_of(client.get(f"/tasks/{task}").text), "seen": 0, "action": "accept", **more}


def nobody_acted(client: httpx.Client, task: str = TASK) -> bool:
    return "Nobody has acted on it" in client.get(f"/tasks/{task}").text


def sent(client: httpx.Client, headers: dict[str, str], body: bytes) -> tuple[int, int]:
    """The status that answers a hand-made request, and how many bytes of its body were taken."""
    place = urlsplit(str(client.base_url))
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    lines = {"host": place.netloc, "content-type": "application/x-www-form-urlencoded", "cookie": cookie, **headers}
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=60) as connection:
        head = f"POST /tasks/{TASK}/decide HTTP/1.1\r\n" + "".join(
            f"{key}: {value}\r\n" for key, value in lines.items()
        )
        connection.sendall(f"{head}\r\n".encode())
        taken = 0
        try:
            for start in range(0, len(body), 4096):
                connection.sendall(body[start : start + 4096])
                taken += 4096
        except OSError:  # the server has closed the connection
            pass
        try:
            answer = connection.recv(4096)
        except OSError:
            return 0, taken
    return int(answer.split()[1]) if answer else 0, taken


def in_chunks(body: bytes) -> bytes:
    parts = [body[start : start + 1024] for start in range(0, len(body), 1024)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("said", [{}, {"content-length": "10"}, {"content-length": "10, 10"}])
@pytest.mark.parametrize("where", ["note", "name", "multipart"])
def test_chunks_are_counted(page: httpx.Client, said: dict[str, str], where: str) -> None:
    long = "x" * (BODY_LIMIT + 1)
    form = urlencode(form_of(page, note=long if where == "note" else ""))
    body = form.encode() + (f"&{long}=1".encode() if where == "name" else b"")
    kind = {"content-type": "multipart/form-data; boundary=b"} if where == "multipart" else {}
    if where == "multipart":
        body = (
            b'--b\r\ncontent-disposition: form-data; name="f"; filename="f"\r\n\r\n' + long.encode() + b"\r\n--b--\r\n"
        )
    status, _ = sent(page, {"transfer-encoding": "chunked", **said, **kind}, in_chunks(body))
    assert status in (0, 400, 411, 413)  # 0: it was cut off
    assert nobody_acted(page)


def test_a_body_without_end_is_not_kept(page: httpx.Client) -> None:
    endless = b"%x\r\n%s\r\n" % (2**16, b"x" * 2**16) * 2000
    status, taken = sent(page, {"transfer-encoding": "chunked", "content-length": "10"}, endless)
    assert status in (0, 400, 411, 413) and taken < len(endless)
    assert nobody_acted(page)


@pytest.mark.parametrize("length", ["9" * 20, "9" * 5000, "-1", "0x10", "1e3", "²"])
def test_lengths_that_are_none(page: httpx.Client, length: str) -> None:
    status, _ = sent(page, {"content-length": length}, b"")
    assert status in (0, 400, 411, 413, 431)
    assert nobody_acted(page)


def test_a_short_form_still_counts(page: httpx.Client) -> None:
    assert page.post(f"/tasks/{OTHER}/decide", data=form_of(page, OTHER, note="x" * 3000)).status_code == 303
    assert not nobody_acted(page, OTHER)


@pytest.mark.parametrize("number", ["-1", str(2**31), str(2**63), str(2**64), "9" * 400, "9" * 5000, "1e400", "0x1"])
def test_numbers_are_bounded(page: httpx.Client, number: str) -> None:
    answer = page.post(f"/tasks/{TASK}/decide", data=form_of(page, seen=number))
    assert answer.status_code == 422
    for name in ("page", "offset", "limit"):
        assert page.get("/", params={name: number}).status_code in (422, 200)
    assert page.get(f"/tasks/{number}").status_code == 404


@pytest.mark.parametrize("place", ["/?q=%00", "/?repo=a%00", "/tasks/%00", f"/tasks/{TASK}%00/runs", "/?q=%ED%A0%80"])
def test_characters_that_databases_cannot_hold(page: httpx.Client, place: str) -> None:
    assert page.get(place).status_code in (200, 400, 404, 422)
    note = {"action": "note", "note": "a\0b\ud800".encode("utf-8", "surrogatepass")}
    assert page.post(f"/tasks/{OTHER}/decide", data=form_of(page, OTHER, **note)).status_code < 500


REWRITES = {
    "sqlite": [
        "INSERT OR REPLACE INTO events SELECT id, uid, task_id, '', 'b', 'reject', '', '', NULL, at, NULL FROM events",
        "REPLACE INTO events (uid, task_id, fingerprint, reviewer, action, note, at) "
        "SELECT uid, 't', '', 'bob', 'accept', '', at FROM events",
        "REPLACE INTO events (id, uid, task_id, fingerprint, reviewer, action, note, at) "
        "SELECT id, 'other', 't', '', 'bob', 'accept', '', at FROM events",
        "INSERT INTO events SELECT * FROM events WHERE true ON CONFLICT (uid) DO UPDATE SET reviewer = 'bob'",
        "INSERT INTO events SELECT * FROM events WHERE true ON CONFLICT (id) DO UPDATE SET reviewer = 'bob'",
        "UPDATE OR REPLACE events SET uid = 'other'",
        "UPDATE OR IGNORE events SET reviewer = 'bob'",
        "INSERT INTO events SELECT -1, 'u', 't', '', 'bob', 'accept', '', '', NULL, at, NULL FROM events",
        "DELETE FROM events WHERE reviewer = 'ann'",
        "DELETE FROM events",
    ],
    "postgresql": [
        "INSERT INTO events SELECT * FROM events ON CONFLICT (uid) DO UPDATE SET reviewer = 'bob'",
        "INSERT INTO events SELECT * FROM events ON CONFLICT (id) DO UPDATE SET reviewer = 'bob'",
        "SET LOCAL session_replication_role = replica; UPDATE events SET reviewer = 'bob'",
        "SET LOCAL session_replication_role = replica; DELETE FROM events",
        "SET LOCAL session_replication_role = replica; TRUNCATE events",
        "WITH gone AS (DELETE FROM events RETURNING *) INSERT INTO events SELECT * FROM gone",
        "TRUNCATE events CASCADE",
        "DELETE FROM events",
    ],
}  # fmt: skip


def test_no_statement_rewrites_the_log(decisions: Decisions) -> None:  # noqa: F811
    decisions.record("t", "ann", "accept", seen=0)
    before = decisions.log()
    for statement in REWRITES[decisions.engine.dialect.name]:
        with pytest.raises(DBAPIError, match="can only be added to"), decisions.engine.begin() as connection:
            for part in statement.split("; "):
                connection.execute(text(part))
        assert decisions.log() == before, statement
    decisions.record("t", "ann", "reject", seen=1, reason="trivial")
    assert len(decisions.log()) == 2


def test_it_holds_for_other_programs_and_older_databases(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/reviews.db"
    ours = Decisions(open_database(address))
    ours.record("t", "ann", "accept", seen=0)
    before = ours.log()
    ours.engine.dispose()
    other = create_engine(address)
    for statement in REWRITES["sqlite"]:
        with pytest.raises(DBAPIError, match="can only be added to"), other.begin() as connection:
            connection.execute(text(statement))
    other.dispose()
    again = Decisions(open_database(address))
    assert again.log() == before
    again.engine.dispose()


@pytest.mark.parametrize(
    "change",
    [{"uid": "../x"}, {"uid": "x" * 33}, {"task_id": ""}, {"task_id": "x" * 201}, {"at": "tomorrow"}, {"note": "a\0"},
     {"reviewer": "x" * 81}, {"at": "9999"}, {"fingerprint": "x" * 41}, {"note": "x" * 4001}],
)  # fmt: skip
def test_an_imported_log_is_input(tmp_path: Path, change: dict[str, str]) -> None:
    ours = Decisions(open_database(f"sqlite:///{tmp_path}/reviews.db"))
    ours.record("t", "ann", "accept", seen=0)
    export_log(ours, file := tmp_path / "log.parquet")
    table = pq.read_table(file)
    rows = [row | change | ({} if "uid" in change else {"uid": "new"}) for row in table.to_pylist()]
    pq.write_table(table.from_pylist(rows, table.schema), file)
    with pytest.raises(InputError, match="row 1"):
        import_decisions(ours, file)
    assert len(ours.log()) == 1
    ours.engine.dispose()
