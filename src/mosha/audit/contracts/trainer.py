"""The contract of a private trainer: sensitivity, noise and sampling, each checked from the inside in under a second.

Needs no deep-learning library: a trainer is anything that can sample a batch and make one noisy update.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosha.audit.contracts.contract import Check, Contract, judge
from mosha.core.measurement import Rng
from mosha.core.number import positive, positive_integer, strict_probability

__all__ = ["Trainer", "trainer_contract"]

Floats = NDArray[np.float64]
CLAUSES = 9  # statistical clauses that share the false-alarm rate
CROWDS = 32  # batches out of which examples are left, one at a time: half of them large
MANY = 400  # examples of a large one: places move far more of them than one clip
ENOUGH = 150_000  # numbers that show noise 3% too small at any sensible false-alarm rate


class Trainer(Protocol):
    """What DP-SGD looks like from outside.

    `sample(rng)` gives the indices of one batch out of range(population); `update(batch, rng)` gives, for every layer,
    the sum of the clipped gradients of the batch plus noise, before any division by the (expected) batch size.
    All randomness of an update comes from `rng`, and its noise must not depend on the batch.

    >>> class Mine:
    ...     def sample(self, rng): ...
    ...     def update(self, batch, rng): ...
    >>> hasattr(Mine(), "sample") and hasattr(Mine(), "update")
    True
    """

    clip: float
    noise_multiplier: float
    rate: float
    population: int

    def sample(self, rng: Rng, /) -> Sequence[int] | NDArray[np.integer]:
        """The places of one batch, out of range(population)."""
        ...

    def update(self, batch: NDArray[np.int64], rng: Rng, /) -> Mapping[str, Floats]:
        """For every layer the noisy sum of the clipped gradients of `batch`."""
        ...


def trainer_contract(
    trainer: Trainer,
    *,
    examples: Sequence[int] | None = None,
    updates: int | None = None,
    batches: int = 200,
    false_alarms: float = 1e-9,
    name: str = "trainer",
) -> Contract:
    """Check what the price of DP-SGD assumes of a trainer.

    One example moves an update by at most `clip`. Noise is normal of deviation `noise_multiplier * clip` in every
    coordinate of every layer, fresh in every update and blind to the batch. Every example is in every batch with
    probability `rate`, independently.

    Guarantee:
        Where all of that holds, P(any clause is called broken) <= `false_alarms`: each of the statistical clauses
        gets an equal share and is judged by an exact law (normal, chi-squared, binomial) or the
        Kolmogorov-Smirnov distance with Massart's bound.

    Args:
        trainer: see `Trainer`.
        examples: indices to add to a batch when sensitivity is checked; 24 spread over the population by default.
            Put extreme examples among them: huge, empty, NaN.
        updates: updates drawn at each of three batch sizes; by default 12, or more where the model is so small that
            noise 3% too small would be missed.
        batches: batches drawn from the sampler.
        false_alarms: the false-alarm rate of the whole contract.
        name: for the report.

    >>> import numpy as np
    >>> class Still:
    ...     population, rate, clip, noise_multiplier = 20, 1.0, 1.0, 1.0
    ...     def sample(self, rng):
    ...         return range(self.population)
    ...     def update(self, batch, rng):
    ...         return {"weights": np.zeros(100)}  # no noise at all
    >>> trainer_contract(Still(), batches=10).kept
    False
    """
    from mosha.noise import secure  # noqa: PLC0415  (loaded when it is needed)

    clip, deviation = positive("clip", trainer.clip), positive("noise_multiplier", trainer.noise_multiplier)
    population = positive_integer("population", trainer.population)
    alpha = strict_probability("false_alarms", false_alarms) / CLAUSES
    if examples is None:
        examples = np.unique(np.linspace(0, population - 1, 24).astype(int)).tolist()
    rng = secure()
    checks = [_sensitivity(trainer, examples, clip, rng)]
    if updates is None:
        width = sum(values.size for values in _update(trainer, [], rng).values())
        updates = min(2_000, max(12, -(-ENOUGH // max(1, width))))
    checks += _noise(trainer, clip * deviation, positive_integer("updates", updates), alpha, rng)
    checks += _sampling(trainer, population, positive_integer("batches", batches), alpha, rng)
    return Contract(name, tuple(checks), false_alarms)


def _update(trainer: Trainer, batch: Sequence[int], rng: Rng) -> dict[str, Floats]:
    layers = trainer.update(np.asarray(batch, dtype=np.int64), rng)
    return {name: np.asarray(values, dtype=np.float64).ravel() for name, values in layers.items()}


def _sensitivity(trainer: Trainer, examples: Sequence[int], clip: float, rng: Rng) -> Check:
    """With common random numbers the noise cancels: what remains is what one example adds, wherever it stands."""
    from mosha.noise import SeededRandom  # noqa: PLC0415

    worst = 0.0
    for number, (batch, places) in enumerate(_crowds(trainer, examples, rng)):
        with_all = _update(trainer, batch, SeededRandom(number))
        for place in places:
            without = _update(trainer, [*batch[:place], *batch[place + 1 :]], SeededRandom(number))
            moved = np.concatenate([with_all[name] - without[name] for name in without])
            worst = max(worst, math.inf if np.isnan(moved).any() else float(np.linalg.norm(moved)))
    seen = f"one example moves an update by up to {worst:.6g}, allowed {clip:.6g}"
    return Check("sensitivity at most clip", worst <= clip * (1 + 1e-5), seen)


def _crowds(trainer: Trainer, examples: Sequence[int], rng: Rng) -> Iterator[tuple[list[int], list[int]]]:
    """Batches, each with the places of an example that is left out of it in turn.

    Chosen examples stand first, last or in the middle of few others. Out of many and of few examples in random order
    somebody is left out at the front, at the end and between: whoever comes after moves up by one, which shows where a
    trainer treats examples by their place, as one that clips sums of a few neighbors does.
    """
    crowd = [index for index in range(trainer.population) if index not in set(examples)]
    for i, example in enumerate(examples):
        others = crowd[: (0, 1, 8)[i % 3]]
        place = (len(others), 0, len(others) // 2)[i // 3 % 3]
        yield [*others[:place], example, *others[place:]], [place]
    order = np.random.default_rng(int.from_bytes(rng.bytes(16), "little"))
    for number in range(CROWDS):
        most = min(trainer.population, MANY if number % 2 else 3 + number)
        batch = order.permutation(trainer.population)[:most].tolist()
        yield batch, sorted({0, 1, most // 4, most // 2, most - 2, most - 1} & set(range(most)))


def _noise(trainer: Trainer, sigma: float, updates: int, alpha: float, rng: Rng) -> list[Check]:
    """Noise in units of its deviation: at batch sizes 0, 1 and many, as differences of two updates."""
    many = min(trainer.population, max(2, round(4 * trainer.rate * trainer.population)))
    alone: list[dict[str, Floats]] = [_update(trainer, [], rng) for _ in range(updates)]
    noises = {0: {name: np.stack([update[name] for update in alone]) / sigma for name in alone[0]}}
    for size in (1, many):
        drawn = [_update(trainer, range(size), rng) for _ in range(2 * (updates // 2))]
        noises[size] = {
            layer: np.stack([drawn[i][layer] - drawn[i + 1][layer] for i in range(0, len(drawn), 2)])
            / (sigma * math.sqrt(2))
            for layer in drawn[0]
        }
    base = noises[0]
    whole = np.concatenate(list(base.values()), axis=1)
    return [
        *_deviations(noises, alpha),
        _normality(whole, alpha),
        _freshness(whole, alpha),
    ]


def _two_sided(statistic: float, law: Any) -> float:
    """The chance of a value at least as far out on its side, doubled; `law` is continuous or counts."""
    above = law.sf(statistic - 1) if isinstance(statistic, int) else law.sf(statistic)
    return float(min(1.0, 2 * min(law.cdf(statistic), above)))


def _deviations(noises: Mapping[int, Mapping[str, Floats]], alpha: float) -> list[Check]:
    """Per layer and batch size: the sum of squares is chi-squared."""
    from scipy.stats import chi2  # noqa: PLC0415

    checks = []
    for size, separate in noises.items():
        layers = {**separate, "all layers": np.concatenate(list(separate.values()), axis=1)}
        found = {name: _two_sided(float((x**2).sum()), chi2(x.size)) for name, x in layers.items()}
        worst = min(found, key=lambda name: found[name])
        ratio = math.sqrt(float((layers[worst] ** 2).mean()))
        seen = f"deviation {ratio:.4g} of what is paid for ({worst})"
        checks.append(judge(f"noise law at batch size {size}", min(1.0, found[worst] * len(found)), alpha, seen))
    return checks


def _normality(noise: Floats, alpha: float) -> Check:
    """Massart: P(sqrt(n) sup |F_n - F| > t) <= 2 e^(-2 t^2)."""
    from scipy.special import ndtr  # noqa: PLC0415

    values = np.sort(noise.ravel())
    places = np.arange(1, values.size + 1) / values.size
    below = ndtr(values)
    distance = float(max(np.abs(places - below).max(), np.abs(places - 1 / values.size - below).max()))
    chance = min(1.0, 2 * math.exp(-2 * values.size * distance**2))
    return judge("noise is normal", chance, alpha, f"Kolmogorov-Smirnov distance {distance:.4g}")


def _freshness(noise: Floats, alpha: float) -> Check:
    """Sums of neighboring coordinates, and of successive updates, have twice the variance of one."""
    from scipy.stats import chi2  # noqa: PLC0415

    pairs = {
        "updates": (noise[0 : len(noise) // 2 * 2 : 2] + noise[1::2]) / math.sqrt(2),
        "coordinates": (noise[:, 0 : noise.shape[1] // 2 * 2 : 2] + noise[:, 1::2]) / math.sqrt(2),
    }
    found = {name: _two_sided(float((x**2).sum()), chi2(x.size)) for name, x in pairs.items()}
    worst = min(found, key=lambda name: found[name])
    seen = f"variance of sums of {worst}: {float((pairs[worst] ** 2).mean()):.4g} of what independence gives"
    return judge("noise is fresh", min(1.0, 2 * found[worst]), alpha, seen)


def _sampling(trainer: Trainer, population: int, batches: int, alpha: float, rng: Rng) -> list[Check]:
    from scipy.stats import binom  # noqa: PLC0415

    rate = positive("rate", trainer.rate)
    drawn = [np.asarray(trainer.sample(rng)).ravel() for _ in range(batches)]
    legal = all(b.size == 0 or (b.min() >= 0 and b.max() < population and len(np.unique(b)) == b.size) for b in drawn)
    checks = [
        Check("a batch holds each example at most once", legal, f"{batches} batches of indices below {population}")
    ]
    inside = np.zeros((batches, population), dtype=bool)
    for row, batch in zip(inside, drawn, strict=True):
        row[batch[(batch >= 0) & (batch < population)]] = True
    sizes, each = inside.sum(axis=1), inside.sum(axis=0)
    total = _two_sided(int(sizes.sum()), binom(batches * population, rate))
    checks.append(judge("inclusion rate", total, alpha, f"{sizes.mean() / population:.4g}, paid for {rate:.4g}"))
    law = binom(batches, rate)
    rare = float(min(law.cdf(each.min()), law.sf(each.max() - 1)))
    seen = f"examples were drawn {each.min()} to {each.max()} times in {batches} batches"
    checks.append(judge("every example alike", min(1.0, 2 * population * rare), alpha, seen))
    checks.append(_sizes(sizes, population, rate, alpha))
    pairs = batches // 2  # disjoint ones, so that overlaps are independent
    both = int((inside[0 : 2 * pairs : 2] & inside[1 : 2 * pairs : 2]).sum())
    chance = _two_sided(both, binom(pairs * population, rate**2))
    seen = f"{both} overlaps of {pairs} pairs of batches, expected {pairs * population * rate**2:.0f}"
    checks.append(judge("batches are independent", chance, alpha, seen))
    return checks


def _sizes(sizes: NDArray[np.int64], population: int, rate: float, alpha: float) -> Check:
    """Batch sizes are binomial: how many are within one deviation of the mean is binomial too."""
    from scipy.stats import binom  # noqa: PLC0415

    law = binom(population, rate)
    low, high = math.ceil(law.mean() - law.std()), math.floor(law.mean() + law.std())
    expected = float(law.cdf(high) - law.cdf(low - 1))
    near = int(((sizes >= low) & (sizes <= high)).sum())
    chance = _two_sided(near, binom(len(sizes), expected)) if 0 < expected < 1 else 1.0
    seen = f"{near} of {len(sizes)} sizes between {low} and {high}, expected {expected * len(sizes):.0f}; "
    return judge("batch sizes vary", chance, alpha, seen + f"deviation {sizes.std():.4g}, expected {law.std():.4g}")
