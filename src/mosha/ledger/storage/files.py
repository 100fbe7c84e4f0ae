"""The files of a book, and whether they are still the ones that were opened.

SQLite writes into a log beside the file (`-wal`), found through an index (`-shm`) that also carries its locks. One
book is one history only as long as everybody writes into the same three files: so they are recognised by device and
inode before each payment.

Where several processes write one file, nobody is passed over for long. SQLite's own wait asks ever more rarely, so
that who came last, or has just written, goes first: of sixteen processes that write all the time, some wait for
seconds. Here all of them ask equally often, at random moments, and who has just written lets the others ask first,
for about as long as a transaction takes.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from mosha.core.errors import LedgerTampered, LedgerUnavailable
from mosha.files.locks import lock_records_now

__all__ = ["BookFiles", "Inode", "begin_in_turn", "inode", "refuse_foreign_ground", "refuse_missing_locks"]

Inode = tuple[int, int]  # device and number

# Machines that share one of these do not share the index that SQLite maps into memory.
SHARED_OVER_A_NETWORK = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "beegfs", "gpfs", "ncpfs", "vboxsf",
    "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.vmhgfs-fuse",
})  # fmt: skip


def inode(path: Path) -> Inode | None:
    """What a name stands for right now; None where there is no such file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


class BookFiles:
    """One book's file, log and index, by the names that were given to the last two beside the first."""

    def __init__(self, path: Path, place: str) -> None:
        self.path = path
        self._place = place
        self.identity: Inode | None = None  # of the file; for as long as the ledger is open, across forks
        self._beside: tuple[Inode | None, ...] = ()  # of log and index; for as long as a connection is open
        self.log, self._index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))

    def check_names(self) -> None:
        """Refuse a file that is not there any more, or that has a second name."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            found = None
        if found is not None and found.st_nlink > 1:
            raise LedgerUnavailable("ledger.hard_links", place=self._place, names=found.st_nlink, spent="nothing")
        if self.identity and (found is None or (found.st_dev, found.st_ino) != self.identity):
            raise LedgerTampered("ledger.file_replaced", place=self._place, spent="nothing")

    def check(self) -> None:
        """Refuse files that are not the ones that were there before. Called while a connection has them open."""
        self.check_names()
        if self.identity is None:
            self.identity = inode(self.path)
        beside = inode(self.log), inode(self._index)
        if None in self._beside or not self._beside:
            self._beside = beside
        elif beside != self._beside:
            raise LedgerTampered("ledger.log_replaced", place=self._place, spent="nothing")

    def log_size(self) -> int:
        """How many bytes wait in the log."""
        try:
            return self.log.stat().st_size
        except FileNotFoundError:
            return 0

    def shape(self) -> tuple[int, ...]:
        """What changes when somebody writes: time and size of the file, size of its log."""
        found = self.path.stat()
        return found.st_mtime_ns, found.st_size, self.log_size()

    def forget_log(self) -> None:
        """All connections are closed: whoever closes last removes the log, and the next one makes another."""
        self._beside = ()


def refuse_foreign_ground(path: Path, place: str) -> None:
    """Refuse a file that other machines or other folders may share without sharing its log. Linux can tell."""
    where, kind = _mount_of(path, _mounts())
    if where == str(path):
        raise LedgerUnavailable("ledger.file_mounted_alone", place=place, spent="nothing")
    if kind in SHARED_OVER_A_NETWORK:
        raise LedgerUnavailable("ledger.network_file_system", place=place, kind=kind, spent="nothing")


def _mounts() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    except OSError:  # no Linux
        return ""


def _mount_of(path: Path, mounts: str) -> tuple[str, str]:
    """Where the file system of `path` is mounted, and its kind: the last one of the longest names."""
    best, kind = "", ""
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        if len(fields.split(" ")) < 5 or not rest:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields.split(" ")[4])
        if len(point) >= len(best) and (path == Path(point) or Path(point) in path.parents):
            best, kind = point, rest.split(" ")[0]
    return best, kind


def refuse_missing_locks(path: Path, place: str) -> None:
    """Refuse a file on which this process holds no lock although SQLite believes so. Linux can tell.

    So it is after a fork that copied somebody's connection to the same file, and on file systems that ignore locks.
    """
    if not _shows_locks():
        return
    opened = [link.name for link in Path("/proc/self/fd").iterdir() if _leads_to(link, path)]
    if opened and not any(_holds_a_lock(number) for number in opened):
        raise LedgerUnavailable("ledger.no_lock", place=place, spent="nothing")


def _leads_to(link: Path, path: Path) -> bool:
    try:
        return link.readlink() == path
    except OSError:  # closed meanwhile
        return False


def _holds_a_lock(number: str) -> bool:
    try:
        return any(line.startswith("lock:") for line in Path(f"/proc/self/fdinfo/{number}").read_text().splitlines())
    except OSError:
        return False


@cache
def _shows_locks() -> bool:
    """Whether this system shows the locks of a process at all: tried on a file of our own."""
    if sys.platform != "linux":
        return False
    try:
        with tempfile.TemporaryFile() as probe:
            return lock_records_now(probe.fileno()) and _holds_a_lock(str(probe.fileno()))
    except OSError:
        return False


PAUSE = 0.004  # seconds between two questions at most; half of it on average


def begin_in_turn(connection: sqlite3.Connection, patience: float, courtesy: float) -> None:
    """Begin a transaction that writes as soon as the file is free; raises as SQLite does when `patience` is over.

    Args:
        connection: not inside a transaction.
        patience: how long to ask, in seconds.
        courtesy: how long to let others ask first, in seconds at most: 0 where nobody else writes.
    """
    if courtesy:
        _pause(min(courtesy, PAUSE))
    end = time.monotonic() + patience
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                    raise
            else:
                return
            _pause(PAUSE)
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")


def _pause(most: float) -> None:
    time.sleep(most * os.urandom(1)[0] / 256)
