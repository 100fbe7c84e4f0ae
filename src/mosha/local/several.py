"""Several questions to each device, of which it answers one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Rng
from mosha.local.protocols.device import draw_below
from mosha.local.protocols.odds import Odds
from mosha.local.protocols.randomizer import Randomizer
from mosha.local.survey import Survey

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["OneOf", "Several"]

_MOST = 256


@dataclass(frozen=True)
class OneOf(Randomizer):
    """One of several randomizers, chosen at random whatever the values are.

    Guarantee:
        The choice does not depend on the values, and whichever is chosen is epsilon-private.

    Units:
        A report is the number of the question, then its report, then zeros up to the longest.
    """

    epsilon: float
    parts: tuple[Randomizer, ...]
    name: ClassVar[str] = "one-of"

    @property
    def odds(self) -> Odds:
        return Odds.of(self.epsilon)

    @property
    def width(self) -> int:
        return 1 + max(part.width for part in self.parts)

    @property
    def cells(self) -> int:
        return len(self.parts) + sum(part.cells for part in self.parts)

    @property
    def decoding_bytes(self) -> int:
        """All counters, those of the reports that are added, and one estimate at a time; the estimates are kept."""
        return 24 * self.cells + max(part.decoding_bytes for part in self.parts)

    @property
    def work_per_report(self) -> int:
        return max(part.work_per_report for part in self.parts)

    def draw(self, value: tuple[Any, ...], rng: Rng) -> bytes:
        asked = draw_below(len(self.parts), rng)
        report = self.parts[asked].draw(value[asked], rng)
        return bytes([asked]) + report + bytes(self.width - 1 - len(report))

    def draw_many(self, values: NDArray[Any], rng: Rng) -> NDArray[np.uint8]:
        """`values` is one array a question, all of one length, or one row a device."""
        import numpy as np

        from mosha.noise import uniform

        columns = values.T if isinstance(values, np.ndarray) else values
        count = len(columns[0])
        asked = uniform(len(self.parts), count, rng=rng)
        rows = np.zeros((count, self.width), np.uint8)
        rows[:, 0] = asked
        for number, part in enumerate(self.parts):
            mine = np.flatnonzero(asked == number)
            if mine.size:
                rows[mine, 1 : 1 + part.width] = part.draw_many(columns[number][mine], rng)
        return rows

    def find_possible(self, reports: NDArray[np.uint8]) -> NDArray[np.bool_]:
        import numpy as np

        found = np.zeros(len(reports), np.bool_)
        for number, part in enumerate(self.parts):
            mine = np.flatnonzero(reports[:, 0] == number)
            clear = ~reports[mine, 1 + part.width :].any(axis=1)
            found[mine] = part.find_possible(reports[mine, 1 : 1 + part.width]) & clear
        return found

    def tally(self, reports: NDArray[np.uint8]) -> NDArray[np.int64]:
        import numpy as np

        counts = np.bincount(reports[:, 0], minlength=len(self.parts))
        tallies = [
            part.tally(reports[reports[:, 0] == number, 1 : 1 + part.width]) for number, part in enumerate(self.parts)
        ]
        return np.concatenate([counts, *tallies])

    def count_into(self, counters: NDArray[np.int64], reports: NDArray[np.uint8]) -> None:
        """Part by part, so that a few reports never touch all counters."""
        import numpy as np

        order = np.argsort(reports[:, 0], kind="stable")
        ends = np.cumsum(np.bincount(reports[:, 0], minlength=len(self.parts)))
        counters[: len(self.parts)] += np.diff(ends, prepend=0)
        place, start = len(self.parts), 0
        for part, end in zip(self.parts, ends.tolist(), strict=True):
            mine = reports[order[start:end], 1 : 1 + part.width]
            if len(mine):
                part.count_into(counters[place : place + part.cells], mine)
            place, start = place + part.cells, end

    def describe(self) -> dict[str, Any]:
        return {"protocol": self.name, "parts": [part.describe() for part in self.parts]}


class Several(Survey):
    """Several surveys of one epsilon at the price of one: each device answers one of them, chosen at random.

    With k questions the error of each grows by sqrt(k); split into k parts of epsilon / k it would grow by about k.

    Guarantee:
        That of `OneOf`: epsilon for all questions together.

    Args:
        questions: name -> survey; all of one epsilon. A device gives one value for each name.

    >>> from mosha.local import Frequency, Mean
    >>> both = Several({"age": Mean(between=(0, 99), epsilon=1), "pet": Frequency(["cat", "dog"], epsilon=1)})
    >>> len(both.report({"age": 41, "pet": "cat"}))
    4
    """

    kind = "several"
    randomizer: OneOf

    def __init__(self, questions: Mapping[str, Survey]) -> None:
        if not isinstance(questions, Mapping) or not 1 <= len(questions) <= _MOST:
            raise InvalidParameter("local.questions_missing", parameter="questions", most=_MOST)
        if not all(isinstance(name, str) for name in questions):
            raise InvalidParameter("local.question_names", parameter="questions")
        if not all(isinstance(survey, Survey) and not isinstance(survey, Several) for survey in questions.values()):
            raise InvalidParameter("local.not_single_surveys", parameter="questions")
        if any(survey.kind == "repeated" for survey in questions.values()):
            raise InvalidParameter("local.repeated_among_several", parameter="questions")
        if len({survey.epsilon for survey in questions.values()}) != 1:
            raise InvalidParameter("local.epsilons_differ", parameter="questions")
        self.questions = dict(sorted(questions.items()))
        self.epsilon = next(iter(questions.values())).epsilon
        self.randomizer = OneOf(self.epsilon, tuple(survey.randomizer for survey in self.questions.values()))

    def _question_fields(self) -> dict[str, Any]:
        return {"questions": {name: survey.to_dict() for name, survey in self.questions.items()}}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Several:
        import json

        return cls({name: Survey.from_json(json.dumps(inner)) for name, inner in fields["questions"].items()})

    def _encode(self, value: Any) -> tuple[Any, ...]:
        """Every value is checked, not only the one that will be told: what is refused must not depend on the choice."""
        self._check_names(value)
        return tuple(survey._encode(value[name]) for name, survey in self.questions.items())

    def _encode_many(self, values: Any) -> Any:
        self._check_names(values)
        columns = [survey._encode_many(values[name]) for name, survey in self.questions.items()]
        if len({len(column) for column in columns}) != 1:
            raise InvalidParameter("local.values_per_question", parameter="values")
        return columns

    def _check_names(self, values: Any) -> None:
        try:
            complete = set(values.keys()) == set(self.questions)
        except (AttributeError, TypeError):
            complete = False
        if not complete:
            raise InvalidParameter("local.value_per_question", parameter="value")

    def _describe(self) -> str:
        return "of " + ", ".join(f"{name!r}: {survey.kind}" for name, survey in self.questions.items())

    def count_answers(self, counters: NDArray[np.int64], reports: int) -> int:  # noqa: ARG002
        return int(counters[: len(self.questions)].min())

    def decode(self, counters: NDArray[np.int64], reports: int) -> dict[str, Any]:  # noqa: ARG002
        """The estimate of each question, by name, from the devices that were asked it."""
        found, place = {}, len(self.questions)
        for number, (name, survey) in enumerate(self.questions.items()):
            cells = survey.randomizer.cells
            found[name] = survey.decode(counters[place : place + cells], int(counters[number]))
            place += cells
        return found
