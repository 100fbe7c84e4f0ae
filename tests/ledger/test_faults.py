"""Full, locked, read-only, damaged, missing: a typed refusal, nothing spent, nothing lost."""

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest

import mosha
from mosha import errors
from mosha.ledger.opening import VERSION
from tests.ledger.place import PERSON, asking

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Any:
    return tmp_path / "privacy.db"


@pytest.fixture
def account(path: Any) -> Iterator[Any]:
    with mosha.Ledger(path, patience=0.05) as ledger:
        yield ledger.account("visits", unit=PERSON, epsilon=100)


def spent_later(path: Any) -> Any:
    with mosha.Ledger(path) as ledger:
        assert ledger.verify().ok
        return ledger.account("visits").spent


def test_every_commit_waits_for_the_disk(place: Any) -> None:
    connection = place.open()._storage._connection
    setting = lambda statement: connection.execute(statement).fetchone()[0]
    if place.engine == "sqlite":
        assert (setting("PRAGMA journal_mode"), setting("PRAGMA synchronous")) == ("wal", 2)
    else:
        assert (setting("SHOW fsync"), setting("SHOW synchronous_commit")) == ("on", "on")


def test_a_locked_file_is_refused_after_a_bounded_wait(path: Any, account: Any) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(errors.LedgerUnavailable, match="another writer"):
            account.open(asking(step=lambda *_: pytest.fail("data was read")))
        other.execute("ROLLBACK")
    account.open(asking()).step(None)
    assert spent_later(path) == 1.0


def test_a_locked_table_is_refused_after_a_bounded_wait(postgres_server: Any) -> None:
    import psycopg

    from tests.ledger.place import PostgreSQLPlace

    place = PostgreSQLPlace(postgres_server)
    try:
        account = place.open(patience=0.05).account("visits", unit=PERSON, epsilon=10)
        with psycopg.connect(place.where) as other:
            other.execute("LOCK TABLE mosha.entries")
            with pytest.raises(errors.LedgerUnavailable, match="another writer"):
                account.open(asking())
        account.open(asking()).step(None)
        assert account.spent == 1.0
    finally:
        place.close()


def test_a_full_database_is_refused_and_works_again_when_there_is_room(path: Any, account: Any) -> None:
    connection = account._ledger._storage._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    paid = 0

    def pay_for_ever() -> None:
        nonlocal paid
        while True:
            account.open(asking()).step(None)
            paid += 1

    with pytest.raises(errors.LedgerUnavailable, match="full"):
        pay_for_ever()
    connection.execute("PRAGMA max_page_count = 1000000")
    whole = account.spent
    assert whole in (paid, paid + 1)  # the payment may have fitted and its release not
    account.open(asking()).step(None)
    assert spent_later(path) == whole + 1


# A child pays until the disk is full, then makes room and goes on with what could not be noted.
HUNGRY = """
import json, os, sys
import mosha
from mosha import errors
from tests.ledger.place import PERSON, asking

folder, room = sys.argv[1:]
ledger = mosha.Ledger(folder + "/privacy.db")
account = ledger.account("visits", unit=PERSON, epsilon=1e6)
paid, calls, trouble = 0, 0, None
def step(state, data, ask, rng):
    global calls
    calls += 1
    return "x" * 2000, state
run = None
while trouble is None:
    try:
        run = account.open(asking(step=step), key=str(paid))
        run.step(None)
        paid += 1
        run = None
    except errors.LedgerUnavailable as error:
        trouble = str(error)
at_trouble = ledger.account("visits").spent
exec(room)
if run is not None:
    run.step(None)
    paid += 1
account.open(asking(step=step), key="last").step(None)
found = {"paid": paid, "calls": calls, "trouble": trouble, "before": at_trouble, "spent": account.spent}
print(json.dumps(found | {"problems": ledger.verify().problems}))
"""


def hungry(folder: Any, room: Any, *, before: Any = None, prefix: Any = ()) -> Any:
    command = [*prefix, sys.executable, "-c", HUNGRY, str(folder), room]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=300, preexec_fn=before, check=False
    )  # fmt: skip


def judge(done: Any) -> Any:
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["problems"] == []
    assert found["calls"] == found["paid"] + 1  # every answer was drawn once, also the one that had to wait
    assert found["spent"] == found["paid"] + 1
    assert found["before"] - found["paid"] in (-1, 0, 1)
    return found


def test_a_file_that_may_not_grow_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))

    room = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10**9, resource.RLIM_INFINITY))"
    found = judge(hungry(tmp_path, room, before=limited))
    assert "disk" in found["trouble"]


