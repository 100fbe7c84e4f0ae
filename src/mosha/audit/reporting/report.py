"""How every finding is told: as text for people, as JSON for programs, as one page for everybody else."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from mosha.audit.reporting.page import finding_page
from mosha.core.showing import Card

__all__ = ["Report"]


class Report:
    """What all findings share: `str(finding)`, `to_dict()`, `to_json()`, `to_html()` and `save(path)`."""

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain data; stable keys."""
        return {name: _simplify(value) for name, value in vars(self).items()}

    def to_json(self) -> str:
        """The finding as JSON; a number that is not finite is null."""
        return json.dumps(_simplify(self.to_dict()), ensure_ascii=False, sort_keys=True, allow_nan=False)

    def to_html(self) -> str:
        """One self-contained page."""
        return finding_page(self)

    def _repr_html_(self) -> str:
        first, *rest = str(self).splitlines()
        return Card(title=first, notes=rest).write_html()

    def save(self, path: str | Path) -> None:
        """Write the report: as a page (.html), as JSON (.json) or as text (any other name)."""
        path = Path(path)
        text = {".html": self.to_html, ".json": self.to_json}.get(path.suffix, self.__str__)()
        path.write_text(text + "\n", encoding="utf-8")


def _simplify(value: object) -> Any:
    if isinstance(value, Report):
        return value.to_dict()
    if isinstance(value, dict):
        return {str(key): _simplify(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_simplify(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
