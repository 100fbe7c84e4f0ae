"""Run every search of this folder, or those named: `python -m fuzz [name ...] [--seconds S] [--count N]`."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path


def names() -> list[str]:
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))


def search(attempt: Callable[[], None], *, seconds: float, count: int) -> int:
    """Try again and again until the time is over or enough was tried; what an attempt raises is the finding."""
    end, tried = time.monotonic() + seconds, 0
    while tried < count and time.monotonic() < end:
        attempt()
        tried += 1
    return tried


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("name", nargs="*", help="a search; all of them by default")
    parser.add_argument("--seconds", type=float, default=600.0, help="the time for each search")
    parser.add_argument("--count", type=int, default=10_000, help="how many attempts each search makes at most")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.name) - set(names())):
        print(f"no search named {', '.join(unknown)}; there are: {', '.join(names())}", file=sys.stderr)
        return 2
    for name in options.name or names():
        module = importlib.import_module(f"fuzz.{name}")
        many = getattr(module, "attempts", None)  # a search that takes care of time and number by itself
        if many is None:
            tried = search(module.attempt, seconds=options.seconds, count=options.count)
        else:
            tried = many(seconds=options.seconds, count=options.count)
        print(f"{name}: {tried:,} tried, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
