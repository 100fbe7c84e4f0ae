"""A survey: one declaration that the device and the collector share."""

from __future__ import annotations

import hashlib
import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.language import say
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.names.deprecation import renamed_attribute, warn_of_old_name
from mosha.core.showing import Card, Shown
from mosha.core.unit import Own
from mosha.local.protocols.device import DeviceRandom
from mosha.local.protocols.randomizer import FEWEST, Randomizer
from mosha.local.wire import VERSION, tag_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mosha.local.collector import Collector
    from mosha.local.wire import Batch

__all__ = ["MOST_DECODING_BYTES", "Survey"]

_KINDS = ("frequency", "mean", "distribution", "several", "repeated", "heavy_hitters")
MOST_DECODING_BYTES = 1 << 32  # a device refuses what a collector could not decode, so it depends on no machine


@explain_wrong_calls
class Survey(Shown, ABC):
    """What is asked, at what epsilon, and how it is reported. A survey cannot be changed: declare another.

    Methods take the `value` of one person and a source of randomness `rng`, a report as `text`, several `reports`, or
    the `counters` that were made of them.

    Guarantee:
        A report is `randomizer.draw` of the value, whose proof stands beside it. A value that cannot be reported is
        refused before anything is drawn, by a message that does not depend on it.

    >>> from mosha.local import Frequency
    >>> survey = Frequency(["tea", "coffee"], epsilon=2)
    >>> survey.kind, survey.epsilon, len(survey.report("tea"))
    ('frequency', 2.0, 2)
    >>> Survey.from_json(survey.to_json()).id == survey.id
    True
    """

    kinds: ClassVar[dict[str, type[Survey]]] = {}
    kind: ClassVar[str]
    epsilon: float
    randomizer: Randomizer
    randomiser = renamed_attribute("randomiser", "randomizer")

    def __init_subclass__(cls, **arguments: object) -> None:
        super().__init_subclass__(**arguments)
        if "kind" in vars(cls):
            Survey.kinds[cls.kind] = cls
        _name_on_creation(cls)

    @abstractmethod
    def _question_fields(self) -> dict[str, Any]:
        """The fields of the declaration that say what is asked."""

    @classmethod
    @abstractmethod
    def _from_fields(cls, fields: dict[str, object]) -> Survey:
        """The survey of these fields."""

    @abstractmethod
    def _encode(self, value: object) -> Any:
        """The value as the randomizer takes it, or a refusal."""

    @abstractmethod
    def _encode_many(self, values: object) -> NDArray[Any]:
        """The same for many values."""

    @abstractmethod
    def decode(self, counters: NDArray[np.int64], reports: int) -> Any:
        """The estimate from the counters of a collector."""

    def count_answers(self, counters: NDArray[np.int64], reports: int) -> int:  # noqa: ARG002
        """How many reports there are of the question that was answered least."""
        return reports

    def __repr__(self) -> str:
        size = f"{self.bytes_per_report} bytes per report"
        return f"<{type(self).__name__} {self._describe()}, epsilon {self.epsilon:g}, {size}>"

    def make_card(self) -> Card:
        """What is asked, what one report may reveal, and how large it is."""
        facts = [
            (say("core.shown_hidden"), Own().describe()),
            (say("local.shown_asked"), self._describe()),
            (say("local.shown_epsilon"), f"{self.epsilon:g}"),
            (say("local.shown_report"), say("local.shown_bytes", count=self.bytes_per_report)),
        ]
        return Card(title=type(self).__name__, facts=facts, notes=[say("local.shown_how")])

    @abstractmethod
    def _describe(self) -> str:
        """What is asked, in a few words."""

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain data."""
        head = {"mosha": "local survey", "version": VERSION, "survey": self.kind, "epsilon": self.epsilon}
        return head | self._question_fields() | self.randomizer.describe()

    def to_json(self) -> str:
        """The declaration that device and collector share."""
        return json.dumps(self.to_dict(), sort_keys=True, allow_nan=False)

    @staticmethod
    def from_json(text: str | bytes) -> Survey:
        """The survey that `to_json` declared.

        What is declared must be what this version would declare: a device never follows odds that are not those of the
        epsilon beside them.
        """
        try:
            fields = json.loads(text)
            survey = _kind(fields)._from_fields(fields)
        except InvalidParameter:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InvalidParameter("local.not_a_declaration", parameter="text") from None
        if json.loads(survey.to_json()) != fields:
            raise InvalidParameter("local.odds_do_not_match")
        return survey

    @property
    def id(self) -> bytes:
        """Eight bytes that name the survey: the start of the SHA-256 of its declaration."""
        name: bytes = vars(self)["_id"]
        return name

    def __setattr__(self, name: str, value: object) -> None:
        if "_id" in vars(self):
            raise InvalidParameter("local.survey_is_fixed")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise InvalidParameter("local.survey_is_fixed")

    @property
    def bytes_per_report(self) -> int:
        """The length of one report."""
        return 1 + self.randomizer.width

    @property
    def measurement(self) -> Measurement:
        """One report, to be paid from the device's own account. Randomizer and price are taken together, once."""
        randomizer, tag = self.randomizer, bytes([tag_of(self.id)])
        return Measurement(
            unit=Own(),
            event=randomizer.event,
            step=lambda state, data, ask, rng: (tag + randomizer.draw(self._encode(data), rng), state),  # noqa: ARG005
            name=f"local {self.kind}",
            question=self.id.hex(),
        )

    def report(self, value: object) -> bytes:
        """One report of the device's own value, to be sent: this needs the standard library alone.

        Its randomness is the operating system's: there is no seed to give, to guess or to use twice.

        Args:
            value: the device's own value.
        """
        return self._draw_report(value, DeviceRandom())

    def reproduce_report(self, value: object, *, rng: Rng) -> bytes:
        """The report that `report` would make of these random bytes, to compare two implementations.

        Never use it for a person's value: whoever knows the bytes knows the value.

        Args:
            value: a made-up value of the survey.
            rng: the source of the random bytes, such as `mosha.noise.SeededRandom(1)`.
        """
        return self._draw_report(value, rng)

    def report_for_tests(self, value: object, *, rng: Rng) -> bytes:
        """The old name of `reproduce_report`."""
        warn_of_old_name("report_for_tests", "reproduce_report")
        return self.reproduce_report(value, rng=rng)

    def _draw_report(self, value: object, rng: Rng) -> bytes:
        return bytes([tag_of(self.id)]) + self.randomizer.draw(self._encode(value), rng)

    def reports(self, values: object) -> Batch:
        """A report of each value, for simulations and for gateways that report for many devices.

        Args:
            values: one value for each device.
        """
        from mosha.local.wire import Batch
        from mosha.noise import secure

        own = self._encode_many(values)
        return Batch(self.id, self.randomizer.draw_many(own, secure()))

    def collector(self, *, ticket_bits: int = 1 << 20) -> Collector:
        """An empty collector of this survey.

        Args:
            ticket_bits: the memory for tickets that were seen, in bits; a power of two.
        """
        from mosha.local.collector import Collector

        return Collector(self, ticket_bits=ticket_bits)

    def estimate(self, reports: Batch | bytes | Iterable[bytes]) -> Any:
        """What the survey asks, from these reports; reports of other surveys are left out.

        Args:
            reports: a batch, its bytes, or single reports.
        """
        collector = self.collector()
        collector.add(reports)
        return collector.estimate()


