"""Small files that people write: TOML, JSON or YAML, one table of settings each."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.language import describe_system_error, phrase

__all__ = ["read_document"]

_SCIENTIFIC = re.compile(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+")


def read_document(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """The table that a file holds; `what` names it in the error if it holds none."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = describe_system_error(error) if isinstance(error, OSError) else phrase("ledger.not_utf8")
        raise InvalidParameter("ledger.document_not_readable", what=what, path=str(file), reason=reason) from None
    try:
        found = _parse(text, file.suffix)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidParameter("ledger.document_no_table", what=what, path=str(file))
    return found


def _parse(text: str, suffix: str) -> Any:
    if suffix == ".toml":
        return tomllib.loads(text)
    if suffix == ".json":
        return json.loads(text)
    import yaml  # noqa: PLC0415  (only whoever writes YAML)

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    return {name: _read_number(value) for name, value in found.items()} if isinstance(found, dict) else found


def _read_number(value: object) -> Any:
    """YAML 1.1 takes 1e-6 for a text, because it has no point; people mean a number."""
    return float(value) if isinstance(value, str) and _SCIENTIFIC.fullmatch(value) else value
