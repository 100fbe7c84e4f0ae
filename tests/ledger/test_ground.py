"""What a book stands on: files that may not be written, network folders, single mounted files, missing locks."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha import errors
from mosha.ledger.storage import files
from tests.ledger.place import PERSON, asking

ROOT = Path(__file__).parents[2]
LOOK = """
import json, sys
import mosha
from mosha import errors
from tests.ledger.place import PERSON, asking

found = {}
def tried(name, work):
    try:
        found[name] = work()
    except errors.MoshaError as error:
        found[name] = f"{type(error).__name__}: {error}"
tried("opened", lambda: str(mosha.Ledger(sys.argv[1], patience=1).place) and "yes")
if found["opened"] == "yes":
    ledger = mosha.Ledger(sys.argv[1], patience=1)
    tried("spent", lambda: ledger.account("visits").spent)
    tried("well", lambda: ledger.verify().ok)
    tried("rows", lambda: len(ledger.statement("visits").releases))
    tried("paid", lambda: ledger.account("visits").open(asking(step=lambda *_: exit("data was read"))))
    tried("begun", lambda: ledger.account("other", unit=PERSON, epsilon=1))
print(json.dumps(found))
"""


@pytest.fixture
def path(tmp_path: Path) -> Any:
    folder = tmp_path / "book"
    folder.mkdir()
    with mosha.Ledger(folder / "privacy.db") as ledger:
        ledger.account("visits", unit=PERSON, epsilon=3).open(asking()).step(None)
    return folder / "privacy.db"


def look_inside(prepare: Any, *words: Any, place: Any) -> Any:
    """What a process finds in a name space of its own, where `prepare` (a line of shell) has mounted something."""
    if shutil.which("unshare") is None:
        pytest.skip("this machine has no unshare(1)")
    prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c", f'{prepare} && exec "$@"', *map(str, words)]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel lets nobody mount anything in a name space of its own")
    done = subprocess.run(
        [*prefix, sys.executable, "-c", LOOK, str(place)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def judge_shown(found: Any) -> None:
    assert (found["spent"], found["well"], found["rows"]) == (1.0, True, 1)
    for attempt in ("paid", "begun"):
        assert found[attempt].startswith("LedgerUnavailable")
        assert "only be read here" in found[attempt] or "read-only" in found[attempt]


def test_a_book_on_a_read_only_file_system_is_shown_and_does_not_pay(path: Any) -> None:
    prepare = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0"'
    judge_shown(look_inside(prepare, path.parent, place=path))


def test_a_book_whose_log_cannot_be_opened_is_not_shown_as_an_older_one(path: Any) -> None:
    """The last payments are in the log: without it the book would look less spent than it is."""
    crash = "import os, sys, mosha\nfrom tests.ledger.place import asking\n"
    crash += "ledger = mosha.Ledger(sys.argv[1])\nledger.account('visits').open(asking()).step(None)\nos._exit(0)"
    subprocess.run([sys.executable, "-c", crash, str(path)], cwd=ROOT, check=True)
    path.with_name("privacy.db-shm").unlink()
    found = look_inside('mount --bind "$0" "$0" && mount -o remount,ro,bind "$0"', path.parent, place=path)
    assert "log beside it" in found["opened"] if "spent" not in found else found["spent"] == 2.0


def test_a_file_that_is_mounted_without_its_folder_is_refused(path: Any, tmp_path: Path) -> None:
    other = tmp_path / "container" / "privacy.db"
    other.parent.mkdir()
    other.touch()
    found = look_inside('mount --bind "$0" "$1" && shift', path, other, place=other)
    assert found["opened"].startswith("LedgerUnavailable")
    assert "Mount the folder" in found["opened"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes where it likes")
def test_a_book_in_a_folder_that_may_not_be_written_is_shown(path: Any) -> None:
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        ledger = mosha.Ledger(path)
        assert ledger.account("visits").spent == 1.0
        with pytest.raises(errors.LedgerUnavailable):
            ledger.account("visits").open(asking())
    finally:
        path.parent.chmod(0o755)


def test_a_book_that_is_read_without_locks_and_changes_meanwhile_is_not_believed(path: Any) -> None:
    ledger = mosha.Ledger(path)
    storage = ledger._storage
    storage._disconnect()
    storage._connection = storage._open_to_read()  # type: ignore[attr-defined]
    storage._mode, storage._still = "ro&immutable=1", storage._files.shape()  # type: ignore[attr-defined]
    assert ledger.account("visits").spent == 1.0
    os.utime(path, ns=(0, 0))
    with pytest.raises(errors.LedgerUnavailable, match="Open it again"):
        ledger.account("visits").spent  # noqa: B018
    ledger.close()


MOUNTS = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 0:50 /share /mnt/team\040share rw,relatime shared:1 - nfs4 server:/share rw,vers=4.2
41 40 0:51 / /mnt/team\040share/local rw,relatime - ext4 /dev/vdb rw
42 27 0:52 / /data/privacy.db rw,relatime - ext4 /dev/vda rw
not a line of this kind
"""


@pytest.mark.parametrize(
    ("place", "refused"),
    [
        ("/home/a/privacy.db", None),
        ("/mnt/team share/privacy.db", "network file system"),
        ("/mnt/team share/deep/er/privacy.db", "network file system"),
        ("/mnt/team share/local/privacy.db", None),
        ("/mnt/team shared/privacy.db", None),
        ("/data/privacy.db", "mounted by itself"),
        ("/data/other.db", None),
    ],
)
def test_a_book_on_a_network_share_or_mounted_alone_is_refused(
    monkeypatch: pytest.MonkeyPatch, place: str, refused: Any
) -> None:
    monkeypatch.setattr(files, "_mounts", lambda: MOUNTS)
    if refused is None:
        files.refuse_foreign_ground(Path(place), place)
        return
    with pytest.raises(errors.LedgerUnavailable, match=refused):
        files.refuse_foreign_ground(Path(place), place)


@pytest.mark.parametrize("kind", sorted(files.SHARED_OVER_A_NETWORK))
def test_a_ledger_on_a_network_file_system_is_refused_on_opening(
    path: Any, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    monkeypatch.setattr(files, "_mounts", lambda: f"27 1 254:0 / / rw - {kind} server rw")
    with pytest.raises(errors.LedgerUnavailable, match="PostgreSQL"):
        mosha.Ledger(path)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows which locks a process holds")
def test_a_file_system_that_ignores_locks_is_refused(path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that closes a file drops its locks on it: then the system shows none."""
    ledger = mosha.Ledger(path)
    files.refuse_missing_locks(path, "here")
    path.read_bytes()
    with pytest.raises(errors.LedgerUnavailable, match="holds no lock"):
        files.refuse_missing_locks(path, "here")
    ledger.close()


def test_where_the_system_shows_no_locks_nothing_is_concluded(path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_shows_locks", lambda: False)
    files.refuse_missing_locks(path, "here")


def test_a_clock_that_is_set_back_loses_nothing(tmp_path: Path) -> None:
    times = iter([9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0])
    with mosha.Ledger(tmp_path / "privacy.db", clock=lambda: next(times)) as ledger:
        account = ledger.account("visits", unit=PERSON, epsilon=1)
        account.open(asking()).step(None)
        with pytest.raises(errors.BudgetExceeded):
            account.open(asking())
        assert [entry.at for entry in ledger.entries()] == [9] * 4
        assert ledger.verify().ok
