"""Textbook Laplace noise in floating point is broken; exact noise on a grid is not. Writes two pages of evidence."""

from pathlib import Path

import numpy as np

import mosha
from mosha import Row, mechanisms

RUNS = 20_000
SURE = 1 - 1e-9  # how surely nothing that keeps its claim is called broken
EMPTY, ONE = [], [1.0]  # type: ignore[var-annotated]


def textbook(rows: list[float], size: int) -> np.ndarray:
    """A count plus Laplace noise of scale 1, as it stands in many a tutorial."""
    return len(rows) + np.random.default_rng().laplace(scale=1.0, size=size)


def main(folder: Path = Path("demo-output")) -> None:
    folder.mkdir(exist_ok=True)
    claim = mosha.guarantees.Pure(epsilon=1)
    porous = mosha.audit.attack(textbook, neighbors=(EMPTY, ONE), claim=claim, runs=RUNS, batch=True, confidence=SURE)
    print(porous, end="\n\n")
    porous.save(folder / "audit-textbook.html")

    count = mechanisms.laplace(mechanisms.Count(), unit=Row(), epsilon=1)
    exact = mosha.audit.attack(count, neighbors=(EMPTY, ONE), runs=RUNS // 10, confidence=SURE)
    print(exact, end="\n\n")
    exact.save(folder / "audit-exact.html")
    print(f"The evidence is in {folder}/audit-textbook.html and {folder}/audit-exact.html.")


if __name__ == "__main__":
    main()
