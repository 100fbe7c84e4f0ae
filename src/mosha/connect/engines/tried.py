"""The newest versions of engines that the whole suite of tests has run on; a newer one is used, with a warning.

That no row makes an engine fail, and that every statement comes back, is what an engine does and not what its manual
says: it was tried, and a new version may do otherwise.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping

__all__ = ["NEWEST", "UntriedEngine", "warn_if_untried"]

NEWEST: Mapping[str, tuple[int, ...]] = {"DuckDB": (2, 0), "MariaDB": (10, 11), "PostgreSQL": (15,), "Spark": (4, 3)}
_warned: set[tuple[str, tuple[int, ...]]] = set()


class UntriedEngine(UserWarning):
    """An engine is newer than all versions that were tried."""


def warn_if_untried(engine: str, version: str) -> None:
    """Warn, once for each version, where an engine is newer than what was tried.

    >>> warn_if_untried("DuckDB", "2.0.7")
    """
    newest = NEWEST[engine]
    found = tuple(int(part) for part in re.findall(r"\d+", version)[: len(newest)])
    if found <= newest or (engine, found) in _warned:
        return
    _warned.add((engine, found))
    said, tried = (".".join(map(str, numbers)) for numbers in (found, newest))
    warnings.warn(
        f"{engine} {said} is newer than {tried}, the newest version that was tried: a question may fail or never come "
        "back that was answered before. Answers stay private; failures count (account.failures).",
        UntriedEngine,
        stacklevel=3,
    )
