"""From a budget to noise multipliers, and from a question to a paid answer: what both kinds of release share."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mosha.accounting.measures import gaussian as normal
from mosha.connect.engines.local_source import LocalSource
from mosha.connect.engines.source import look_only, stop_at
from mosha.connect.plan.relation import Relation
from mosha.connect.plan.source import Source
from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event, compose
from mosha.core.events import DiscreteGaussian
from mosha.core.language import say
from mosha.core.measurement import Measurement
from mosha.core.number import positive
from mosha.core.release import Release
from mosha.core.showing import Card
from mosha.core.unit import Unit
from mosha.mechanisms.gaussian import gaussian_multiplier
from mosha.mechanisms.residuals.residuals import ResidualNoise
from mosha.noise import LARGEST_SCALE
from mosha.synth.measuring.columns import CodedColumn
from mosha.synth.measuring.distances import distance_deviation
from mosha.synth.measuring.selection import KeyNoise
from mosha.synth.modelling.design import STAGES
from mosha.tables import Budget

__all__ = ["Ask", "Noises", "epsilon_for", "fit_resolution", "plan_noises", "stage_multipliers"]

COARSEST = 1 << 12
FOR_KEYS, MOST_FOR_KEYS, DELTA_FOR_KEYS = 0.1, 0.25, 0.25
"""What each column whose values come from the data takes of the squared mu, all of them at most, and of delta."""

_SLACK = 1 + 2.0**-28
_EDGE = 2.0**-95
"""Part of delta that is left for what tells discrete Gaussian noise from the normal law, stage by stage."""


def stage_multipliers(budget: Budget, shares: Sequence[float], *, resolution: int, coordinates: int) -> list[float]:
    """The noise multipliers of Gaussian stages that share a budget; shares of mu**2 that sum to at most 1.

    Guarantee:
        Stages with multipliers m_i compose to one Gaussian mechanism of mu**2 = sum 1 / m_i**2 (Dong, Roth and Su
        2022), also where a stage is chosen with knowledge of the ones before. What the discrete law costs more at this
        resolution is paid by a hair more noise in every stage, and by 2**-100 of delta for each.
    """
    if not budget.allows_gaussian:
        raise InvalidParameter("synth.needs_delta", parameter="delta")
    if budget.rho is None:
        whole = gaussian_multiplier(epsilon=budget.epsilon, delta=budget.delta - _EDGE)
    else:
        whole = gaussian_multiplier(rho=budget.rho)
    found = [whole / math.sqrt(share) * _SLACK for share in shares]
    return [_discrete(m, resolution, coordinates) if budget.rho is None else m for m in found]


def fit_resolution(
    budget: Budget, shares: Sequence[float], *, resolution: int, coordinates: int
) -> tuple[int, list[float]]:
    """The resolution, coarser where large noise on a fine grid could not be drawn, and the multipliers for it."""
    found = stage_multipliers(budget, shares, resolution=resolution, coordinates=coordinates)
    while max(found) * resolution > LARGEST_SCALE / 2 and resolution > COARSEST:
        resolution //= 2
        found = stage_multipliers(budget, shares, resolution=resolution, coordinates=coordinates)
    return resolution, found


def _discrete(multiplier: float, resolution: int, coordinates: int) -> float:
    """The multiplier at which the discrete law is priced no higher than the normal one with this multiplier."""
    target, found = 1 / multiplier**2, multiplier
    while (price := normal.cost_of(DiscreteGaussian(found, float(resolution), coordinates)).amount) > target:
        if not math.isfinite(price):
            raise InvalidParameter("synth.noise_out_of_range", parameter="epsilon")
        found *= math.sqrt(price / target) * (1 + 2.0**-45)
    return found


def epsilon_for(multiplier: float, delta: float) -> float:
    """The least epsilon, a hair more, whose release has at most this noise multiplier."""
    if not delta > _EDGE:
        raise InvalidParameter("synth.needs_delta", parameter="delta")
    return normal.epsilon(1 / multiplier * (1 + 1e-6), delta - _EDGE)


@dataclass(frozen=True)
class Noises:
    """The noise of every stage of a synthetic table, and of the values that come from the data, if any do."""

    stages: Mapping[str, ResidualNoise]
    keys: KeyNoise | None = None

    def __getitem__(self, stage: str) -> ResidualNoise:
        return self.stages[stage]

    @property
    def event(self) -> Event:
        """The price of all of them, fixed before data are read."""
        found: list[tuple[Event, int]] = [] if self.keys is None else [(self.keys.event, 1)]
        return compose([*found, *((noise.event, 1) for noise in self.stages.values())])


def plan_noises(budget: Budget, reach: int, numbers: int, *, columns: int, found: int, finest: int) -> Noises:
    """The noise of every stage, and that of `found` columns whose values come from the data.

    Values take their part of the squared mu and of delta first; the stages share what is left as they always do.
    """
    part = min(MOST_FOR_KEYS, FOR_KEYS * found)
    failing = budget.delta * DELTA_FOR_KEYS if found else 0.0
    if found and not failing:
        raise InvalidParameter("synth.keys_need_delta", parameter="delta", spent="nothing")
    shares = [part] * bool(found) + [share * (1 - part) for share in STAGES.values()]
    most = max(numbers, 2 * found * reach)
    left = budget if budget.rho is not None else replace(budget, delta=budget.delta - failing)
    resolution, multipliers = fit_resolution(left, shares, resolution=finest, coordinates=most)
    noises = [ResidualNoise(multiplier, reach, resolution, most) for multiplier in multipliers]
    keys = KeyNoise(noises.pop(0), found, failing) if found else None
    stages = dict(zip(STAGES, noises, strict=True))
    distance_deviation(stages["distances"], columns * (columns - 1) // 2)  # refuses what cannot be measured
    return Noises(stages, keys)


@dataclass(frozen=True, eq=False, kw_only=True)
class Ask:
    """What a release needs besides its mathematics: where the rows are, whose they are and who pays."""

    relation: Relation
    unit: Any
    account: Account | None

    def rows(self, data: Source | None) -> Relation:
        """The relation of this question, over another table where one is given (an audit does that)."""
        return self.relation if data is None else rebase(self.relation, data)

    def pay(self, measurement: Measurement, *, key: str | None, deadline: float | None) -> Release:
        """Look, pay, ask."""
        if self.account is None:
            raise InvalidParameter("synth.no_account", spent="nothing")
        if key is None and any(not isinstance(source, LocalSource) for source in self.relation.sources):
            key = f"synth-{hashlib.sha256(np.random.default_rng().bytes(16)).hexdigest()[:16]}"
        seconds = None if deadline is None else positive("deadline", deadline)
        with stop_at(seconds):
            if key is None or not self.account.holds(key):
                self.look()
            run = self.account.open(measurement, key=key)
            release = run.step(None)
        run.close()
        return release

    def look(self) -> None:
        """Let the engine analyze what will run, without reading a row; whatever would fail without data fails here."""
        try:
            with look_only():
                self.count(self.relation)
        except RecursionError:
            raise InvalidParameter("synth.nested_too_deeply", spent="nothing") from None

    def count(self, relation: Relation) -> Any:
        """The cells that are asked for, counted in the engine: exact, as private as the data."""
        raise NotImplementedError


def make_question_card(title: str, unit: Unit, columns: Sequence[CodedColumn]) -> Card:
    """What is asked, of whom."""
    names = ", ".join(column.name for column in columns)
    facts = [(say("core.shown_hidden"), unit.describe()), (say("synth.shown_columns"), names)]
    return Card(title=title, facts=facts, notes=[say("synth.shown_unpaid")])


def rebase(relation: Relation, data: Source) -> Relation:
    """The same plan over another table."""
    node: Any = relation
    if hasattr(node, "source"):
        return replace(node, source=data) if node.private else relation
    changed = {name: rebase(getattr(node, name), data) for name in ("parent", "left", "right") if hasattr(node, name)}
    moved: Relation = replace(node, **changed)
    return moved
