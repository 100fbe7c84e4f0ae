"""What the samplers of a release are given, on two neighboring tables, under the same outcomes.

A release of `mosha.tables` runs as it is, with the samplers replaced. On the first table every sampler draws an
outcome and notes what it was given (exact numbers, scores, probabilities, a scale). On the second table the same
outcomes are handed out again. So every later question is asked under the same released values, and what remains is
arithmetic: the loss of each draw, from the exact numbers of both tables and from the scale that was really used, must
be within the event that was charged for it; and the two releases must be equal, word for word, because nothing but
draws may tell the tables apart.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any
from unittest import mock

import numpy as np

import mosha
from mosha.connect.engines.source import answer_in_batches
from mosha.tables.mechanisms import joint_noise
from mosha.tables.mechanisms import quantile_width as windows
from mosha.tables.mechanisms import rank_choice as points
from mosha.tables.parts import bought_range as ranges
from mosha.tables.parts import counted_keys, keys, norm_choice, quantiles, shown_groups, top

SLACK = 1e-9
FAR = 1 << 45


class Apart(Exception):
    """The two tables can be told apart by more than the draws."""


class Again(Exception):
    """A group was shown that only one table has: a failure, priced by a delta. Ask again without it."""

    def __init__(self, groups: Any) -> None:
        super().__init__("a group of one table alone")
        self.groups = groups


@dataclass
class Draw:
    kind: str
    stage: Any
    label: tuple[Any, ...]
    given: Any
    scale: float


@dataclass
class Listener:
    """Stands in for every sampler; `script` holds the outcomes of the first table."""

    generator: random.Random
    hidden: frozenset[Any] = frozenset()
    script: list[Any] | None = None
    draws: list[Draw] = field(default_factory=list)
    outcomes: list[Any] = field(default_factory=list)
    stages: list[tuple[Any, list[int]]] = field(default_factory=list)
    depth: int = 0
    totals: Any = None
    sought: Any = None
    people: Any = None
    judging: Any = None

    def decide(self, make: Any) -> Any:
        place = len(self.outcomes)
        if self.script is None:
            outcome = make()
        elif place < len(self.script):
            outcome = self.script[place]
        else:
            raise Apart("more draws than on the other table")
        self.outcomes.append(outcome)
        return outcome

    def note(self, kind: Any, given: Any, scale: Any, *label: Any) -> None:
        stage = self.stages[-1][0] if self.stages else None
        self.draws.append(Draw(kind, stage, label, given, float(scale)))

    def added(self, kind: Any, scale: Any, exact: Any) -> Any:
        """The sum of exact numbers and noise."""
        if isinstance(self.stages[-1][0], keys.KeySelection):
            return self._selected(exact, scale)
        if any(isinstance(stage, counted_keys.CountedKeys) for stage, _ in self.stages) and isinstance(
            self.stages[-1][0], joint_noise.BoxNoise | joint_noise.GaussianNoise
        ):
            return self._counted(kind, exact, scale)
        self.note(kind, exact.astype(object), scale)
        outcome = self.decide(lambda: exact + np.round(self._noise(kind, float(scale), exact.shape)).astype(np.int64))
        if outcome.shape != exact.shape:
            raise Apart("another number of groups")
        return outcome

    def _noise(self, kind: Any, scale: Any, shape: Any) -> Any:
        numpy = np.random.default_rng(self.generator.getrandbits(64))
        if kind == "normal":
            return numpy.normal(0, scale, shape)
        return numpy.laplace(0, scale, shape)

    def _groups(self) -> list[Any]:
        return list(zip(*(column.tolist() for column in self.totals.keys), strict=True))

    def _shown(self, present: Any) -> Any:
        """Which of the groups that are there are shown: the same on both tables, or none of this is a comparison."""
        names = {repr(group) for group in present} - self.hidden
        shown = self.decide(lambda: frozenset(name for name in sorted(names) if self.generator.random() < 0.7))
        if self.script is not None and not shown <= names:
            raise Again(shown - names)
        return shown

    def _selected(self, weights: Any, scale: Any) -> Any:
        groups = self._groups()
        self.note("threshold", dict(zip(groups, weights.tolist(), strict=True)), scale)
        shown = self._shown(groups)
        return np.array([FAR if repr(group) in shown else -FAR for group in groups], np.int64)

    def _counted(self, kind: Any, exact: Any, scale: Any) -> Any:
        """Noise on groups from the data: those that are shown get the same noisy numbers on both tables."""
        groups = self._groups()
        stage = next(stage for stage, _ in self.stages if isinstance(stage, counted_keys.CountedKeys))
        flat = exact.reshape(len(groups), len(stage.sums.values))
        counter = list(stage.sums.values).index(stage._counter)
        given = {g: row for g, row in zip(groups, flat.tolist(), strict=True) if row[counter] > 0}
        self.note(f"counted {kind}", given, scale)
        shown = self._shown(list(given))

        def rows() -> dict[Any, Any]:
            noisy = flat + np.round(self._noise(kind, float(scale), flat.shape)).astype(np.int64)
            noisy[:, counter] = FAR
            return {repr(g): row for g, row in zip(groups, noisy.tolist(), strict=True)}

        known = self.decide(rows)
        hidden = [-FAR] * flat.shape[1]
        noisy = [known.get(repr(g), hidden) if repr(g) in shown else hidden for g in groups]
        return np.array(noisy, np.int64).reshape(exact.shape)

    def judged(self, original: Any) -> Any:
        """The threshold of noisy counts, with the exact counts of the groups that it judges."""

        def find(noise: Any, reach: Any, blocks: Any, failing: Any) -> Any:
            level = original(noise, reach, blocks, failing)
            self.judging = noise, reach, level  # groups are heard afterwards, batch by batch
            return level

        return find

    def coins(self, chance: Any, size: Any, *, rng: Any) -> Any:
        """The coins of groups that hold equally many people."""
        del rng
        count = next(self.people[0])
        at = np.flatnonzero(self.people[1] == count)
        if at.size != size:
            raise Apart("coins for another number of groups")
        groups = self._groups()
        for place in at.tolist():
            self.people[2][groups[place]] = float(chance)
        return np.array([repr(groups[place]) in self.people[3] for place in at.tolist()], bool)

    def pick_few(self, original: Any) -> Any:
        def listen(selection: Any) -> Any:
            pick = original(selection)

            def picked(people: Any, rng: Any) -> Any:
                chances: dict[Any, Any] = {}
                self.people = (iter(np.unique(people).tolist()), people, chances, self._shown(self._groups()))
                found = pick(people, rng)
                self.note("coins", chances, 1.0)
                return found

            return picked

        return listen

    def choice(self, scores: Any, scale: Any, size: Any = None, *, weights: Any = None, rng: Any = None) -> Any:
        del rng
        if size is not None:
            raise Apart("several choices at once: this search does not know them")
        scores = np.asarray(scores).astype(object)
        if weights is not None:
            raise Apart("weights where this search knows none")
        _, counter = self.stages[-1]
        counter[0] += 1
        self.note("choice", scores, scale, counter[0])
        best = int(np.argmax(scores.astype(float)))
        return self.decide(lambda: self.generator.choice([best, self.generator.randrange(len(scores))]))

    def failures(self, sizes: Any, tried: Any, least: Any, scales: Any, rng: Any) -> Any:
        """How many windows of each group do not pass, tried from the widest on; the threshold is public."""
        del rng
        stage, counter = self.stages[-1]
        place = counter[0] % len(stage._windows)  # one quantile after the other, all groups of each
        counter[0] += 1
        left = []
        for mine, which in zip(sizes, tried, strict=True):
            from_widest = mine[which].tolist()[::-1]
            self.note("passes", np.array([*from_widest, least], object), scales[0], "window", place, scales[1])
            many = len(from_widest)
            left.append(many - self.decide(lambda many=many: self.generator.randint(0, many)))
        return np.array(left, np.int64)

    def choose_points(self, original: Any) -> Any:
        def choose(pieces: Any, *arguments: Any, **named: Any) -> Any:
            self.sought = [pieces, []]
            try:
                return original(pieces, *arguments, **named)
            finally:
                self.sought = None

        return choose

    def choices(self, scores: Any, starts: Any, scale: Any, *, weights: Any, rng: Any) -> Any:
        """One run of points of equal score of each piece."""
        del rng
        pieces, offsets = self.sought
        chosen = []
        for piece, (begin, end) in enumerate(itertools.pairwise(starts.tolist())):
            cells = pieces.ranked.cells[pieces.first[piece] : pieces.last[piece]]
            span = int(pieces.low[piece]), int(pieces.high[piece])
            at, offset = self._point(cells, span, scores[begin:end], weights[begin:end], scale)
            chosen.append(begin + at)
            offsets.append(offset)
        return np.array(chosen, np.int64)

    def _point(self, cells: Any, span: Any, scores: Any, weights: Any, scale: Any) -> tuple[Any, ...]:
        low, high = span
        edges = [low - 1, *cells.tolist(), high + 1]
        if any(b <= a for a, b in itertools.pairwise(edges[1:-1])) or (
            cells.size and not low <= cells[0] <= cells[-1] <= high
        ):
            raise Apart("cells out of order or out of their span")
        ends = list(itertools.accumulate(weights.tolist(), initial=low))  # runs lie one behind the other
        if min(weights.tolist()) < 0 or ends[-1] != high + 1:
            raise Apart("weights that are not the numbers of points")
        run_of = lambda point: bisect.bisect_right(ends, point) - 1
        known = [scores[run_of(cell)] for cell in cells.tolist()]
        between = [scores[run_of(a + 1)] if b - a > 1 else 0 for a, b in itertools.pairwise(edges)]
        near = [low, high, *(int(c) + s for c in cells.tolist()[:50] for s in (-1, 0, 1))]
        point = self.decide(
            lambda: min(max(self.generator.choice([*near, self.generator.randint(low, high)]), low), high)
        )
        self.note("point", (edges, [*known, *between], span), scale, "level", self.depth)
        return run_of(point), point - ends[run_of(point)]

    def offset(self, bounds: Any, *, rng: Any) -> Any:
        del rng
        offsets = self.sought[1]
        if len(offsets) != len(bounds) or any(not 0 <= o < n for o, n in zip(offsets, bounds, strict=True)):
            raise Apart("a point out of its gap")
        return np.array(offsets, np.int64)

    def descend(self, original: Any) -> Any:
        def descended(*arguments: Any) -> Any:
            self.depth += 1
            try:
                return original(*arguments)
            finally:
                self.depth -= 1

        return descended

    def staged(self, original: Any) -> Any:
        def method(stage: Any, *arguments: Any, **named: Any) -> Any:
            self.stages.append((stage, [0]))
            try:
                return original(stage, *arguments, **named)
            finally:
                self.stages.pop()

        return method

    def heard(self, original: Any) -> Any:
        def answer_in_batches(question: Any, use: Any) -> None:
            def listen(totals: Any) -> None:
                self.totals = totals
                if self.judging is not None:
                    noise, reach, level = self.judging
                    counts = totals[self.stages[-1][0]._counter].tolist()
                    self.note("level", (noise, reach, level, dict(zip(self._groups(), counts, strict=True))), level)
                use(totals)
                self.judging = None

            original(question, listen)

        return answer_in_batches

    def noise(self, kind: Any) -> Any:
        return lambda scale, *_, rng: Noise(self, kind, scale) if rng else None


class Noise:
    """Noise that is drawn when it meets the exact numbers."""

    def __init__(self, listener: Any, kind: Any, scale: Any) -> None:
        self.listener, self.kind, self.scale = listener, kind, scale

    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **_: Any) -> Any:
        (exact,) = (given for given in inputs if given is not self)
        if ufunc is not np.add or method != "__call__":
            raise Apart("noise that is not added")
        return self.listener.added(self.kind, self.scale, np.asarray(exact))


STAGES = (
    (norm_choice.NormChoice, "choose"),
    (ranges.RangeChoice, "choose"),
    (joint_noise.BoxNoise, "add"),
    (joint_noise.GaussianNoise, "add"),
    (keys.KeySelection, "select"),
    (counted_keys.CountedKeys, "select"),
    (top.TopSelection, "select"),
    (quantiles.QuantilesPart, "_choose"),
    (quantiles.QuantilesPart, "_around"),
)


def hear_once(original: Any) -> Any:
    """Cells come in one batch here, so that both tables choose for all groups in one order."""

    def answer_in_batches(question: Any, use: Any) -> None:
        batches: list[Any] = []
        original(question, batches.append)
        if len(batches) > 1:
            raise Apart("cells in several batches: this search does not know them")
        for totals in batches:
            use(totals)

    return answer_in_batches


class Places(shown_groups.GroupPlaces):
    """Knows how many groups there are."""

    def __init__(self, frame: Any) -> None:
        super().__init__(frame)
        self.count = frame.groups


def rank_all(original: Any) -> Any:
    """Groups without rows stand among the others, where one table alone has rows of them."""

    def rank(places: Any, totals: Any) -> Any:
        here, ranked = original(places, totals)
        where = np.full(places.count, -1)
        where[here] = np.arange(len(here))
        return np.arange(places.count), ranked.pick(where)

    return rank


@contextlib.contextmanager
def listening(listener: Any) -> Iterator[None]:
    """Every sampler of `mosha.tables` asks the listener."""
    with contextlib.ExitStack() as stack:

        def put(owner: Any, name: Any, value: Any) -> None:
            stack.enter_context(mock.patch.object(owner, name, value))

        for owner, name in STAGES:
            put(owner, name, listener.staged(getattr(owner, name)))
        for module in (norm_choice, ranges, joint_noise):
            put(module, "discrete_laplace", listener.noise("laplace"))
        put(joint_noise, "box_noise", listener.noise("box"))
        for module in (joint_noise, keys):
            put(module, "discrete_gaussian", listener.noise("normal"))
        put(top, "exponential_choice", listener.choice)
        put(points, "exponential_choices", listener.choices)
        put(windows, "count_failures", listener.failures)
        put(points, "uniform_each", listener.offset)
        put(points, "choose_points", listener.choose_points(points.choose_points))
        descend = listener.descend(points.descend)
        put(points, "descend", descend)
        put(quantiles, "descend", descend)
        put(quantiles, "answer_in_batches", hear_once(answer_in_batches))
        put(quantiles, "_rank", rank_all(quantiles._rank))
        put(quantiles, "GroupPlaces", Places)
        put(keys, "bernoulli", listener.coins)
        put(keys.KeySelection, "_pick_few", listener.pick_few(keys.KeySelection._pick_few))
        put(counted_keys, "find_threshold", listener.judged(counted_keys.find_threshold))
        for module in (keys, counted_keys):
            put(module, "answer_in_batches", listener.heard(module.answer_in_batches))
        yield


class OneKey:
    """The randomness of a release that draws nothing but its bounding key."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def bytes(self, size: Any) -> Any:
        return self.key[:size]


