"""One protocol for everything that can be asked: tables, graphs, streams and synthetic data.

A question is frozen and holds no data. Its price and its error are known before it is asked; `release` pays, asks and
answers. Its JSON form (`to_dict`) is data and never code: whoever reads it builds the question again by the same verbs
and the same checks (`from_dict`, beside each kind of question, since it needs the data that the question is about).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter
from mosha.core.event import Event
from mosha.core.language import Language
from mosha.core.measurement import Measurement
from mosha.core.number import positive
from mosha.core.release import Receipt
from mosha.core.unit import Unit

__all__ = ["Answer", "Priceable", "Question", "find_least_budget", "price_tag"]

LEAST_EPSILON, LARGEST_EPSILON = 2.0**-20, 2.0**10


@runtime_checkable
class Answer(Protocol):
    """What comes back: noisy values, their error bars and the receipt. Whatever is made of it is free."""

    @property
    def value(self) -> Any:
        """The noisy value."""

    @property
    def receipt(self) -> Receipt:
        """Who paid how much for it."""

    def error(self, confidence: float = 0.95) -> Any:
        """Half-widths of the error bars: the noise stays within them with this probability."""

    def plot(
        self, *, ax: object | None = None, title: str | None = None, unit: str | None = None,
        lang: Language | None = None,
    ) -> Any:  # fmt: skip
        """A picture of the answer with its error bars (needs the extra `plot`)."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the values, their error bars, the notes and the receipt."""


Answered_co = TypeVar("Answered_co", bound=Answer, covariant=True)


@runtime_checkable
class Question(Protocol[Answered_co]):
    """Something that may be asked of private data, before it is paid for.

    A kind of question may take more keywords than these (public guesses for a forecast, a deadline); a budget of a
    measure that it cannot keep is refused.
    """

    @property
    def title(self) -> str:
        """What is asked, in a few public words."""

    @property
    def unit(self) -> Unit:
        """Whose presence is hidden."""

    @property
    def fingerprint(self) -> str:
        """What tells this question from others that cost the same: a hash of its public fields."""

    def measurement_for(self, *, epsilon: float | None = None, delta: float = 0.0) -> Measurement:
        """What a release for this budget would run, with its price."""

    def forecast(self, *, epsilon: float | None = None, delta: float = 0.0, confidence: float = 0.95) -> Any:
        """The half-widths of the error bars, before anything is spent."""

    def plan(self, *, within: float, confidence: float = 0.95, delta: float = 0.0) -> Budget:
        """The least budget whose widest error bar is at most `within`."""

    def explain(self, *, epsilon: float | None = None, delta: float = 0.0) -> str:
        """What will run, with the price of each part."""

    def release(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        within: float | None = None,
        confidence: float | None = None,
        key: str | None = None,
    ) -> Answered_co:
        """Pay, ask, and answer with error bars."""

    def to_dict(self) -> dict[str, Any]:
        """The question as plain data, which `from_dict` reads again."""


def find_least_budget(
    widest: Callable[[Budget], float], *, within: float, delta: float = 0.0, hint: str = ""
) -> Budget:
    """The least epsilon whose widest error bar is at most `within`, to one part in a thousand.

    Args:
        widest: the widest error bar for a budget; it must not grow with epsilon.
        within: how wide it may be.
        delta: of the budget.
        hint: one more sentence for the refusal, if no epsilon is accurate enough.

    >>> find_least_budget(lambda budget: 3 / budget.amount, within=6).epsilon < 0.501
    True
    """
    target = positive("within", within)
    low, high = LEAST_EPSILON, LARGEST_EPSILON
    if widest(Budget(epsilon=high, delta=delta)) > target:
        code = "core.never_so_accurate_hint" if hint else "core.never_so_accurate"
        raise InvalidParameter(code, parameter="within", largest=LARGEST_EPSILON, hint=hint)
    while high > low * 1.001:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if widest(Budget(epsilon=middle, delta=delta)) <= target else (middle, high)
    return Budget(epsilon=high, delta=delta)


@runtime_checkable
class Priceable(Protocol):
    """What has a price once a budget is given: every `Question`."""

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
