"""What a measurement is sold as: its event as it is, or as one piece with the delta that it was asked for with.

Whoever asks for noise at (epsilon, delta) has bought a fixed event whose tight price is that pair. A rule that adds up
epsilons and deltas can charge it as a `Plan`, and the concentrated sum still sees the event inside.
"""

from __future__ import annotations

import math

from mosha.accounting.measures import pure
from mosha.accounting.rules import EitherRule, PureRule, Rule
from mosha.core.event import Event
from mosha.core.events import Plan
from mosha.core.measurement import Measurement

__all__ = ["offers"]


def offers(measurement: Measurement, rule: Rule) -> tuple[Event, ...]:
    """The events by which this may be paid for, the best one first; all of them price the same run.

    What was not asked for with a delta is sold as it is. An event that has a pure price is offered as it is first: it
    needs no delta, and all of it is there for others. Steps of a repetition can be handed back, those of a plan cannot:
    such a run is offered as it is first, too.

    >>> from mosha.core.events import Gaussian
    >>> from mosha.core.unit import Row
    >>> asked = Measurement(unit=Row(), event=Gaussian(4), step=lambda *_: (None, None), delta=1e-6)
    >>> offers(asked, PureRule(1.0, 1e-5))
    (Plan(event=Gaussian(noise_multiplier=4.0), delta=1e-06), Gaussian(noise_multiplier=4.0))
    """
    event, delta = measurement.event, measurement.delta
    if delta is None:
        return (event,)
    if math.isfinite(pure.approx(event)[0]):
        return event, Plan(event, delta)
    repeats = measurement.horizon > 1 and event.per_step(measurement.horizon) is not None
    if isinstance(rule, EitherRule | PureRule) and not repeats:
        return Plan(event, delta), event
    return event, Plan(event, delta)
