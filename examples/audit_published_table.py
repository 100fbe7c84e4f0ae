"""Four attacks on published data: a k-anonymous table, exact totals, accurate counts, synthetic rows."""

from typing import Any

import numpy as np

import mosha
from mosha import audit, noise

RANDOM = np.random.default_rng()
PEOPLE = 2_000


def patients() -> dict[str, np.ndarray]:
    age = RANDOM.integers(18, 90, PEOPLE)
    return {
        "age": age,
        "zip": RANDOM.integers(13_000, 13_040, PEOPLE).astype(str),
        "weight": RANDOM.normal(75, 12, PEOPLE).round(1),
        "illness": np.where(age > 70, "heart", RANDOM.choice(["flu", "heart", "none"], PEOPLE)),
    }


def main() -> None:
    table = patients()
    terms: dict[str, Any] = {"quasi": ["age", "zip"], "sensitive": "illness"}
    print(audit.compare(table, **terms, k=5, epsilon=1, widths={"age": 10}, keep={"zip": 4}), end="\n\n")

    wards = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 0]]
    print(audit.differencing(wards, [61, 33, 27], cells=["north", "south", "east", "west"]), end="\n\n")

    secrets = RANDOM.integers(0, 2, 80)
    print("counts that are off by one:", end=" ")
    print(audit.reconstruction_attack(secrets, lambda counts: counts + RANDOM.integers(-1, 2, counts.shape)))
    print("counts at epsilon 1 for all of them together:", end=" ")
    print(audit.reconstruction_attack(secrets, lambda c: c + noise.discrete_laplace(len(c), c.shape)), end="\n\n")

    included = audit.draw_inclusion(PEOPLE)
    copied = {name: column[included] for name, column in table.items()}
    claim = mosha.guarantees.Gaussian(mu=1)
    print("synthetic rows that are copies:", audit.membership_attack(copied, table, included, claim=claim))
    print(audit.attribute_attack(copied, table, included, sensitive="illness", known=["age", "zip"]))


if __name__ == "__main__":
    main()