def test_a_full_disk_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    """A small file system of memory, in a name space of its own: no rights are needed where the kernel allows it."""
    if shutil.which("unshare") is None:
        pytest.skip("this machine has no unshare(1)")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = 'mount -t tmpfs -o size=600k tmpfs "$0" && head -c 200000 /dev/zero > "$0/ballast" && exec "$@"'
    prefix = ("unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(disk))
    probe = subprocess.run([*prefix, "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("this kernel lets nobody mount a file system of memory in a name space of its own")
    found = judge(hungry(disk, f"os.unlink({str(disk / 'ballast')!r})", prefix=prefix))
    assert "full" in found["trouble"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes where it likes")
def test_a_read_only_file_is_refused(path: Any, account: Any) -> None:
    account._ledger.close()
    path.chmod(0o444)
    with pytest.raises(errors.LedgerUnavailable):
        mosha.Ledger(path).account("stays", unit=PERSON, epsilon=1)


def test_a_book_that_may_only_be_read_is_refused(path: Any, account: Any) -> None:
    account._ledger._storage._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(errors.LedgerUnavailable, match="read-only"):
        account.open(asking())
    assert account.spent == 0


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_ledger_is_refused(path: Any, content: Any) -> None:
    path.write_bytes(content)
    with pytest.raises(errors.LedgerUnavailable):
        mosha.Ledger(path)
    assert path.read_bytes() == content


def test_a_database_of_another_kind_is_left_alone(path: Any) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE patients (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(errors.LedgerUnavailable, match="not a ledger"):
        mosha.Ledger(path)
    assert path.read_bytes() == before


def test_a_book_of_a_newer_version_is_refused(place: Any) -> None:
    place.open().close()
    place.tamper(f"""UPDATE entries SET body = '{{"version":{VERSION + 1}}}' WHERE sequence = 1""")
    with pytest.raises(errors.LedgerUnavailable, match="newer"):
        place.open()


def test_a_ledger_follows_its_file_and_not_the_folder_of_the_process(
    path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with mosha.Ledger("privacy.db") as ledger:
        account = ledger.account("visits", unit=PERSON, epsilon=5)
        monkeypatch.chdir("/")
        account.open(asking()).step(None)
    assert spent_later(path) == 1.0


def test_postgresql_without_its_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "mosha.ledger.storage.postgresql", raising=False)
    with pytest.raises(errors.MissingExtra, match="postgres"):
        mosha.Ledger("postgresql://host/book")


def test_all_who_share_a_commit_learn_that_it_failed(path: Any, account: Any) -> None:
    storage, heard = account._ledger._storage, []

    def ask() -> None:
        try:
            account.open(asking())
        except errors.LedgerUnavailable as error:
            heard.append(error)

    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        threads = [threading.Thread(target=ask) for _ in range(5)]
        with storage._turn:
            for thread in threads:
                thread.start()
            while len(storage._queue) < 5:
                pass
        for thread in threads:
            thread.join()
        other.execute("ROLLBACK")
    assert len({id(error) for error in heard}) == 5
    assert {error.render("zh") for error in heard} == {heard[0].render("zh")}  # with the place and the reason
    assert "另一个写入者" in heard[-1].render("zh")
    assert spent_later(path) == 0


def test_a_thread_that_was_interrupted_holds_up_nobody(path: Any, account: Any) -> None:
    storage = account._ledger._storage

    class Torn(type(storage._queue)):  # type: ignore[misc]
        def popleft(self) -> NoReturn:
            super().popleft()
            raise KeyboardInterrupt

    queue, storage._queue = storage._queue, Torn()
    with pytest.raises(errors.LedgerUnavailable, match="interrupted"):
        account.open(asking())
    storage._queue = queue
    account.open(asking()).step(None)
    assert spent_later(path) == 1.0


def test_a_damaged_file_is_refused(path: Any, account: Any) -> None:
    for number in range(50):
        account.open(asking(answer="x" * 500), key=str(number)).step(None)
    account._ledger.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(errors.LedgerUnavailable, match="damaged"):
        mosha.Ledger(path).verify()


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.LedgerUnavailable, match="folder"):
        mosha.Ledger(tmp_path / "nowhere" / "privacy.db")
    with pytest.raises(errors.LedgerUnavailable):
        mosha.Ledger(tmp_path)


@pytest.mark.parametrize("place", ["", None, 7, b"privacy.db"])
def test_a_place_is_a_file_or_a_url(place: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        mosha.Ledger(place)


@pytest.mark.parametrize("patience", [0, -1, float("nan"), float("inf"), "long"])
def test_patience_is_a_number_of_seconds(path: Any, patience: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        mosha.Ledger(path, patience=patience)


def test_a_server_that_is_not_there_is_refused_without_its_password() -> None:
    with pytest.raises(errors.LedgerUnavailable) as refusal:
        mosha.Ledger("postgresql://mosha:secret@127.0.0.1:1/book", patience=1)
    assert "secret" not in str(refusal.value)


def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(errors.LedgerUnavailable):
        mosha.Ledger("postgresql://host/book?colour=red")


def test_a_server_without_fsync_is_refused(postgres_server: Any) -> None:
    import psycopg

    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET fsync TO off")
        admin.execute("SELECT pg_reload_conf()")
    url = postgres_server.url("postgres")
    try:
        with psycopg.connect(url, autocommit=True) as admin:
            state = admin.execute("SHOW fsync").fetchone()[0]
        if state != "off":
            pytest.skip("the command line of this server keeps fsync on")
        with pytest.raises(errors.LedgerUnavailable, match="fsync"):
            mosha.Ledger(url)
    finally:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("ALTER SYSTEM RESET fsync")
            admin.execute("SELECT pg_reload_conf()")


def test_no_message_of_a_broken_storage_holds_an_answer(path: Any, account: Any) -> None:
    run = account.open(asking(answer="secret-answer"), key="k")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(errors.LedgerUnavailable) as refusal:
            run.step(None)
        other.execute("ROLLBACK")
    assert "secret-answer" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert run.step(None).value == "secret-answer"