def _check_decoding(randomizer: Randomizer) -> None:
    """A survey that nobody could estimate is refused before anybody answers it."""
    if randomizer.decoding_bytes > MOST_DECODING_BYTES:
        raise InvalidParameter(
            "local.too_large_to_decode",
            parameter="questions",
            needed=randomizer.decoding_bytes / 2**30,
            most=MOST_DECODING_BYTES / 2**30,
        )


def _kind(fields: object) -> type[Survey]:
    """The class of the survey that is declared by these fields."""
    if not isinstance(fields, dict) or fields.get("mosha") != "local survey":
        raise InvalidParameter("local.not_a_declaration", parameter="text")
    if fields.get("version") != VERSION:
        raise InvalidParameter("local.survey_of_another_version", version=VERSION)
    name = fields.get("survey")
    if name not in _KINDS:
        raise InvalidParameter("local.unknown_kind")
    importlib.import_module(f"mosha.local.{name}")
    return Survey.kinds[name]


def require_reports(reports: int) -> int:
    """The number of reports, or a refusal."""
    if reports < FEWEST:
        raise DataError("local.too_few_reports", reports=reports, least=FEWEST)
    return reports


def check_sequence(values: object) -> Sequence[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InvalidParameter("local.not_a_sequence", parameter="values")
    return values


def _name_on_creation(kind: type[Survey]) -> None:
    """Surveys of this kind know their name once they are made, and cannot be changed from then on."""
    make = kind.__init__

    @wraps(make)
    def construct(self: Survey, *arguments: object, **named: object) -> None:
        make(self, *arguments, **named)
        if type(self) is kind:  # and not on its way to become one of a kind below
            _check_decoding(self.randomizer)
            vars(self)["_id"] = hashlib.sha256(self.to_json().encode()).digest()[:8]

    kind.__init__ = explain_wrong_calls(construct)  # type: ignore[method-assign, assignment]