def run(question: Any, budget: Any, key: Any, listener: Any) -> tuple[Any, ...]:
    """The value of one release, every draw of which the listener has decided."""
    measurement = question.measurement(budget)
    with listening(listener):
        value, _ = measurement.step(None, None, None, OneKey(key))
    return measurement, value


def compare(first: Any, second: Any, make: Any, seed: Any) -> tuple[Any, ...]:
    """The greatest share that each kind of draw uses of what was charged; `make` runs a release with a listener."""
    hidden: Any = frozenset()
    while True:
        one = Listener(random.Random(seed), hidden)
        measurement, value = make(first, one)
        other = Listener(random.Random(seed), hidden, script=one.outcomes)
        try:
            _, again = make(second, other)
            break
        except Again as failure:
            hidden |= failure.groups
    if len(one.draws) != len(other.draws):
        raise Apart(f"another number of draws: {one.draws} and {other.draws}")
    shares = losses(measurement.event, one.draws, other.draws)
    if repr(value) != repr(again):
        raise Apart(f"the same draws, and another release: {value!r} and {again!r}")
    return shares, one.draws, other.draws


def losses(event: Any, one: Any, other: Any) -> Any:
    """What each stage loses, as a share of what its event allows; and every such event must have been charged."""
    stages = defaultdict(list)
    for a, b in zip(one, other, strict=True):
        if (a.kind, a.label, type(a.stage)) != (b.kind, b.label, type(b.stage)) or a.scale != b.scale:
            raise Apart(f"draws of another kind or scale: {a} and {b}")
        stages[id(a.stage)].append((a, b))
    left: Any = Counter()
    for part, count in _open(event):
        left[part] += count
    found: dict[Any, Any] = {}
    for pairs in stages.values():
        stage = pairs[0][0].stage
        for name, share in LOSSES[type(stage)](stage, pairs):
            found[name] = max(found.get(name, 0.0), share)
        for paid, count in _charged(stage, pairs).parts():
            left[paid] -= count
    if any(count < 0 for count in left.values()):
        raise Apart(f"draws that were not charged: {left}")
    return found


