"""What a plan that was fixed in advance costs by basic composition: its tight price, as one event.

It lies above both: tight prices are made of the measures, and this one asks for a tight price. The package itself loads
it, so that no measure is ever asked without it.
"""

from __future__ import annotations

from mosha.accounting.measures.pure import price_one
from mosha.accounting.numerics.price import Cost
from mosha.core.events import Plan

__all__ = ["planned_epsilon"]


@price_one.register
def _(event: Plan) -> Cost:
    return Cost(planned_epsilon(event), event.delta)


def planned_epsilon(plan: Plan) -> float:
    """The tight epsilon of a plan at its delta; sound because nothing in the plan is chosen on the way.

    >>> from mosha.core.events import Gaussian
    >>> round(planned_epsilon(Plan(Gaussian(10) * 100, 1e-6)), 3)
    4.887
    """
    from mosha.accounting.prices import epsilon as tight_epsilon  # noqa: PLC0415  (numerics only where a plan is sold)

    return tight_epsilon(plan.event, plan.delta)
