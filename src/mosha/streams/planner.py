"""The planner: all mechanisms that keep the budget, the one with the least predicted error, and why."""

from __future__ import annotations

from mosha.core.errors import InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive_integer
from mosha.core.unit import Unit
from mosha.exact.statistic import Statistic, check_statistic
from mosha.mechanisms import Count
from mosha.streams.candidates import Question, candidates
from mosha.streams.comparisons import comparisons
from mosha.streams.plan import Plan, make_budget
from mosha.streams.presence import presence_of
from mosha.streams.readout import readout_of
from mosha.streams.stream import Stream, stream_of

__all__ = ["VERY_LONG", "best"]

VERY_LONG = 1 << 32
"""The horizon of a stream that was given none: 1.2 to 1.6 times the error of a known one, where restarts cost 1.8."""


@explain_wrong_calls
def best(
    statistic: Statistic | None = None,
    *,
    unit: Unit,
    horizon: int | None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    mu: float | None = None,
    release: object = "running",
    apart: int = 1,
    memory: int = 600,
    mechanism: str | None = None,
    name: str = "stream",
) -> Stream:
    """The stream with the least root-mean-square error over its horizon, among all that keep the budget.

    Args:
        statistic: what is added up at each step; by default the number of rows.
        unit: `Reading()`, `Person(column, at_most=...)` or `Window(column, steps)`.
        horizon: how many steps are paid for; None for a very long one (2**32).
        epsilon: the budget: alone it is pure, or
        delta: together with epsilon, or
        rho: in zero-concentrated, or
        mu: in Gaussian differential privacy.
        release: "running", "instant", `Sliding(steps)` or `Decayed(factor)`.
        apart: two contributions of one person are at least so many steps apart (enforced).
        memory: how many numbers may be remembered for each series.
        mechanism: take the one whose name contains this, instead of the best; "Honaker", "binary tree" and
            "square-root Toeplitz" are there for comparison.
        name: what to call it in a ledger.

    Guarantee:
        Whichever is taken keeps its event's price for streams that are chosen adaptively: `exact_toeplitz.md` and
        `noise/unbounded.md` (buffers, bands), `SignedTree` and `BinaryTree` (trees), `Increments` (per step). The
        choice looks at public numbers alone.

    Units:
        Errors are in the unit of the statistic, the horizon in steps.

    >>> from mosha import Reading
    >>> counted = best(unit=Reading(), horizon=1024, epsilon=1)
    >>> counted.plan.name, round(counted.plan.root_mean_square, 1)
    ('13-ary tree with negative digits, 3 levels', 13.0)
    >>> print(counted.reason)
    13-ary tree with negative digits, 3 levels: predicted error 13; per-step Laplace 30.7
    """
    steps = VERY_LONG if horizon is None else positive_integer("horizon", horizon)
    if steps > 1 << 40:
        raise InvalidParameter("streams.horizon_too_long", parameter="horizon")
    asked = Question(
        check_statistic(Count() if statistic is None else statistic),
        presence_of(unit, steps, apart),
        readout_of(release),
        steps,
        positive_integer("memory", memory),
    )
    budget = make_budget(epsilon=epsilon, delta=delta, rho=rho, mu=mu)
    plans = sorted(candidates(asked, budget), key=lambda plan: plan.root_mean_square)
    if mechanism is not None:
        plans = [plan for plan in [*plans, *comparisons(asked, budget)] if mechanism in plan.name]
        plans.sort(key=lambda plan: plan.root_mean_square)
    if not plans:
        raise InvalidParameter("streams.no_such_mechanism", parameter="mechanism", spent="nothing")
    told = {"alternatives": tuple((plan.name, plan.root_mean_square) for plan in plans), "reason": _reason(plans)}
    options = {"statistic": statistic, "horizon": horizon, "release": release, "apart": apart, "memory": memory}
    options |= {"epsilon": epsilon, "delta": delta, "rho": rho, "mu": mu}
    return stream_of(plans[0], unit, name=name, options=options, replan=best, delta=budget.delta or None, **told)


def _reason(plans: list[Plan]) -> str:
    others = "; ".join(f"{plan.name} {plan.root_mean_square:.3g}" for plan in plans[1:]) or "no other keeps the budget"
    return f"{plans[0].name}: predicted error {plans[0].root_mean_square:.3g}; {others}"
