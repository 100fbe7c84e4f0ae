"""Run every benchmark of this folder, or those named: `python -m benchmarks [--strict] [name[:piece,piece] ...]`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from benchmarks._peers import PeerUnavailable
from benchmarks._rows import table


def names() -> list[str]:
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))


def main(arguments: list[str]) -> int:
    strict = "--strict" in arguments
    wanted = [argument for argument in arguments if argument != "--strict"] or names()
    chosen = {name: pieces.split(",") if pieces else [] for name, _, pieces in (each.partition(":") for each in wanted)}
    unknown = sorted(set(chosen) - set(names()))
    if unknown:
        print(f"no benchmark named {', '.join(unknown)}; there are: {', '.join(names())}", file=sys.stderr)
        return 2
    below = False
    for name, pieces in chosen.items():
        module = importlib.import_module(f"benchmarks.{name}")
        known = module.PIECES if hasattr(module, "PIECES") else {"all": module.main}
        if not set(pieces) <= set(known):
            print(f"{name} has no such piece; there are: {', '.join(known)}", file=sys.stderr)
            return 2
        print(f"\n{name}: {(module.__doc__ or '').strip().splitlines()[0]}\n")
        rows = []
        for piece in pieces or known:
            try:
                rows += known[piece]()
            except PeerUnavailable as reason:
                print(f"left out: {piece}: {reason}")
        print(table(rows))
        below = below or not all(row.cleared for row in rows)
    return 1 if strict and below else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
