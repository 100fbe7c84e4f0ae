"""Events of Google's dp-accounting, read and written.

Their noise multiplier is the noise over the norm of *one contribution*. Ours is over the sensitivity under the
neighbors of the account, which under replacement is twice that norm: so multipliers are halved on the way in and
doubled on the way out. (Their Rényi accountant takes a multiplier under replacement as if it were ours, by their issue
378: it reports a quarter of the divergence.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

from mosha.accounting.measures import concentrated
from mosha.accounting.measures.group import cover_group
from mosha.accounting.measures.renyi import ORDERS
from mosha.core.errors import InvalidParameter
from mosha.core.event import NOTHING, Event, compose
from mosha.core.events import (
    DiscreteLaplace,
    FixedSizeSampled,
    Gaussian,
    Group,
    Laplace,
    Matrix,
    RandomizedResponse,
    Renyi,
    Sampled,
    Selected,
    Tree,
    ZeroConcentrated,
)
from mosha.core.language import phrase
from mosha.core.names.calls import renamed_argument
from mosha.core.names.extras import load_guest
from mosha.core.number import non_negative, positive, positive_integer, real
from mosha.core.unit import Neighbors

__all__ = ["from_dp_event", "to_dp_event"]


def _neighbors(neighbors: Neighbors | str) -> Neighbors:
    try:
        return Neighbors(neighbors)
    except ValueError:
        kinds = [repr(str(kind)) for kind in Neighbors]
        raise InvalidParameter("core.unknown_option", parameter="neighbors", options=kinds) from None


@renamed_argument(neighbours="neighbors")
def from_dp_event(their_event: object, *, neighbors: Neighbors | str) -> Event:
    """The event that a `dp_accounting.DpEvent`, or its named tuple, describes. The library need not be installed.

    `neighbors` is the relation of the account that will pay; see the head of this file.

    >>> from collections import namedtuple
    >>> theirs = namedtuple("GaussianDpEvent", "noise_multiplier")
    >>> from_dp_event(theirs(2.0), neighbors="add-remove"), from_dp_event(theirs(2.0), neighbors="replace-one")
    (Gaussian(noise_multiplier=2.0), Gaussian(noise_multiplier=1.0))
    """
    relation = _neighbors(neighbors)
    name = getattr(their_event, "class_name", type(their_event).__name__)
    reader = _READERS.get(name)
    if reader is None:
        raise InvalidParameter("accounting.no_counterpart", parameter="their_event", kind=str(name))
    return reader(their_event, relation)


def _sensitivity(relation: Neighbors) -> int:
    return 2 if relation is Neighbors.REPLACE_ONE else 1


def _require_replace_one(code: str, relation: Neighbors) -> None:
    if relation is not Neighbors.REPLACE_ONE:
        raise InvalidParameter("accounting.needs_replace_one", parameter="neighbors", kind=phrase(code))


def _read_gaussian(theirs: Any, relation: Neighbors) -> Event:
    return Gaussian(positive("noise_multiplier", theirs.noise_multiplier) / _sensitivity(relation))


def _read_laplace(theirs: Any, relation: Neighbors) -> Event:
    return Laplace(positive("noise_multiplier", theirs.noise_multiplier) / _sensitivity(relation))


def _read_discrete_laplace(theirs: Any, relation: Neighbors) -> Event:
    steps = positive_integer("sensitivity", theirs.sensitivity) * _sensitivity(relation)
    return DiscreteLaplace(1 / (positive("noise_parameter", theirs.noise_parameter) * steps), steps)


def _read_randomized_response(theirs: Any, relation: Neighbors) -> Event:
    _require_replace_one("accounting.randomized_response", relation)
    noise, buckets = real("noise_parameter", theirs.noise_parameter), positive_integer("buckets", theirs.num_buckets)
    if noise == 1 or buckets == 1:
        return NOTHING
    if not 0 < noise < 1:
        raise InvalidParameter("accounting.response_without_noise", parameter="noise_parameter")
    return RandomizedResponse(math.log1p(buckets * (1 - noise) / noise), buckets)


def _read_composed(theirs: Any, relation: Neighbors) -> Event:
    return compose([(from_dp_event(inner, neighbors=relation), 1) for inner in theirs.events])


def _read_self_composed(theirs: Any, relation: Neighbors) -> Event:
    return compose([(from_dp_event(theirs.event, neighbors=relation), theirs.count)])


def _read_poisson_sampled(theirs: Any, relation: Neighbors) -> Event:
    return Sampled(from_dp_event(theirs.event, neighbors=relation), theirs.sampling_probability, relation)


def _read_fixed_size(theirs: Any, relation: Neighbors, *, replacement: bool) -> Event:
    _require_replace_one("accounting.sample_of_fixed_size", relation)
    inner = from_dp_event(theirs.event, neighbors=relation)
    return FixedSizeSampled(inner, theirs.sample_size, theirs.source_dataset_size, replacement)


def _read_tree(theirs: Any, relation: Neighbors) -> Event:
    counts = theirs.step_counts if hasattr(theirs.step_counts, "__iter__") else [theirs.step_counts]
    steps = max((positive_integer("step_counts", count) for count in counts), default=0)
    multiplier = positive("noise_multiplier", theirs.noise_multiplier) / _sensitivity(relation)
    return Tree(multiplier, steps.bit_length()) if steps else NOTHING


def _read_selected(theirs: Any, relation: Neighbors) -> Event:
    inner = from_dp_event(theirs.event, neighbors=relation)
    if math.isinf(theirs.shape):
        return Selected(inner, theirs.mean, "poisson")
    return Selected(inner, theirs.mean, shape=theirs.shape)


def _read_concentrated(theirs: Any, relation: Neighbors) -> Event:
    del relation
    rho, offset = non_negative("rho", theirs.rho), non_negative("xi", theirs.xi)
    if offset == 0:
        return ZeroConcentrated(rho)
    return Renyi(ORDERS, tuple(offset + rho * order for order in ORDERS))


def _read_nothing(theirs: object, relation: Neighbors) -> Event:
    del theirs, relation
    return NOTHING


_READERS: dict[str, Callable[[Any, Neighbors], Event]] = {
    "NoOpDpEvent": _read_nothing,
    "GaussianDpEvent": _read_gaussian,
    "LaplaceDpEvent": _read_laplace,
    "DiscreteLaplaceDpEvent": _read_discrete_laplace,
    "RandomizedResponseDpEvent": _read_randomized_response,
    "ComposedDpEvent": _read_composed,
    "SelfComposedDpEvent": _read_self_composed,
    "PoissonSampledDpEvent": _read_poisson_sampled,
    "SampledWithoutReplacementDpEvent": lambda theirs, relation: _read_fixed_size(theirs, relation, replacement=False),
    "SampledWithReplacementDpEvent": lambda theirs, relation: _read_fixed_size(theirs, relation, replacement=True),
    "SingleEpochTreeAggregationDpEvent": _read_tree,
    "RepeatAndSelectDpEvent": _read_selected,
    "ZCDpEvent": _read_concentrated,
}


@renamed_argument(neighbours="neighbors")
def to_dp_event(event: Event, *, neighbors: Neighbors | str) -> Any:
    """The `dp_accounting.DpEvent` that describes `event`.

    What they have no word for is written as the rho that covers it; what may fail with a probability cannot be
    written at all. `neighbors` is the relation under which `event` was priced; see the head of this file.
    """
    theirs = load_guest("dp_accounting.dp_event", extra="interop", needed_for=phrase("accounting.writing_events"))
    if not isinstance(event, Event):
        raise InvalidParameter("core.not_an_event", parameter="event", kind=type(event).__name__)
    relation = _neighbors(neighbors)
    parts = [(_write(part, relation, theirs), count) for part, count in event.parts()]
    counted = [theirs.SelfComposedDpEvent(one, count) if count > 1 else one for one, count in parts]
    if not counted:
        return theirs.NoOpDpEvent()
    return counted[0] if len(counted) == 1 else theirs.ComposedDpEvent(counted)


@singledispatch
def _write(part: Event, relation: Neighbors, theirs: Any) -> Any:
    """By the rho that covers it."""
    del relation
    rho, delta = concentrated.rho(part)
    if delta > 0 or math.isinf(rho):
        raise InvalidParameter("accounting.cannot_be_written", parameter="event", kind=type(part).__name__)
    return theirs.ZCDpEvent(rho)


_by_rho = _write.dispatch(Event)


@_write.register
def _(part: Gaussian, relation: Neighbors, theirs: Any) -> Any:
    return theirs.GaussianDpEvent(part.noise_multiplier * _sensitivity(relation))


@_write.register
def _(part: Matrix, relation: Neighbors, theirs: Any) -> Any:
    return theirs.GaussianDpEvent(part.noise_multiplier / part.sensitivity * _sensitivity(relation))


@_write.register
def _(part: Laplace, relation: Neighbors, theirs: Any) -> Any:
    return theirs.LaplaceDpEvent(part.noise_multiplier * _sensitivity(relation))


@_write.register
def _(part: DiscreteLaplace, relation: Neighbors, theirs: Any) -> Any:
    steps, double = part.sensitivity, _sensitivity(relation)
    if steps % double:
        return _by_rho(part, relation, theirs)
    return theirs.DiscreteLaplaceDpEvent(1 / (part.noise_multiplier * steps), steps // double)


@_write.register
def _(part: RandomizedResponse, relation: Neighbors, theirs: Any) -> Any:
    if relation is not Neighbors.REPLACE_ONE or part.epsilon > 700:
        return _by_rho(part, relation, theirs)
    noise = part.categories / (math.expm1(part.epsilon) + part.categories)
    return theirs.RandomizedResponseDpEvent(noise, part.categories)


@_write.register
def _(part: Tree, relation: Neighbors, theirs: Any) -> Any:
    multiplier = part.noise_multiplier * _sensitivity(relation)
    if part.noise == "laplace":
        return theirs.SelfComposedDpEvent(theirs.LaplaceDpEvent(multiplier), part.levels)
    return theirs.SingleEpochTreeAggregationDpEvent(multiplier, 2**part.levels - 1)


@_write.register
def _(part: Group, relation: Neighbors, theirs: object) -> Any:
    whole = cover_group(part.event, part.size)
    return _by_rho(part, relation, theirs) if whole is None else to_dp_event(whole, neighbors=relation)


@_write.register
def _(part: Sampled, relation: Neighbors, theirs: Any) -> Any:
    if part.neighbors is not relation:
        raise InvalidParameter("accounting.other_neighbors", parameter="neighbors", neighbors=str(part.neighbors))
    return theirs.PoissonSampledDpEvent(part.rate, to_dp_event(part.event, neighbors=relation))


@_write.register
def _(part: FixedSizeSampled, relation: Neighbors, theirs: Any) -> Any:
    _require_replace_one("accounting.sample_of_fixed_size", relation)
    kind = theirs.SampledWithReplacementDpEvent if part.replacement else theirs.SampledWithoutReplacementDpEvent
    return kind(part.population, part.size, to_dp_event(part.event, neighbors=relation))


@_write.register
def _(part: Selected, relation: Neighbors, theirs: Any) -> Any:
    shape = math.inf if part.distribution == "poisson" else part.shape
    return theirs.RepeatAndSelectDpEvent(to_dp_event(part.event, neighbors=relation), part.mean, shape)
