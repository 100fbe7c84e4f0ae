"""One step of a training as a measurement: sample, clip, sum on a grid, add exact noise."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mosha.core.errors import InvalidParameter, RunClosed
from mosha.core.fingerprint import write_as_stored
from mosha.core.measurement import Measurement, Rng, StatePolicy
from mosha.core.options import ClippingName
from mosha.learning.batches import Sampler
from mosha.learning.checking.sizes import SmallerSize
from mosha.learning.dropout_randomness import DropoutCoins
from mosha.learning.exact_sum import ExactSum, scale_in_place
from mosha.learning.gradients.engine import Batch, Engine, Rule
from mosha.learning.reading.examples import Examples
from mosha.learning.reading.layout import Flat
from mosha.learning.reading.unfit_rows import find_fit_rows
from mosha.learning.rounding import FINE, Grid, grid_of
from mosha.learning.terms import SHARE, TrainingTerms
from mosha.mechanisms.plans.adaptive_clip import AdaptiveClip
from mosha.mechanisms.plans.buffered import encode_step
from mosha.mechanisms.plans.correlated import SCALE
from mosha.noise import add_discrete_gaussian, scaled_discrete_gaussian

__all__ = ["Answer", "Gradients", "State", "clipping_rule"]

Whole = NDArray[np.int64]
STABILIZER = 0.01  # of automatic clipping: gradients far smaller than this fade instead of being blown up


def clipping_rule(kind: ClippingName, *, clip: float, scale: float) -> Rule:
    """The rule of that kind: weights w with |w G| <= scale for the whole gradient G of every unit (a column).

    Guarantee:
        flat, adaptive: w = scale min(1 / clip, 1 / |G|). automatic: w = scale / (|G| + stabilizer). per_layer: of L
        parameters each gets |w_p G_p| <= scale / sqrt(L), and the squares of L such norms sum to scale^2 at most.

    Units:
        `scale` is what the norm of a contribution may be; the weights turn gradients into contributions, so that a
        gradient within `clip` is multiplied by scale / clip.

    >>> rule = clipping_rule("flat", clip=2.0, scale=1.0)
    >>> rule(np.array([[1.0, 0.0], [0.0, 4.0]])).tolist()
    [0.5, 0.25]
    """

    def clip_flat(norms: NDArray[np.float64]) -> NDArray[Any]:
        return np.asarray(scale / np.maximum(_total_norms(norms), clip))

    def automatic(norms: NDArray[np.float64]) -> NDArray[Any]:
        return scale / (_total_norms(norms) + STABILIZER)

    def per_layer(norms: NDArray[np.float64]) -> NDArray[Any]:
        return scale / np.maximum(norms * math.sqrt(len(norms)), clip)

    return {"flat": clip_flat, "adaptive": clip_flat, "automatic": automatic, "per_layer": per_layer}[kind]


def _total_norms(norms: NDArray[np.float64]) -> NDArray[Any]:
    return np.asarray(np.sqrt(np.square(norms).sum(axis=0)))


@dataclass(frozen=True)
class Answer:
    """What leaves in one step, all of it public: noisy whole numbers, those of gradients as they are used.

    `total` is the noisy sum over the declared batch size, in single precision (with correlated noise, of C x); `extras`
    are noisy whole steps, `clip` is what gradients were clipped to.
    """

    total: NDArray[np.float32]
    extras: Whole
    clip: float


@dataclass(frozen=True)
class State:
    """What is kept from step to step; `sums` (of correlated noise: earlier ones, or buffers) are private."""

    step: int
    clip: float
    sums: tuple[Whole, ...] = field(default=(), repr=False)
    lost: bool = False


class Gradients:
    """The mechanism of a plan for one model.

    Guarantee:
        For neighboring data sets, the sums of a step in whole steps of the grid are within 2**bits of each other in
        the l2 norm whenever the unit is in the batch, and equal otherwise; the noise is discrete Gaussian of
        `grid.sigma` steps on every coordinate. Proof and assumptions: `rounding.md`. So the joint law of
        all steps is no easier to tell apart than `plan.event` says.

    `reduce` and `share` are for several processes: see `team.py`.
    """

    def __init__(
        self, plan: TrainingTerms, engine: Engine, losses: Callable[[nn.Module, Flat], Tensor], *, fine: int = FINE
    ) -> None:
        self.plan, self.engine, self._losses = plan, engine, losses
        engine.tape.most = plan.at_once
        self.shapes = {name: p.shape for name, p in engine.parameters.items()}
        self.size = sum(p.numel() for p in engine.parameters.values())
        self.extras = (plan.loss_at_most is not None) + (plan.clipping == "adaptive")
        if plan.clipping == "adaptive" and plan.batch is None:
            raise InvalidParameter("learning.adaptive_without_batch", parameter="batch")
        self.grid: Grid = grid_of(
            noise_multiplier=plan.chosen_noise,
            physical=plan.at_once * plan.rows_of_unit,
            coordinates=(self.size + self.extras) * (2 if plan.buffers else 1),  # buffers round, too
            fine=fine,
        )
        self._adaptive = AdaptiveClip(start=plan.clip, quantile=plan.quantile) if plan.clipping == "adaptive" else None
        self._sums: ExactSum | None = None
        self.smaller: SmallerSize | None = None  # of physical batches, where rows are computed alike in it
        self.reuse = False  # whether an answer may be overwritten once it was read, as a training allows
        self.reduce: Callable[[Whole], Whole] | None = None
        self.last: Answer | None = None
        self.following: State | None = None  # after the last step: private where noise is correlated
        self.restored: State | None = None

    def measurement(self, *, keyed: bool = False) -> Measurement:
        """The whole training as one measurement; with a key, answers are kept as digests (see `training.py`)."""
        shapes = ",".join(f"{name}:{tuple(shape)}" for name, shape in self.shapes.items())
        question = hashlib.sha256(f"{write_as_stored(self.plan)};{shapes}".encode()).hexdigest()
        return Measurement(
            unit=self.plan.unit,
            event=self.plan.event,
            init=self.first,
            step=self._step_as_digest if keyed else self.step,
            state=StatePolicy(resume=self._resume_state if keyed else None),
            horizon=self.plan.steps,
            name=f"{type(self.plan).__name__}({self.plan.steps} steps)",
            question=question,
        )

    def measurement_of_sums(self) -> Measurement:
        """The same for sums that were clipped and added up outside: a step adds noise (see `wrapping.py`)."""

        def step(state: State, sums: ExactSum, ask: Any, rng: Rng) -> tuple[Answer, State]:
            del ask
            return self._release(state, sums, rng)

        return replace(self.measurement(), step=step)

    def first(self) -> State:
        return State(0, self.plan.clip)

    def step(self, state: State, data: tuple[Examples, Sampler], ask: Any, rng: Rng) -> tuple[Answer, State]:
        """Sample, clip, sum, add noise; the parameters of the model (public) are what is asked at."""
        del ask
        if state.lost:
            raise RunClosed("learning.noise_lost")
        sums = self.sums()
        with sums.erase_on_failure():
            self._add(sums, state, data, rng)
            return self._release(state, sums, rng)

    def _release(self, state: State, sums: ExactSum, rng: Rng) -> tuple[Answer, State]:
        with sums.erase_on_failure():
            if self.reduce is None and self.plan.bands == 1:
                return self.add_noise(state, *sums.give_away(), rng)
            return self.add_noise(state, *self._reduce_sums(sums), rng)

    def _step_as_digest(self, state: State, data: Any, ask: Any, rng: Rng) -> tuple[dict[str, Any], State]:
        self.last, following = self.step(state, data, ask, rng)
        self.following = following
        digest = hashlib.sha256(self.last.total.tobytes() + self.last.extras.tobytes()).hexdigest()
        return {"step": following.step, "clip": following.clip, "digest": digest}, following

    def _resume_state(self, state: State, answer: dict[str, Any]) -> State:
        """The state after a step of an earlier process; that of correlated noise is in the checkpoint or lost."""
        self.last = None
        if self.restored is not None and self.restored.step == answer["step"]:
            return self.restored
        return replace(state, step=answer["step"], clip=answer["clip"], lost=self.plan.bands > 1)

    def sum_batch(self, state: State, data: tuple[Examples, Sampler], rng: Rng) -> tuple[Whole, Whole]:
        """The exact sum, in whole steps, of all contributions of the batch of this step, and the extras (private)."""
        sums = self.sums()
        with sums.erase_on_failure():
            self._add(sums, state, data, rng)
            return self._reduce_sums(sums)

    def _reduce_sums(self, sums: ExactSum) -> tuple[Whole, Whole]:
        total, extras = sums.finish().numpy(), sums.extras.numpy().copy()
        if self.reduce is None:
            return total, extras
        return self.reduce(total), self.reduce(extras) if self.extras else extras

    def _add(self, sums: ExactSum, state: State, data: tuple[Examples, Sampler], rng: Rng) -> None:
        (examples, sampler), coins = data, DropoutCoins(rng, self.engine.device)
        for units in sampler.physical(sampler.draw(state.step, rng)):
            rows, counts = self._fill_up(*self._repeat_views(*examples.positions(units, rng)))
            losses = self._record_fit_rows(examples, rows, counts, coins)
            if losses is None:
                continue  # not one of these rows can be used
            with sums.batch() as land:
                counting = np.arange(self.engine.tape.units) < len(units)
                found = self.engine.clip_recorded(self.rule(state, counting), losses=losses, into=land)
            self._add_extras(sums.extras, found, state, len(units))

    def _record_fit_rows(
        self, examples: Examples, rows: NDArray[np.int64], counts: Tensor | None, coins: DropoutCoins
    ) -> Tensor | None:
        """Forward and backward pass; rows with which that breaks count as nothing, and others take their places."""

        def record(rows: NDArray[np.int64], counts: Tensor | None = None) -> Tensor:
            with coins.fresh():
                return self._record(examples.batch(rows), len(rows), counts)

        try:
            return record(rows, counts)
        except Exception:  # noqa: BLE001
            fit = find_fit_rows(rows, record)
        if not fit.any():
            return None
        counts = torch.from_numpy(fit) if counts is None else counts & torch.from_numpy(fit)
        return record(np.where(fit, rows, rows[fit.argmax()]), counts)

    def _repeat_views(self, rows: NDArray[np.int64], counts: Tensor | None) -> tuple[NDArray[np.int64], Tensor | None]:
        """Every row as often as an example has views, those of one unit side by side."""
        views = self.plan.views
        return np.repeat(rows, views), counts if counts is None else counts.repeat_interleave(views)

    def _fill_up(self, rows: NDArray[np.int64], counts: Tensor | None) -> tuple[NDArray[np.int64], Tensor | None]:
        """The rows, over and over again, so that a physical batch has a public size; see A1 in `rounding.md`."""
        full, each = self.plan.at_once, self.plan.rows_of_unit
        if self.smaller is not None and self.smaller.has_room(len(rows) // each):
            full = self.smaller.units
        full = max(len(rows), full * each)
        return np.resize(rows, full), counts if counts is None else torch.from_numpy(np.resize(counts.numpy(), full))

    def sums(self, *, elsewhere: bool = False) -> ExactSum:
        """Where the sums of a step go; what stands there is older and is overwritten, unless they go elsewhere."""
        if self._sums is None or elsewhere or not self.reuse:
            self._sums = ExactSum(self.shapes, self.extras)
        self._sums.begin()
        return self._sums

    def _record(self, batch: Flat, rows: int, counts: Tensor | None) -> Tensor:
        def losses(model: nn.Module) -> Tensor:
            values = self._losses(model, batch)
            values = values if self.plan.views == 1 else values / self.plan.views
            return values if counts is None else torch.where(counts.to(values.device), values, 0.0)

        return self.engine.record(losses, rows, each=self.plan.rows_of_unit)

    def rule(self, state: State, counting: NDArray[np.bool_]) -> Rule:
        """The rule of the plan for the units that count; the others fill a batch up and weigh nothing."""
        scale = self.plan.gradient_share * self.grid.target * 2.0**self.grid.bits
        rule = clipping_rule(self.plan.clipping, clip=state.clip, scale=scale)

        def count_units(norms: NDArray[np.float64]) -> NDArray[np.float64]:
            weights = rule(norms)
            weights[..., ~counting] = 0.0
            return weights

        return count_units

    def _add_extras(self, extras: Tensor, found: Batch, state: State, units: int) -> None:
        """The sum of clipped losses and the count below the clip, of the first units, where the plan has them."""
        most = int(SHARE * self.grid.target * 2.0**self.grid.bits)
        if self.plan.loss_at_most is not None:
            losses = found.losses.double().view(-1, self.plan.each, self.plan.views)[:units].sum(dim=2).mean(dim=1)
            losses = losses.nan_to_num(self.plan.loss_at_most)
            parts = losses.clamp(0, self.plan.loss_at_most) * (most / self.plan.loss_at_most)
            extras[0] += int(parts.floor().clamp_max(most).to(torch.int64).sum())
        if self.plan.clipping == "adaptive":
            below = int((found.norms[:units] <= state.clip).sum())
            extras[-1] += most * (2 * below - units)

    def worth(self, clip: float) -> float:
        """What one step of the grid is in a mean gradient."""
        return clip / (self.plan.gradient_share * self.grid.target * 2.0**self.grid.bits * self.plan.divisor)

    def steps(self, answer: Answer) -> NDArray[np.float64]:
        """What was answered in steps of the grid: parameters, then extras (with correlated noise, of C x)."""
        extras = answer.extras / (SCALE if self.plan.bands > 1 else 1)
        return np.concatenate([answer.total / self.worth(answer.clip), extras])

    def add_noise(
        self, state: State, total: Whole | NDArray[np.float32], extras: Whole, rng: Rng
    ) -> tuple[Answer, State]:
        """Noise on every coordinate, cut to steps before; with correlated noise, on C x instead of x.

        The answer takes the memory of the total, and nothing of an exact sum stays in it.
        """
        sums, sigma, worth = state.sums, self.grid.sigma, self.worth(state.clip)
        if self.plan.bands > 1:
            encoded, sums = encode_step(self.plan.encoding, np.concatenate([total, extras]), state.sums)
            total, extras = encoded[: self.size], encoded[self.size :]
            sigma, worth = sigma * SCALE, worth / SCALE
        noisy = _noisy(total, sigma, worth, rng)
        add_discrete_gaussian(extras, sigma, rng=rng)
        answer = Answer(noisy, extras, state.clip)
        return answer, State(state.step + 1, self.next_clip(answer, state), sums)

    def next_clip(self, answer: Answer, state: State) -> float:
        """The clip of the step after `state`, from the noisy answer alone."""
        if self._adaptive is None:
            return state.clip
        most = int(SHARE * self.grid.target * 2.0**self.grid.bits)
        excess = float(answer.extras[-1]) / most / self.plan.divisor  # (below - above) over the batch
        return self._adaptive.follow(state.clip, (1 + excess) / 2)


def _noisy(total: NDArray[Any], sigma: Fraction, factor: float, rng: Rng) -> NDArray[np.float32]:
    """The total cut to whole numbers, with noise on each, times the factor: in the memory of the total."""
    if total.dtype == np.float32:
        scaled_discrete_gaussian(total, sigma, factor, rng=rng)
        return total
    add_discrete_gaussian(total, sigma, rng=rng)
    return scale_in_place(total, factor)
