"""Windows hidden one by one (w-event privacy): noise at every step, or only at steps that bring something new.

Budget distribution and absorption (Kellaris, Papadopoulos, Xiao and Papadias 2014) publish again what they published
last while the stream stays near it, and save their budget for changes. On busy streams they lose to plain noise, so
`window` takes them only where the declared number of changes promises a gain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, get_args

import numpy as np

from mosha.core.errors import InvalidParameter
from mosha.core.events import Pure
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import non_negative, positive
from mosha.core.options import WindowMethod, choose
from mosha.core.unit import Unit, Window
from mosha.exact.statistic import Statistic, check_statistic
from mosha.mechanisms import Count
from mosha.mechanisms.noisy_statistic import title
from mosha.noise.unbounded import unbounded_laplace
from mosha.streams.bounding import Memory, exact_step
from mosha.streams.planner import VERY_LONG, best
from mosha.streams.presence import contribution, presence_of

__all__ = ["WindowState", "adaptive", "predict_error", "window"]

WHOLE = 1 << 40  # epsilon is divided into so many parts


@dataclass(slots=True)
class WindowState:
    """What was published last, and what the last steps of a window spent on publishing (in parts of epsilon)."""

    time: int = 0
    last: Any = None
    spent: tuple[int, ...] = ()
    blocked: int = 0
    memory: Memory = field(default_factory=dict)


def predict_error(method: str, *, steps: int, changes: float, epsilon: float) -> float:
    """The mean absolute error that noise alone gives a count, if a window has so many changes.

    Uniform noise has the scale w / epsilon; absorption shares half of epsilon among the changes; distribution halves
    what is left at each of them.

    >>> [predict_error(method, steps=48, changes=3, epsilon=1) for method in ("uniform", "absorption")]
    [48.0, 6.0]
    """
    if method == "uniform":
        return steps / epsilon
    published = max(1.0, min(changes, steps))
    return (2 * published if method == "absorption" else min(2.0 ** (published + 1), 2.0**60)) / epsilon


@explain_wrong_calls
def window(
    statistic: Statistic | None = None,
    *,
    unit: Window,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    changes: float | None = None,
    horizon: int | None = None,
    apart: int = 1,
) -> Measurement:
    """Each step's statistic, for as long as you like, hiding what a person does in any window of `unit.steps` steps.

    `changes` is your public guess at how often a window changes by more than the noise; without it, or where it
    promises no gain, every step gets noise of its own.

    `statistic` is what each step publishes (the number of rows where it is left out), at `epsilon` with `delta`, or
    `rho`, for any window. A run has `horizon` steps (None: very many); `apart` is that of `best`.

    Guarantee:
        That of `best`, or that of `adaptive`.

    Units:
        Rows, or the unit of the statistic.

    >>> window(unit=Window("meter", 48), epsilon=1).name, window(unit=Window("meter", 48), epsilon=1, changes=2).name
    ('window(Count)', 'absorption(Count)')
    """
    if not isinstance(unit, Window):
        raise InvalidParameter("streams.window_unit", parameter="unit")
    options: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho, "apart": apart}
    plainly = best(statistic, unit=unit, horizon=horizon, release="instant", name="window", **options)
    if changes is None or epsilon is None:
        return plainly
    guess = non_negative("changes", changes)
    methods: tuple[WindowMethod, ...] = get_args(WindowMethod)
    errors = {method: predict_error(method, steps=unit.steps, changes=guess, epsilon=epsilon) for method in methods}
    method = min(methods, key=lambda name: errors[name])
    if errors[method] >= 0.75 * plainly.plan.root_mean_square:
        return plainly
    return adaptive(statistic, unit=unit, epsilon=epsilon, method=method, horizon=horizon)


def adaptive(
    statistic: Statistic | None = None, *, unit: Unit, epsilon: float, method: WindowMethod, horizon: int | None = None
) -> Measurement:
    """Budget distribution ("distribution") or absorption ("absorption") over a sliding window.

    Guarantee:
        epsilon-differential privacy for every window of w steps. Each step compares the data with what was published
        last, by Laplace noise worth epsilon / (2 w): epsilon / 2 in a window. What it spends on publishing is a
        function of earlier answers, and any w consecutive steps spend at most epsilon / 2: distribution takes
        half of what the last w - 1 steps left of it; absorption takes j <= w shares of epsilon / (2 w), j - 1
        of them from steps that published nothing before, and blocks j - 1 steps after it, so that in any window
        it owns j steps. Neighbors differ within one window, and pure epsilons that are chosen adaptively with
        a bounded sum add up.

    Units:
        Those of the statistic.

    >>> adaptive(unit=Window("meter", 4), epsilon=1, method="absorption", horizon=100).event
    Pure(epsilon=1.0)
    """
    choose("method", method, WindowMethod)
    if not isinstance(unit, Window):
        raise InvalidParameter("streams.adaptive_window_unit", parameter="unit")
    asked = check_statistic(Count() if statistic is None else statistic)
    steps, whole = unit.steps, Fraction(positive("epsilon", epsilon))
    horizon = VERY_LONG if horizon is None else horizon
    presence = presence_of(unit, horizon)
    moved = contribution(asked).l1 * presence.sides
    compare = Fraction(moved * 2 * steps) / whole

    def step(state: WindowState, data: object, ask: object, rng: Rng) -> tuple[Any, WindowState]:
        del ask
        exact, memory = exact_step(asked, presence, data, state.time, state.memory)
        last = np.zeros(exact.size, object) if state.last is None else state.last
        distance = int(abs(exact.astype(object) - last).sum()) + int(unbounded_laplace(compare, 1, rng=rng)[0])
        share = _share(method, state, steps)
        spend = 0
        if share and distance * share * whole > exact.size * moved * WHOLE:  # more than the noise would add
            spend, scale = share, Fraction(moved * WHOLE) / (share * whole)
            last = exact.astype(object) + unbounded_laplace(scale, exact.size, rng=rng).astype(object)
        kept = (*state.spent, spend)[-max(1, 2 * steps) :]
        each = WHOLE // (2 * steps)
        blocked = spend // each - 1 if spend and method == "absorption" else max(0, state.blocked - 1)
        answer: Any = last * asked.grid
        answer = float(answer[0]) if asked.labels is None else answer.astype(float)
        return answer, WindowState(state.time + 1, last, kept, blocked, memory)

    return Measurement(
        unit=unit,
        event=Pure(float(whole)),
        step=step,
        init=WindowState,
        horizon=horizon,
        name=f"{method}({title(asked)})",
        question=fingerprint(asked, unit, method),
    )


def _share(method: str, state: WindowState, steps: int) -> int:
    """How much of epsilon a publication at this step may spend, in parts."""
    if method == "distribution":
        recent = state.spent[-(steps - 1) :] if steps > 1 else ()
        return (WHOLE // 2 - sum(recent)) // 2
    if state.blocked:
        return 0
    each = WHOLE // (2 * steps)
    idle = 0
    for spent in reversed(state.spent):  # steps since the last publication and the steps it blocked
        if spent:
            idle -= spent // each - 1
            break
        idle += 1
    return each * min(steps, max(0, idle) + 1)
