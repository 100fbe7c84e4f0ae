"""Which pair of distributions covers which event: the reading of an event that the tight accountant works on.

Everything normal is collapsed into one number, the sum of mu^2; every other part keeps its pairs and its count; what
has no pair is left over for other measures. The proofs are in `dominating.md`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, singledispatch

import numpy as np

from mosha.accounting.losses.composed_pair import LARGEST_COUNT, compose_pairs
from mosha.accounting.losses.loss import UNIT, connect_dots
from mosha.accounting.losses.pair import Atoms, Band, Normal, Pair, flipped_coin
from mosha.accounting.losses.redrawn import redraw
from mosha.accounting.losses.sampled_pair import Added, Dearest, Displaced, Removed, replace_unit
from mosha.accounting.measures import pure
from mosha.accounting.measures.group import cover_group
from mosha.core.event import Event, compose
from mosha.core.events import (
    Approx,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Failure,
    FixedSizeSampled,
    Gaussian,
    Group,
    Laplace,
    Matrix,
    Parallel,
    Plan,
    Pure,
    RandomizedResponse,
    Sampled,
    SparseVector,
    Tree,
)
from mosha.core.unit import Neighbors

__all__ = ["Cover", "Reading", "cover", "flatten", "open_wrappers", "read"]

ROUGH = 300.0  # a discrete Gaussian this wide (in grid steps) is priced through the continuous one
MANY = 4096  # atoms; a discrete Laplace law with more is priced through the continuous one
HUGE, HUGE_COUNT, HUGE_VARIANCE = 650.0, 10**8, 1e14  # of one loss in nats, of equal parts, of all normal parts
SURE = 1 - 1e-6  # a sample this large is priced as the whole


@dataclass(frozen=True)
class Cover:
    """Pairs that cover an event, for a unit that is removed and for one that is added, and pairs that it may attain.

    `lower` is empty where no attained pair is known. Normal parts are given by their mu^2 alone, from below and above,
    up to a factor e^slack of all masses and a displacement `slack` of all losses. `is_tight` says that upper and lower
    agree, `is_crude` that other measures may know better.
    """

    upper: tuple[Pair, ...] = ()
    lower: tuple[Pair, ...] = ()
    variance: tuple[float, float] = (0.0, 0.0)
    slack: float = 0.0
    is_tight: bool = True
    is_crude: bool = False

    def is_moderate(self, count: int) -> bool:
        """Whether so many of it are within the range of floats and lattices; if not, other measures are as good."""
        if not self.upper:
            return self.variance[1] * count <= HUGE_VARIANCE
        return count <= HUGE_COUNT and all(-HUGE <= x <= HUGE for pair in self.upper for x in pair.reach(1e-30))

    @property
    def is_symmetric(self) -> bool:
        return len(self.upper) < 2 and len(self.lower) < 2


@dataclass
class Reading:
    """What the tight accountant sees of an event: sum of mu^2 (below, above), covers with counts, and the rest.

    `log_spared` is the logarithm of the probability that nothing fails: failures are kept apart, because a loss that is
    infinite stays so whatever is added to it.
    """

    lower_variance: float = 0.0
    upper_variance: float = 0.0
    slack: float = 0.0
    log_spared: float = 0.0
    parts: list[tuple[Cover, int]] = field(default_factory=list)
    rest: list[tuple[Event, int]] = field(default_factory=list)

    @property
    def is_tight(self) -> bool:
        """Whether the pairs that cover the event are attained by it."""
        return not self.rest and all(cover.is_tight for cover, _ in self.parts)

    @property
    def is_crude(self) -> bool:
        """Whether other measures may know better than these pairs."""
        return bool(self.rest) or any(cover.is_crude for cover, _ in self.parts)


def read(event: Event) -> Reading:
    """The event, part by part; its composition is read through `event.parts()` and counted here only."""
    counts: Counter[Event] = Counter()
    for part, count in flatten(event, 1):
        counts[part] += count
    reading = Reading()
    for part, count in counts.items():
        if isinstance(part, Approx) and part.epsilon == 0:
            reading.log_spared += count * math.log1p(-part.delta)
            continue
        covered = cover(part)
        if covered is None or not covered.is_moderate(count):
            reading.rest.append((part, count))
        elif covered.upper:
            reading.parts.append((covered, count))
        else:
            reading.lower_variance += covered.variance[0] * count
            reading.upper_variance += covered.variance[1] * count
            reading.slack += covered.slack * count
    reading.lower_variance *= 1 - 4 * UNIT * (1 + len(counts))
    reading.upper_variance *= 1 + 4 * UNIT * (1 + len(counts))
    return reading


def open_wrappers(event: Event) -> Event:
    """The same composition without plans and other wrappers that only group it."""
    return compose(flatten(event, 1))


def flatten(event: Event, count: int) -> Iterator[tuple[Event, int]]:
    """The parts of `event` with wrappers opened that mean a composition."""
    for part, inner in event.parts():
        times = count * inner
        if isinstance(part, Plan):
            yield from flatten(part.event, times)
        elif isinstance(part, Failure):
            yield from flatten(part.event, times)
            yield Approx(0.0, part.probability), times
        elif isinstance(part, Group):
            for member, number in flatten(part.event, times):
                yield from _group_part(member, number, part.size)
        elif isinstance(part, Parallel) and len(part.events) == 1:
            yield from flatten(part.events[0], times)
        elif isinstance(part, Tree) and part.noise == "laplace":
            yield Laplace(part.noise_multiplier), times * part.levels
        elif not (isinstance(part, Pure | Approx) and part.epsilon == 0 and getattr(part, "delta", 0.0) == 0):
            yield part, times


def _group_part(member: Event, times: int, size: int) -> Iterator[tuple[Event, int]]:
    """One part of an event as a group of `size` units sees it."""
    seen = cover_group(member, size)
    if seen is not None:
        yield from flatten(seen, times)
    elif isinstance(member, Approx):
        lost = pure.group_delta(member.epsilon, member.delta, size)
        yield (
            (Approx(math.nextafter(member.epsilon * size, math.inf), lost) if lost < 1 else Group(member, size)),
            times,
        )
    else:
        yield Group(member, size), times


@lru_cache(maxsize=128)
def cover(event: Event) -> Cover | None:
    """The pairs of one event that is no composition; None where none is known.

    >>> cover(Laplace(2)).upper
    (Band(width=0.5, ends=True),)
    """
    return _cover(event)


@singledispatch
def _cover(_event: Event) -> Cover | None:
    return None


def _both_directions(pair: Pair) -> Cover:
    return Cover((pair,), (pair,))


def _normal(mu: float) -> Cover:
    return Cover(variance=(mu * mu * (1 - 8 * UNIT), mu * mu * (1 + 8 * UNIT)))


@_cover.register
def _(event: Gaussian) -> Cover:
    return _normal(1 / event.noise_multiplier)


@_cover.register
def _(event: Matrix) -> Cover:
    return _normal(event.sensitivity / event.noise_multiplier)


@_cover.register
def _(event: Tree) -> Cover:
    return _normal(math.sqrt(event.levels) / event.noise_multiplier)


@_cover.register
def _(event: Laplace) -> Cover:
    return _both_directions(Band(1 / event.noise_multiplier, ends=True))


@_cover.register
def _(event: RandomizedResponse) -> Cover:
    return _both_directions(flipped_coin(event.epsilon, categories=event.categories))


@_cover.register
def _(event: Pure) -> Cover:
    return _both_directions(flipped_coin(event.epsilon))


@_cover.register
def _(event: Approx) -> Cover:
    return _both_directions(flipped_coin(event.epsilon, delta=event.delta))


@_cover.register
def _(event: Exponential) -> Cover:
    return Cover((Band(event.epsilon, ends=False),), (flipped_coin(event.epsilon / 2),), is_tight=False, is_crude=True)


@_cover.register
def _(event: SparseVector) -> Cover:
    pair = flipped_coin((event.threshold_epsilon + event.answer_epsilon) * (1 + 2 * UNIT))
    return Cover((pair,), is_tight=False, is_crude=True)


@_cover.register
def _(event: DiscreteLaplace) -> Cover:
    steps, whole = event.sensitivity, 1 / event.noise_multiplier
    if steps == 1:
        return _both_directions(flipped_coin(whole))
    unit = whole / steps
    if steps > MANY:
        band = Band(whole, ends=True)
        corners = np.unique(np.linspace(0, steps, MANY // 2 + 1).astype(np.int64))
        knots = np.asarray((steps - 2.0 * corners[::-1]) * unit, dtype=np.float64)
        knots[0] -= 1e-9 * unit  # so that the lower end of the band lies inside the first cell
        mass, _ = connect_dots(band.cells(knots), knots)
        return Cover((Atoms(knots, mass, shift=8 * UNIT * whole),), (band,))
    j = np.arange(steps, -1, -1, dtype=np.float64)
    p = np.exp(-j * unit)
    p[1:-1] *= -math.expm1(-unit)
    return _both_directions(Atoms((steps - 2 * j) * unit, p / (1 + math.exp(-unit)), error=UNIT * (16 + whole)))


@_cover.register
def _(event: DiscreteGaussian) -> Cover | None:
    wide = event.noise_multiplier * event.sensitivity
    move = math.floor(event.sensitivity)
    if event.coordinates == 1 and move == 0:
        return Cover()
    if event.coordinates == 1 and wide <= ROUGH:
        reach = math.ceil(38 * wide) + move
        x = np.arange(reach, -reach - 1, -1, dtype=np.float64)
        p = np.exp(-((x / wide) ** 2) / 2)
        losses = (move - 2 * x) * (move / wide) / wide / 2
        return _both_directions(
            Atoms(losses, p / p.sum(), error=UNIT * 2000, shift=8 * UNIT * float(np.abs(losses).max()))
        )
    square, lost = wide * wide, (math.log(8 * event.coordinates) + 40) / (2 * math.pi**2)
    if square <= 2 * lost:
        return None
    above = (event.sensitivity if event.coordinates > 1 else move) ** 2 / (square - lost)
    below = move**2 / (square + lost * square / (square - lost))
    return Cover(variance=(below * (1 - 1e-15), above * (1 + 1e-15)), slack=2 * math.exp(-40))


@_cover.register
def _(event: Sampled) -> Cover | None:
    inside = _cover_as_one(event.event)
    if inside is None:
        return None
    if event.neighbors is Neighbors.REPLACE_ONE:
        return _exchange(inside, event.rate)
    if event.rate > SURE:
        lower = inside.lower if event.rate == 1 else _sample_pairs(inside.lower, SURE)
        return replace(inside, lower=lower)
    return replace(inside, upper=_sample_pairs(inside.upper, event.rate), lower=_sample_pairs(inside.lower, event.rate))


@_cover.register
def _(event: FixedSizeSampled) -> Cover | None:
    inside = _cover_as_one(event.event)
    if inside is None or not event.replacement:
        return None if inside is None else _exchange(inside, event.size / event.population)
    if len(inside.upper) != 1 or not isinstance(inside.upper[0], Normal):
        return None
    pair = redraw(inside.upper[0].mu, event.size, event.population)
    return None if pair is None else Cover((pair,), is_tight=False)


def _exchange(inside: Cover, rate: float) -> Cover | None:
    if not inside.upper:
        return inside
    if not inside.is_symmetric:
        return None
    if rate > SURE:
        return inside
    upper = (replace_unit(inside.upper[0], rate),)
    return Cover(upper, _sample_pairs(inside.lower, rate), is_tight=False, is_crude=inside.is_crude)


def _sample_pairs(pairs: tuple[Pair, ...], rate: float) -> tuple[Pair, ...]:
    return (Removed(pairs[0], rate), Added(pairs[-1], rate)) if pairs else ()


def _cover_as_one(event: Event) -> Cover | None:
    """The pairs of an event that may be a composition, seen as one; None where there are none or too many parts."""
    reading = read(event)
    count = sum(n for _, n in reading.parts) + (reading.upper_variance > 0)
    if reading.rest or count > LARGEST_COUNT:
        return None
    if count == 0 and reading.log_spared == 0:
        return Cover()
    if count == 1 and reading.log_spared == 0:
        return (
            reading.parts[0][0]
            if reading.parts
            else Cover((_normal_pair(reading, above=True),), (_normal_pair(reading, above=False),))
        )
    sides = range(2 if any(not c.is_symmetric for c, _ in reading.parts) else 1)
    return Cover(
        tuple(_compose_side(reading, i, above=True) for i in sides),
        tuple(_compose_side(reading, i, above=False) for i in sides),
        is_tight=all(c.is_tight for c, _ in reading.parts),
        is_crude=any(c.is_crude for c, _ in reading.parts),
    )


def _normal_pair(reading: Reading, *, above: bool) -> Pair:
    mu = (
        math.sqrt(reading.upper_variance) * (1 + 2 * UNIT)
        if above
        else math.sqrt(reading.lower_variance) * (1 - 2 * UNIT)
    )
    return Displaced(Normal(mu), reading.slack) if reading.slack else Normal(mu)


def _compose_side(reading: Reading, side: int, *, above: bool) -> Pair:
    chosen = [(c.upper if above else c.lower, n) for c, n in reading.parts]
    parts = [(pairs[min(side, len(pairs) - 1)], n) for pairs, n in chosen if pairs]
    if reading.upper_variance > 0:
        parts.append((_normal_pair(reading, above=above), 1))
    return compose_pairs(parts, math.exp(reading.log_spared), above=above)


@_cover.register
def _(event: Parallel) -> Cover | None:
    """The dearest alternative at each loss from above; from below any one of them, here one with large moments."""
    covers = [_cover_as_one(e) for e in event.events]
    known = [c for c in covers if c is not None]
    if len(known) < len(covers):
        return None
    known = [c for c in known if c.upper]
    if not known:
        return Cover()
    if all(isinstance(c.upper[0], Normal) for c in known):
        mus = [(c.lower[0].mu, c.upper[0].mu) for c in known]  # type: ignore[attr-defined]
        return Cover(variance=(max(low for low, _ in mus) ** 2, max(high for _, high in mus) ** 2 * (1 + 4 * UNIT)))
    sides = range(max(len(c.upper) for c in known))
    upper = tuple(Dearest(tuple(c.upper[min(i, len(c.upper) - 1)] for c in known)) for i in sides)
    lower = max((c.lower for c in known), key=lambda pairs: pairs[0].reach(1e-9)[1] if pairs else -math.inf)
    return Cover(upper, lower, is_tight=False, is_crude=any(c.is_crude for c in known))