def _open(event: Any) -> Iterator[Any]:
    """The parts of an event; noise whose counts show groups is looked at together with its failure.

    Where one of two noises was paid for, either may be drawn.
    """
    for part, count in event.parts():
        yield part, count
        inner = part.event if isinstance(part, mosha.events.Failure) else part
        for one in inner.events if isinstance(inner, mosha.events.Parallel) else [inner]:
            if one is not part:
                yield from one.parts()


def _charged(stage: Any, pairs: Any) -> Any:
    if isinstance(stage, counted_keys.CountedKeys):
        return mosha.events.Failure(stage.sums.noise_event, stage.delta)
    if not isinstance(stage, quantiles.QuantilesPart):
        return stage.event
    kinds = {a.label[0] for a, _ in pairs}
    event = mosha.events.Exponential(stage.epsilon) * (max(a.label[1] for a, _ in pairs if a.label[0] == "level"))
    if "window" in kinds:
        event += mosha.events.Pure(stage.wide) * (1 + max(a.label[1] for a, _ in pairs if a.label[0] == "window"))
    return event


def moved(a: Any, b: Any) -> Any:
    if a.given.shape != b.given.shape:
        raise Apart("another number of groups or buckets")
    return np.abs(a.given - b.given).astype(float)


def _histograms(stage: Any, pairs: Any) -> Iterator[tuple[Any, ...]]:
    epsilon = 1 / float(dict(stage.event.parts()).popitem()[0].noise_multiplier)
    calls = sum(count for _, count in stage.event.parts())
    name = type(stage).__name__
    yield f"draws of {name}", len(pairs) / calls
    for a, b in pairs:
        yield name, float(moved(a, b).sum()) / a.scale / epsilon


