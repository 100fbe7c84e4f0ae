"""What would be paid for a question, a plan or a measurement: known before any data is read."""

from __future__ import annotations

import inspect
from typing import Protocol, runtime_checkable

from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.measurement import Measurement

__all__ = ["Priceable", "price_tag"]


@runtime_checkable
class Priceable(Protocol):
    """What has a price once a budget is given: every `mosha.core.question.Question`."""

    def measurement_for(self, **budget: float | None) -> Measurement:
        """What a release for this budget (epsilon, delta, rho) would run."""


def price_tag(asked: object, **budget: float) -> Measurement | Event:
    """What an account is charged for: a measurement, or an event.

    A question needs a budget. A plan is calibrated to the budget where one is given (`calibrate`), and says what it
    costs (`event`). Whatever else has a `measurement` that needs no argument is asked for that.

    >>> from mosha.core.events import Laplace
    >>> price_tag(Laplace(2))
    Laplace(noise_multiplier=2.0)
    """
    if isinstance(asked, Priceable) and not isinstance(asked, type):
        return asked.measurement_for(**budget)
    calibrate = getattr(asked, "calibrate", None)
    if budget and callable(calibrate):
        return price_tag(calibrate(**budget))
    found = asked if isinstance(asked, Event | Measurement) else _own_price(asked)
    if found is None:
        raise InvalidParameter("core.unknown_price", spent="nothing", kind=type(asked).__name__)
    if budget:
        raise InvalidParameter("core.own_price", kind=type(asked).__name__, budget=sorted(budget))
    return found


def _own_price(asked: object) -> Measurement | Event | None:
    if isinstance(found := getattr(asked, "event", None), Event):
        return found
    build = getattr(asked, "measurement", None)
    if isinstance(build, Measurement):
        return build
    if isinstance(asked, type) or not callable(build):
        return None
    try:
        inspect.signature(build).bind()
    except TypeError:
        return None
    found = build()
    return found if isinstance(found, Measurement) else None
