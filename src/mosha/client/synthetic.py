"""A synthetic table that a server made: rows are drawn there, as often as one likes, and nothing more is paid."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from mosha.client.transport import Transport
from mosha.core.errors import InvalidParameter

__all__ = ["RemoteSynthetic"]


class RemoteSynthetic:
    """A synthetic table at a server, with its label and its report."""

    def __init__(self, transport: Transport, request: str, answer: dict[str, Any]) -> None:
        self._transport = transport
        self._request = request
        self.label: dict[str, Any] = answer["synthetic"]
        self.report = str(answer["report"])
        self.receipt: dict[str, Any] = answer["receipt"]
        self._types = {column["name"]: column["type"] for column in answer["columns"]}

    def _draw(self, form: str, rows: int | None, seed: int) -> bytes:
        query = {"format": form, "seed": str(seed)} | ({} if rows is None else {"rows": str(rows)})
        return self._transport.download(f"/requests/{self._request}/table", query=query)

    def sample(self, rows: int | None = None, *, seed: int = 0) -> dict[str, list[Any]]:
        """Rows as columns; the same seed draws the same rows."""
        text = self._draw("csv", rows, seed).decode("utf-8").split("\n", 1)[1]
        reader = csv.reader(io.StringIO(text, newline=""))
        names = next(reader)
        found = list(zip(*reader, strict=True)) or [()] * len(names)
        return {
            name: [_value(cell, self._types[name]) for cell in cells] for name, cells in zip(names, found, strict=True)
        }

    def save(self, place: str | Path, *, rows: int | None = None, seed: int = 0) -> Path:
        """Write a CSV or Parquet file that says of itself that it is synthetic."""
        path = Path(place)
        form = path.suffix.lower().removeprefix(".")
        if form not in ("csv", "parquet"):
            raise InvalidParameter("synth.unknown_ending", parameter="place", ending=path.suffix)
        path.write_bytes(self._draw(form, rows, seed))
        return path

    def __repr__(self) -> str:
        return f"<RemoteSynthetic {self.label['rows']} rows, {self.label['method']}>"


def _value(cell: str, kind: str) -> Any:
    if cell == "":
        return None
    if kind == "boolean":
        return cell == "True"
    return {"integer": int, "real": float}.get(kind, str)(cell)