def _counts(stage: Any, pairs: Any, budget: Any) -> Iterator[Any]:
    """Noisy counts that show groups: what both tables have is compared as noise is, the rest as a failure."""
    ((a, b),) = pairs
    both = sorted(set(a.given) & set(b.given), key=repr)
    first, second = (replace(each, given=np.array([each.given[g] for g in both], object)) for each in (a, b))
    kind = a.kind.removeprefix("counted ")
    if both:
        yield from budget(stage, [(replace(first, kind=kind), replace(second, kind=kind))])


def _alone(stage: Any, pairs: Any) -> Iterator[tuple[Any, ...]]:
    """How likely a group is shown that one table alone has, over the delta that was charged."""
    ((a, b),) = pairs
    for one, other in ((a, b), (b, a)):
        noise, reach, level, counts = one.given
        alone = {group for group, count in counts.items() if count > 0 and not other.given[3].get(group)}
        chance = sum(noise.exceed(reach, level - counts[group]) for group in alone)
        yield "counted groups of one alone", chance / stage.delta


def _boxes(stage: Any, pairs: Any) -> Iterator[Any]:
    if pairs[0][0].kind.startswith("counted"):
        yield from _counts(stage, pairs, _boxes)
        return
    event = stage.event
    epsilon = event.epsilon if isinstance(event, mosha.events.Pure) else 1 / event.noise_multiplier
    for a, b in pairs:
        change = moved(a, b).reshape(len(a.given), -1)
        together = change.sum() if a.kind == "laplace" else change.max(axis=1, initial=0.0).sum()
        yield f"{a.kind} noise", float(together) / a.scale / epsilon
    yield "draws of box noise", float(len(pairs))


