"""How many devices hold each value."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive
from mosha.local.labels import identify_label
from mosha.local.protocols.choice import best, protocol_by_name
from mosha.local.protocols.protocol import Protocol
from mosha.local.survey import Survey, check_sequence, require_reports

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mosha.local.estimate import Shares

__all__ = ["Frequency"]


class Frequency(Survey):
    """A survey of categories: one of `values` a device, each report `epsilon`-private.

    Guarantee:
        That of the protocol (`survey.randomizer`), see its docstring. A value outside the domain is refused before
        anything is drawn, or counts as `other`, which is one value of the domain like any other.

    Units:
        `epsilon` is a pure number; estimates are shares of the devices that reported.

    Args:
        values: the labels (texts, whole numbers, booleans), or a range; public, the same on all devices.
        epsilon: what one report may reveal.
        other: a label that stands for everything outside `values`.
        protocol: the name of a protocol; by default the one with the least error within `bytes_per_report`.
        bytes_per_report: the longest report, with its first byte.

    >>> survey = Frequency(["firefox", "chrome", "safari"], epsilon=1.5)
    >>> len(survey.report("firefox"))
    2
    >>> Frequency.from_json(survey.to_json()).id == survey.id
    True
    """

    kind = "frequency"
    randomizer: Protocol

    def __init__(
        self,
        values: Sequence[Hashable],
        *,
        epsilon: float,
        other: Hashable | None = None,
        protocol: str | None = None,
        bytes_per_report: int = 8,
    ) -> None:
        self.epsilon = positive("epsilon", epsilon)
        self.values = _check_labels(values, other)
        self.other = other
        self._places = (
            None if isinstance(self.values, range) else {identify_label(v): i for i, v in enumerate(self.values)}
        )
        size = len(self.values)
        if protocol is None:
            self.randomizer = best(size, self.epsilon, bytes_per_report=bytes_per_report).protocol
        else:
            self.randomizer = protocol_by_name(protocol, size, self.epsilon)

    @property
    def protocol(self) -> Protocol:
        """How devices report."""
        return self.randomizer

    def _question_fields(self) -> dict[str, Any]:
        values = {"range": len(self.values)} if isinstance(self.values, range) else list(self.values)
        return {"values": values, "other": self.other}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Frequency:
        values, other = fields["values"], fields["other"]
        listed = range(values["range"]) if isinstance(values, dict) else list(values)
        if other is not None:
            listed = [value for value in listed if identify_label(value) != identify_label(other)]
        return cls(listed, epsilon=fields["epsilon"], other=other, protocol=fields["protocol"])

    def _describe(self) -> str:
        few = ", ".join(repr(value) for value in self.values[:3])
        return f"of {len(self.values)} values ({few}{', ...' if len(self.values) > 3 else ''}), {self.randomizer.name}"

    def _encode(self, value: object) -> int:
        place = self._place(value)
        if place is None:
            raise InvalidParameter("local.outside_domain", parameter="value")
        return place

    def _place(self, value: Any) -> int | None:
        if self._places is None:
            try:
                number = None if isinstance(value, bool) else operator.index(value)
            except TypeError:
                number = None
            return number if number is not None and 0 <= number < len(self.values) else None
        try:
            place = self._places.get(identify_label(value))
        except TypeError:  # not hashable
            place = None
        return self._places[identify_label(self.other)] if place is None and self.other is not None else place

    def _encode_many(self, values: object) -> NDArray[np.int64]:
        import numpy as np

        if isinstance(values, str | bytes | Mapping | AbstractSet) or getattr(values, "ndim", 1) != 1:
            raise InvalidParameter("local.not_one_value_each", parameter="values")
        if self._places is None:
            array = np.asarray(values)
            if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
                raise InvalidParameter("local.range_values", parameter="values")
            if array.size and (array.min() < 0 or array.max() >= len(self.values)):
                raise InvalidParameter("local.some_outside_domain", parameter="values")
            return array.astype(np.int64)
        listed = values.tolist() if isinstance(values, np.ndarray) else values
        if not isinstance(listed, Iterable):
            raise InvalidParameter("local.not_one_value_each", parameter="values")
        return np.fromiter((self._encode(value) for value in listed), np.int64)

    def decode(self, counters: NDArray[np.int64], reports: int) -> Shares:
        import numpy as np

        from mosha.local.estimate import Shares

        count = require_reports(reports)
        supports = self.randomizer.supports(counters).astype(np.float64)
        truth, lie = float(self.randomizer.truth), float(self.randomizer.lie)
        return Shares(self.values, count, (supports / count - lie) / (truth - lie), self.randomizer)


def _check_labels(values: object, other: object) -> Sequence[Any]:
    listed = check_sequence(values)
    if len(listed) + (other is not None) < 2:
        raise InvalidParameter("local.too_few_values", parameter="values")
    if isinstance(listed, range) and (listed.start, listed.step) == (0, 1) and other is None:
        return listed
    labels = [*listed, *([] if other is None else [other])]
    for label in labels:
        if not isinstance(label, str | int):
            raise InvalidParameter("local.label_type", parameter="values")
    if len({identify_label(label) for label in labels}) != len(labels):
        raise InvalidParameter("local.values_repeat", parameter="values")
    return tuple(labels)
