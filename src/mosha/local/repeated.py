"""The same question day after day: an answer that is drawn once and remembered, and noise on top of it each day."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.core.events import RandomizedResponse
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.names.deprecation import renamed_method, warn_of_old_name
from mosha.core.number import positive
from mosha.core.unit import Own
from mosha.local.frequency import Frequency
from mosha.local.protocols.device import DeviceRandom, draw_below, flip_coin
from mosha.local.protocols.k_ary import KAry
from mosha.local.wire import tag_of

if TYPE_CHECKING:
    from mosha.local.protocols.odds import Odds
    from mosha.local.wire import Batch

__all__ = ["Device", "Repeated"]


class Repeated(Frequency):
    """A survey of categories that is asked again and again, with a promise for a lifetime.

    The device draws a *permanent* answer once, by k-ary randomised response at `permanent`, and remembers it. Each
    report tells the permanent answer through fresh noise, so that one report alone is `epsilon`-private.

    Guarantee:
        All reports are made of the permanent answer and of fresh randomness: whatever their number, together they are
        as private as it is, `permanent`. One report keeps the permanent answer with probability r and gives each other
        value with (1 - r) / (k - 1), where r is solved from p r + (1 - p) (1 - r) / (k - 1) = P for the truth
        probabilities p at `permanent` and P at `epsilon`: as rational numbers, so that one report has exactly the law
        of k-ary randomised response at `epsilon`. A new permanent answer is drawn on a public schedule alone: drawing
        one because the value has changed would tell when it did.

    >>> survey = Repeated(["on", "off"], permanent=2.0, epsilon=1.0)
    >>> float(round(survey.truth_rate, 4))
    0.8034
    """

    kind = "repeated"
    randomizer: KAry

    def __init__(
        self, values: Sequence[Hashable], *, permanent: float, epsilon: float, other: Hashable | None = None
    ) -> None:
        super().__init__(values, epsilon=epsilon, other=other, protocol=KAry.name)
        self.permanent = positive("permanent", permanent)
        if self.permanent <= self.epsilon:
            raise InvalidParameter("local.permanent_below_epsilon", parameter="permanent")
        self._first = KAry(self.randomizer.size, self.permanent)

    @property
    def truth_rate(self) -> Fraction:
        """The probability that a report is the permanent answer."""
        others = self.randomizer.size - 1
        truth = self._first.truth
        lie = (1 - truth) / others
        return (self.randomizer.truth - lie) / (truth - lie)

    @property
    def permanent_odds(self) -> Odds:
        return self._first.odds

    def _question_fields(self) -> dict[str, Any]:
        odds = [self.permanent_odds.top, self.permanent_odds.bottom]
        return super()._question_fields() | {"permanent": self.permanent, "permanent odds": odds}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Repeated:
        values, other = fields["values"], fields["other"]
        listed = range(values["range"]) if isinstance(values, dict) else list(values)
        listed = [value for value in listed if other is None or value != other] if other is not None else listed
        return cls(listed, permanent=fields["permanent"], epsilon=fields["epsilon"], other=other)

    def report(self, value: object) -> bytes:  # noqa: ARG002
        """Refused: a survey alone remembers nothing, so that every report would cost `epsilon` again."""
        raise InvalidParameter("local.needs_device")

    def reports(self, values: object) -> Batch:  # noqa: ARG002
        """Refused like `report`; `simulate` makes up a collection."""
        raise InvalidParameter("local.needs_devices")

    def simulate(self, values: object) -> Batch:
        """What a collector would get on one day, one report of each value, to try a survey out.

        Never use it for people's values: nothing is remembered, so every call would cost `epsilon` again.

        Args:
            values: made-up values, one for each device.
        """
        return super().reports(values)

    simulated = renamed_method("simulated", "simulate")

    def _describe(self) -> str:
        return f"{super()._describe()}, permanent {self.permanent:g}"

    @property
    def permanent_measurement(self) -> Measurement:
        """The permanent answer, to be paid from the device's own account."""
        first = self._first
        return Measurement(
            unit=Own(),
            event=RandomizedResponse(self.permanent, first.size),
            step=lambda state, data, ask, rng: (first.draw(self._encode(data), rng), state),  # noqa: ARG005
            name="permanent answer",
            question=self.id.hex(),
        )

    def report_permanent(self, permanent: bytes, rng: Rng) -> bytes:
        """A report made from a permanent answer: free, however often it is made."""
        answer, kept = int.from_bytes(permanent, "little"), self.truth_rate
        if not flip_coin(kept.numerator, kept.denominator, rng):
            other = draw_below(self.randomizer.size - 1, rng)
            answer = other + (other >= answer)
        return bytes([tag_of(self.id)]) + answer.to_bytes(self.randomizer.width, "little")


@explain_wrong_calls
class Device:
    """A device with its own account: permanent answers are paid once and remembered in its ledger, across restarts.

    Args:
        account: the account of this device, for the unit that is its own value.
        positional: the account, as it was given before it had a name; it warns.

    Guarantee:
        A permanent answer is opened in `account` under a key made of the survey and the public `period`. The ledger
        charges it before the value is read and keeps it; later reports of the period find it and read no value. So all
        reports together cost what the account has paid, and the account's limit is the promise of a lifetime.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("phone", unit=mosha.Own(), epsilon=4)
    >>> device = Device(account=account)
    >>> survey = Repeated(["on", "off"], permanent=2.0, epsilon=1.0)
    >>> reports = [device.report(survey, "on") for _ in range(365)]
    >>> round(account.spent, 6)
    2.0
    """

    def __init__(self, *positional: Account, account: Account | None = None) -> None:
        if positional:
            warn_of_old_name("Device(account)", "Device(account=account)")
            (account,) = positional
        if not isinstance(account, Account) or not isinstance(account.unit, Own):
            raise InvalidParameter("local.device_without_account", parameter="account")
        self.account = account

    def report(self, survey: Repeated, value: object, *, period: str = "always") -> bytes:
        """A report of this period; the value is read for the first one only.

        Args:
            survey: what is asked.
            value: the value now.
            period: a public name, the same for all devices ("2026"): a new one draws a new permanent answer.
        """
        if not isinstance(survey, Repeated):
            raise InvalidParameter("local.not_repeated", parameter="survey")
        if not isinstance(period, str) or not period:
            raise InvalidParameter("local.no_period", parameter="period")
        survey._encode(value)  # a value that cannot be reported is refused before anything is paid
        rng = DeviceRandom()
        run = self.account.open(survey.permanent_measurement, key=f"{survey.id.hex()}/{period}", rng=rng)
        return survey.report_permanent(run.step(value).value, rng)