def _normals(stage: Any, pairs: Any) -> Iterator[Any]:
    if pairs[0][0].kind.startswith("counted"):
        yield from _counts(stage, pairs, _normals)
        return
    ((event, _),) = stage.event.parts()
    for a, b in pairs:
        each = np.sqrt((moved(a, b) ** 2).sum(axis=None if stage.shared else 0)) / a.scale
        yield "normal noise", float(each.max(initial=0.0)) * event.noise_multiplier
    yield "draws of normal noise", float(len(pairs))


def _span(change: Any) -> Any:
    return float(max(change) - min(change)) if len(change) else 0.0


def _top(stage: Any, pairs: Any) -> Iterator[tuple[Any, ...]]:
    for a, b in pairs:
        yield "top", _span((a.given - b.given).tolist()) / a.scale / stage.epsilon
    yield "draws of top", len(pairs) / stage.k


def _quantiles(stage: Any, pairs: Any) -> Iterator[tuple[Any, ...]]:
    together: Any = defaultdict(float)
    for a, b in pairs:
        together[a.label[:2]] += _points(a, b) / a.scale if a.kind == "point" else _passes(a, b)
    for (kind, _), loss in together.items():
        yield f"quantiles: {kind}", loss / (stage.epsilon if kind == "level" else stage.wide)


