"""The shuffler: reports without senders, without order, and never few of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.events import Shuffled
from mosha.core.names.calls import explain_wrong_calls, renamed_argument
from mosha.core.number import positive_integer
from mosha.local.protocols.k_ary import KAry
from mosha.local.repeated import Repeated
from mosha.local.survey import Survey
from mosha.local.wire import Batch, rows_of, tag_of

__all__ = ["Shuffler", "shuffled_event"]


@renamed_argument(people="population")
def shuffled_event(survey: Survey, population: int) -> Shuffled:
    """What shuffled reports of `survey` cost each of `population` people; k-ary reports cost less.

    Reports of a `Repeated` survey are refused: those of one device share its permanent answer, so that batches of
    several days do not compose as events do, and the crowd may be another each day.

    >>> from mosha.local import Frequency
    >>> shuffled_event(Frequency(["yes", "no"], epsilon=1), 10_000).people
    10000
    """
    if not isinstance(survey, Survey):
        raise InvalidParameter("local.not_a_survey", parameter="survey")
    if isinstance(survey, Repeated):
        raise InvalidParameter("local.shuffled_repeated", parameter="survey")
    categories = survey.randomizer.size if isinstance(survey.randomizer, KAry) else None
    return Shuffled(survey.randomizer.epsilon, population, categories)


@explain_wrong_calls
class Shuffler:
    """Holds the reports of `survey` until there are `at_least`, then lets them go in the order of their bytes.

    Guarantee:
        A batch that is let go is the sorted multiset of the reports: it does not depend on who sent which, nor when. So
        for whoever sees batches alone, and trusts the shuffler and at least `at_least` of the senders to be honest, it
        costs no more than `shuffled_event(survey, at_least)`. Every report alone stays epsilon-private.

    Sharp edge: whoever can send reports of their own can fill a batch, so that fewer honest ones are in it than
    `at_least`; count senders before the shuffler, not in it.

    >>> from mosha.local import Frequency
    >>> survey = Frequency(["yes", "no"], epsilon=1)
    >>> shuffler = Shuffler(survey, at_least=1000)
    >>> shuffler.add(survey.reports(["yes"] * 1000))
    1000
    >>> len(shuffler.release()), len(shuffler)
    (1000, 0)
    """

    def __init__(self, survey: Survey, *, at_least: int) -> None:
        self.survey = survey
        self.at_least = positive_integer("at_least", at_least)
        self.rejected = 0
        self._held: list[NDArray[np.uint8]] = []

    def __len__(self) -> int:
        return sum(len(rows) for rows in self._held)

    @property
    def event(self) -> Shuffled:
        """The price of a batch; what accounting says of it is `mosha.accounting.epsilon(shuffler.event, delta)`."""
        return shuffled_event(self.survey, self.at_least)

    def add(self, reports: Batch | Iterable[bytes]) -> int:
        """Take `reports` in; what is not a possible report of the survey is left out. Returns how many were taken."""
        width = self.survey.randomizer.width
        if isinstance(reports, Batch):
            fits = reports.survey == self.survey.id and reports.rows.shape[1] == width
            rows, given = (reports.rows if fits else reports.rows[:0, :0].reshape(0, width)), len(reports)
        else:
            many: Any = reports
            if isinstance(many, str | bytes) or not isinstance(many, Iterable):
                raise InvalidParameter("local.not_shuffled_reports", parameter="reports")
            listed: list[Any] = list(many)
            tag = tag_of(self.survey.id)
            ours = [r for r in listed if isinstance(r, bytes) and len(r) == width + 1 and r[0] == tag]
            rows, given = rows_of(ours, width), len(listed)
        rows = rows[self.survey.randomizer.find_possible(rows)] if len(rows) else rows
        self._held.append(rows)
        self.rejected += given - len(rows)
        return len(rows)

    def release(self) -> Batch:
        """All reports that are held, if they are enough."""
        if len(self) < self.at_least:
            raise DataError("local.batch_too_small", at_least=self.at_least)
        rows = np.concatenate(self._held)
        self._held = []
        order = np.lexsort(rows.T[::-1])
        return Batch(self.survey.id, rows[order])
