"""A bandit that learns which arm pays, while the reward that each person gave stays hidden."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter, RunError
from mosha.core.number import positive_integer
from mosha.core.options import BanditMethod, choose
from mosha.core.unit import Reading
from mosha.streams.questions import series
from mosha.streams.stream import Stream

__all__ = ["ArmRule", "Bandit"]


class ArmRule:
    """Which arm is offered next: a function of noisy sums of rewards that were published, and of coins.

    >>> stream = series(unit=Reading(), horizon=9, keys=["a", "b"], key="arm", column="reward", between=(0, 1), rho=1)
    >>> rule = ArmRule(stream, 2, width=1.0, method="ucb")
    >>> rule.counts[:] = [1, 0]
    >>> rule.choose()  # nobody has seen the second yet
    1
    """

    def __init__(self, stream: Stream, arms: int, *, width: float, method: BanditMethod) -> None:
        self._stream, self._method, self._range = stream, method, width
        self.counts = np.zeros(arms, np.int64)
        self.sums = np.zeros(arms)
        self._coins = np.random.default_rng()  # choices are post-processing: their coins protect nobody

    def choose(self) -> int:
        """The number of the arm for the next person."""
        if np.any(self.counts == 0):
            return int(np.argmin(self.counts))
        means = self.sums / self.counts
        if self._method == "thompson":
            return int(np.argmax(self._coins.normal(means, self._find_deviations())))
        chance = self._range * np.sqrt(math.log(self._stream.horizon) / (2 * self.counts))
        return int(np.argmax(means + chance + self._find_bar() / self.counts))

    def _find_deviations(self) -> NDArray[np.float64]:
        noise = self._stream.deviation(max(1, int(self.counts.sum())))
        spread: NDArray[np.float64] = np.sqrt(self._range**2 / 4 / self.counts + (noise / self.counts) ** 2)
        return spread

    def _find_bar(self) -> float:
        """Two deviations of the noise of a sum: bars of higher confidence explore for too long."""
        return 2 * self._stream.deviation(max(1, int(self.counts.sum())))


class Bandit:
    """Each person is offered one arm and gives one reward; sums of rewards come from a private stream.

    "ucb" offers the arm with the highest upper bound: mean, plus what chance and what the noise can add. "thompson"
    draws a mean for each arm from a normal law as wide as both, and offers the highest.

    Guarantee:
        The sums are one stream with a coordinate for each arm (`series`), at event level, paid when the bandit is made
        and private for rewards that are chosen adaptively: a person's reward is in one step and one coordinate, and
        moves it by at most the larger end of `between`. Which arm was offered and how often are functions of earlier
        answers of the stream and of coins: post-processing. So arms and sums together hide each person's reward, for
        whoever sees all that happened. That a person came, and when, is not hidden.

    Units:
        Rewards, in `between`.

    Args:
        arms: their names.
        horizon: how many people will come.
        account: who pays; its unit is `mosha.Reading()`.
        between: the range of a reward; others are clamped into it.
        method: how an arm is chosen.
        epsilon: the price, alone or with
        delta: or
        rho: in zero-concentrated differential privacy.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("ads", unit=mosha.Reading(), epsilon=5)
    >>> bandit = Bandit(["red", "blue"], horizon=300, account=account, epsilon=5)
    >>> for _ in range(300):
    ...     bandit.record(float(bandit.choose() == "blue"))
    >>> bandit.pulls["blue"] > bandit.pulls["red"]
    True
    """

    def __init__(
        self,
        arms: Sequence[object],
        *,
        horizon: int,
        account: Account,
        between: tuple[float, float] = (0.0, 1.0),
        method: BanditMethod = "ucb",
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
    ) -> None:
        chosen: BanditMethod = choose("method", method, BanditMethod)
        stream = series(
            unit=Reading(), horizon=positive_integer("horizon", horizon), keys=arms, key="arm", between=between,
            column="reward", epsilon=epsilon, delta=delta, rho=rho,
        )  # fmt: skip
        self._arms = tuple(arms)
        if len(self._arms) < 2:
            raise InvalidParameter("streams.one_arm", parameter="arms")
        self._rule = ArmRule(stream, len(self._arms), width=float(between[1]) - float(between[0]), method=chosen)
        self._run = account.open(stream)
        self._offered: int | None = None

    @property
    def pulls(self) -> dict[object, int]:
        """How often each arm was offered: no secret."""
        return dict(zip(self._arms, self._rule.counts.tolist(), strict=True))

    @property
    def means(self) -> dict[object, float]:
        """The mean reward of each arm, as far as the noise tells."""
        means = self._rule.sums / np.maximum(self._rule.counts, 1)
        return dict(zip(self._arms, means.tolist(), strict=True))

    def choose(self) -> object:
        """The arm for the next person."""
        if self._offered is None:
            self._offered = self._rule.choose()
        return self._arms[self._offered]

    def record(self, reward: float) -> None:
        """The `reward` of the person who was offered the chosen arm."""
        if self._offered is None:
            raise RunError("streams.nobody_was_offered")
        offered, self._offered = self._offered, None
        self._rule.counts[offered] += 1
        self._rule.sums = self._publish({"arm": [self._arms[offered]], "reward": [reward]})

    def _publish(self, row: dict[str, list[object]]) -> NDArray[np.float64]:
        return np.asarray(self._run.step(row).value, np.float64)