def _passes(a: Any, b: Any) -> Any:
    """What the threshold and the one window that fails lose together."""
    change = (a.given - b.given).tolist()
    if change.pop() != 0:
        raise Apart("another threshold")
    return max(map(abs, change), default=0) / a.scale + _span(change) / float(a.label[2])


def _points(a: Any, b: Any) -> Any:
    """How far the scores of all points of the grid move, from the one that moves up most to the one that moves down."""
    (_, _, span), (_, _, other) = a.given, b.given
    if span != other:
        raise Apart("points of another span")
    marks = {span[0], span[1]} | {m + s for edges in (a.given[0], b.given[0]) for m in edges for s in (-1, 0, 1)}
    inside = np.array(sorted(mark for mark in marks if span[0] <= mark <= span[1]), object)
    return _span([x - y for x, y in zip(_scores(a.given, inside), _scores(b.given, inside), strict=True)])


def _scores(given: Any, marks: Any) -> list[Any]:
    edges, scores, _ = given
    cells = edges[1:-1]
    places = np.searchsorted(np.array(cells, np.int64), np.array(marks, np.int64), side="left")
    hit = [p < len(cells) and cells[p] == mark for p, mark in zip(places.tolist(), marks.tolist(), strict=True)]
    return [scores[p] if at else scores[len(cells) + p] for p, at in zip(places.tolist(), hit, strict=True)]


def _selection(stage: Any, pairs: Any) -> Iterator[tuple[Any, ...]]:
    ((a, b),) = pairs
    if a.kind == "coins":
        yield "groups by coins", _coins(stage, a.given, b.given)
        return
    gauss = stage.event.event
    both = set(a.given) & set(b.given)
    size = math.sqrt(sum((a.given[g] - b.given[g]) ** 2 for g in both))
    yield "groups by weight", size / a.scale * gauss.noise_multiplier
    level = stage.threshold * (1 << stage.bits)
    for given in (a.given, b.given):
        hidden = sum(math.log1p(-(1 - NormalDist().cdf((level - given[g]) / a.scale))) for g in set(given) - both)
        yield "groups of one alone", -math.expm1(hidden) / stage.event.probability


def _coins(stage: Any, one: Any, other: Any) -> Any:
    """The exact delta of independent coins at the epsilon of the selection, in both directions, over the delta."""
    differing = [g for g in {**one, **other} if one.get(g, 0.0) != other.get(g, 0.0)]
    if len(differing) > 14:
        raise Apart(f"one unit moves {len(differing)} groups")
    worst = 0.0
    for p, q in ((one, other), (other, one)):
        delta = 0.0
        for outcome in itertools.product((True, False), repeat=len(differing)):
            chances = [
                math.prod(c.get(g, 0.0) if k else 1 - c.get(g, 0.0) for g, k in zip(differing, outcome, strict=True))
                for c in (p, q)
            ]
            delta += max(0.0, chances[0] - math.exp(stage.epsilon) * chances[1])
        worst = max(worst, delta)
    return worst / stage.delta


LOSSES = {
    norm_choice.NormChoice: _histograms,
    ranges.RangeChoice: _histograms,
    joint_noise.BoxNoise: _boxes,
    joint_noise.GaussianNoise: _normals,
    keys.KeySelection: _selection,
    counted_keys.CountedKeys: _alone,
    top.TopSelection: _top,
    quantiles.QuantilesPart: _quantiles,
}
