"""Streams that are killed a thousand times: the same outputs as one that lived, paid once, copies refused."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from benchmarks._rows import Row
from mosha import Ledger
from mosha.core.errors import MoshaError
from mosha.streams import serve
from tests.streams import killed

KILLS: Final = 1000


def main() -> list[Row]:
    return crashes()


def crashes(kills: int = KILLS) -> list[Row]:
    """A child is killed again and again; what left is compared with a stream that was never killed."""
    folder = Path(tempfile.mkdtemp(prefix="mosha-killed-"))
    whole = folder.with_name(folder.name + "-whole")
    horizon = 4 * kills
    killed.serving(folder, horizon).close()
    shutil.copytree(folder, whole)
    hits = killed.kill_until_done(folder, horizon=horizon, kills=kills, longest=0.15, finish=False)
    seen = killed.published(folder)
    killed.publish(whole, horizon, until=max(seen))
    truth = killed.published(whole)
    same = all(seen[step] == truth[step] for step in seen)
    refused = copy_refused(folder, horizon)
    book = Ledger(str(folder / "book.db"))
    paid = book.verify().ok and abs(book.account("door").spent - 0.5) < 1e-9
    told = f"{hits} kills, {max(seen)} steps, same: {same}, paid once: {paid}, copy refused: {refused}"
    for place in (folder, whole):
        shutil.rmtree(place, ignore_errors=True)
    return [Row("crash and replay", "a stream that lived", float(same and paid and refused), 1.0, told, "")]


def copy_refused(folder: Path, horizon: int) -> bool:
    """Whether a copy of the state that stayed behind gets no answer."""
    for end in ("", ".key"):
        shutil.copy(folder / f"door.state{end}", folder / f"copy.state{end}")
    with killed.serving(folder, horizon) as service:
        service.step(killed.rows(service.taken + 1))
    account = Ledger(str(folder / "book.db")).account("door")
    try:
        with serve(account, killed.made(horizon), name="door", state=folder / "copy.state") as copy:
            copy.step(killed.rows(copy.taken + 1))
    except MoshaError:
        return True
    return False
