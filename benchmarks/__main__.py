"""Run every benchmark of this folder, or those named: `python -m benchmarks [--strict] [name ...]`."""

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
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        print(f"no benchmark named {', '.join(unknown)}; there are: {', '.join(names())}", file=sys.stderr)
        return 2
    below = False
    for name in wanted:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n{name}: {(module.__doc__ or '').strip().splitlines()[0]}\n")
        try:
            rows = module.main()
        except PeerUnavailable as reason:
            print(f"left out: {reason}")
            continue
        print(table(rows))
        below = below or not all(row.cleared for row in rows)
    return 1 if strict and below else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
