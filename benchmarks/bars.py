"""How often 95% bars hold, and how wide they are: without a declared limit, and for every aggregate on skewed values.

Each figure is a share of releases; a new table is drawn for each of them where a law is named. The choice of a bound is
the product's own; the table is not read by an engine again for every release.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import mosha
from benchmarks._rows import Row
from mosha.connect.language.value import Rows
from mosha.tables.parts.norm_choice import SHARE_FOR_BOUNDS, NormChoice, thresholds

DRAWS: Final = 300
PEOPLE: Final = 3000
EPSILON: Final = 1.0
LEAST: Final = 0.94

Integers = NDArray[np.int64]
Law = Callable[[np.random.Generator], Any]

LAWS: Final[dict[str, Law]] = {
    "four rows each": lambda _: np.full(PEOPLE, 4),
    "uniform to ten": lambda g: g.integers(1, 11, PEOPLE),
    "geometric": lambda g: g.geometric(0.2, PEOPLE),
    "log-normal, sigma 1": lambda g: np.ceil(g.lognormal(1, 1, PEOPLE)),
    "log-normal, sigma 1.5": lambda g: np.ceil(g.lognormal(1, 1.5, PEOPLE)),
    "gamma, as flights of planes": lambda g: np.ceil(g.gamma(1.2, 70, PEOPLE)),
    "Zipf 3": lambda g: g.zipf(3.0, PEOPLE),
    "Pareto 1.5": lambda g: np.floor(1 + g.pareto(1.5, PEOPLE)),
    "Zipf 2": lambda g: np.minimum(g.zipf(2.0, PEOPLE), 10**6),
    "Zipf 1.5": lambda g: np.minimum(g.zipf(1.5, PEOPLE), 10**6),
}


def choose_bound(rows: Integers, generator: np.random.Generator) -> tuple[float, float, float]:
    """The answer to a count of these rows, as with `Person("id")` and no limit, its bar, and what it is at least."""
    choice = NormChoice(EPSILON * SHARE_FOR_BOUNDS, 1, twice=False, share=SHARE_FOR_BOUNDS)
    marks, scale, rest = thresholds(), float(choice.scale), EPSILON * (1 - SHARE_FOR_BOUNDS)
    exact = np.bincount(np.searchsorted(marks, rows), minlength=len(marks) + 1)
    noisy = exact + np.round(generator.laplace(0, scale, len(exact)))
    best = choice._best(Rows(), marks, noisy, None, lambda norm: math.sqrt(2) * norm / rest, 1, generator)  # noqa: SLF001
    answer = float(np.minimum(rows, best.norm).sum() + generator.laplace(0, best.norm / rest))
    least = answer - best.norm / rest * math.log(10)
    return answer, best.norm / rest * math.log(20) + max(best.cut, best.most, 0.0) * abs(answer), least


def bounds() -> list[Row]:
    """Counts where no limit is declared."""
    generator = np.random.default_rng()
    found = []
    for name, law in LAWS.items():
        misses, bars, errors, above = 0, [], [], 0
        for _ in range(DRAWS):
            rows = np.asarray(law(generator), np.int64)
            answer, bar, least = choose_bound(rows, generator)
            total = float(rows.sum())
            misses += abs(answer - total) > bar
            above += least <= total
            bars.append(bar / total)
            errors.append(abs(answer - total) / total)
        said = f"median bar {np.median(bars):.2g}, error {np.median(errors):.2g} of the total"
        found.append(Row(f"count, no limit, {name}", "bars that hold", 1 - misses / DRAWS, LEAST, said))
        found.append(Row(f"count, no limit, {name}", "at least what is said", above / DRAWS, 0.92))
    return found


def limits() -> list[Row]:
    """The error without a declared limit, beside that of the limit that somebody would declare who knew the data."""
    generator = np.random.default_rng()
    tables: dict[str, Law] = {
        "one row each": lambda _: np.ones(PEOPLE, np.int64),
        "one row each, six people with 64": lambda _: np.append(np.ones(PEOPLE, np.int64), [64] * 6),
        **{name: LAWS[name] for name in ("uniform to ten", "geometric", "gamma, as flights of planes")},
    }
    found = []
    for name, law in tables.items():
        rows = np.asarray(law(generator), np.int64)
        norms = np.arange(1, rows.max() + 1)
        kept = np.minimum(rows[:, None], norms).sum(axis=0)
        best = float(np.sqrt((rows.sum() - kept) ** 2 + 2 * (norms / EPSILON) ** 2).min())
        errors = [choose_bound(rows, generator)[0] - float(rows.sum()) for _ in range(DRAWS)]
        ours = math.sqrt(float(np.mean(np.square(errors))))
        found.append(
            Row(f"count, no limit, {name}", "best declared limit", best / ours, None, f"{ours:.4g}", f"{best:.4g}")
        )
    return found


def aggregates() -> list[Row]:
    """Every aggregate of skewed values, one row a person, within a declared range."""
    generator = np.random.default_rng()
    x = np.clip(generator.lognormal(1.0, 1.2, 4000), 0, 50)
    y = np.clip(x * generator.lognormal(0, 0.5, len(x)), 0, 50)
    unit, wide = mosha.Row(), (0, 50)
    asked = {
        "count": (mosha.tables.count(), float(len(x))),
        "sum": (mosha.tables.sum("x", between=wide), x.sum()),
        "mean": (mosha.tables.mean("x", between=wide), x.mean()),
        "variance": (mosha.tables.variance("x", between=wide), x.var()),
        "deviation": (mosha.tables.standard_deviation("x", between=wide), x.std()),
        "covariance": (mosha.tables.covariance(["x", "y"], between=[wide, wide]), np.cov(x, y, bias=True)[0, 1]),
        "correlation": (mosha.tables.correlation(["x", "y"], between=[wide, wide]), np.corrcoef(x, y)[0, 1]),
        "median": (mosha.tables.median("x", between=wide, bars="values"), float(np.median(x))),
        "quantile 0.9": (mosha.tables.quantile("x", 0.9, between=wide, bars="values"), float(np.quantile(x, 0.9))),
    }
    paying = mosha.Ledger.memory().account("bars", unit=unit, epsilon=10.0 * DRAWS * len(asked))
    table = mosha.protect(pa.table({"x": x, "y": y}), unit=unit, account=paying)
    found = []
    for name, (aggregate, truth) in asked.items():
        question, held, bars = table.aggregate(value=aggregate), 0, []
        for _ in range(DRAWS):
            answer = question.release(epsilon=EPSILON)
            bars.append(answer.error(0.95)["value"][0])
            held += abs(answer.value - truth) <= bars[-1]
        said = f"median bar {np.median(bars):.3g}, truth {truth:.3g}"
        found.append(Row(f"{name}, log-normal values", "bars that hold", held / DRAWS, LEAST, said))
    return found


def streams() -> list[Row]:
    """Running counts of many keys about whom nobody is reported: noise alone, at the last step."""
    unit, horizon, keys = mosha.Reading(), 100, [f"k{i}" for i in range(2000)]
    found = []
    for name, price in (("Laplace", {"epsilon": 1.0}), ("Gaussian", {"rho": 0.1})):
        for release in ("running", "instant", mosha.streams.Sliding(7)):
            stream = mosha.streams.histogram(keys=keys, unit=unit, horizon=horizon, release=release, **price)  # type: ignore[arg-type]
            paying = mosha.Ledger.memory().account("bars", unit=unit, epsilon=8, delta=1e-3)
            with paying.open(stream) as run:
                noise = [np.abs(run.step([]).value) for _ in range(horizon)]
            bar = stream.error_at(horizon)
            said = f"bar {bar:.4g}, deviation {np.std(noise[-1]):.3g}, {stream.plan.name}"
            word = release if isinstance(release, str) else release.word
            held = float(np.mean(noise[-1] <= bar))
            found.append(Row(f"{word}, {name} noise", "bars that hold", held, LEAST, said))
    return found


PIECES: Final = {"bounds": bounds, "limits": limits, "aggregates": aggregates, "streams": streams}
