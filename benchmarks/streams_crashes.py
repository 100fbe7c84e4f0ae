"""Streams that are killed a thousand times: one answer a step, paid once, copies refused."""

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
    """A child is killed again and again; every step that left has one answer, and none is missing."""
    folder = Path(tempfile.mkdtemp(prefix="mosha-killed-"))
    horizon = 4 * kills
    killed.serving(folder, horizon).close()
    hits = killed.kill_until_done(folder, horizon=horizon, kills=kills, longest=0.15, finish=False)
    seen = killed.published(folder)
    same = set(seen) == set(range(1, max(seen) + 1)) and all(len(values) == 1 for values in seen.values())
    refused = copy_refused(folder, horizon)
    book = Ledger(str(folder / "book.db"))
    paid = book.verify().ok and abs(book.account("door").spent - 0.5) < 1e-9
    told = f"{hits} kills, {max(seen)} steps, one answer each: {same}, paid once: {paid}, copy refused: {refused}"
    shutil.rmtree(folder, ignore_errors=True)
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
