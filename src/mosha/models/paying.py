"""From a budget to a measurement and from a measurement to a paid release: what all classic models share."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from mosha.connect.engines.source import look_only
from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Measurement
from mosha.core.release import Release
from mosha.core.unit import Unit
from mosha.exact.statistic import Statistic
from mosha.mechanisms import additive, gaussian, laplace

__all__ = ["Price", "add_noise_to", "noise_deviation", "pay_for_table", "pay_from"]


@dataclass(frozen=True)
class Price:
    """What a model may cost: `epsilon` (Laplace noise), with `delta` (the better noise), `rho` or `mu` (Gaussian)."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None

    @property
    def is_pure(self) -> bool:
        """Whether an epsilon alone was said."""
        return self.epsilon is not None and not self.delta


def add_noise_to(statistic: Statistic, unit: Unit, price: Price) -> Measurement:
    """The statistic with noise at this price.

    Guarantee:
        That of `laplace`, `additive` or `gaussian`.
    """
    if price.is_pure:
        return laplace(statistic, unit=unit, epsilon=price.epsilon)
    if price.epsilon is not None:
        return additive(statistic, unit=unit, epsilon=price.epsilon, delta=price.delta)
    return gaussian(statistic, unit=unit, rho=price.rho, mu=price.mu)


def noise_deviation(measurement: Measurement) -> float:
    """The standard deviation of the noise on each coordinate, in steps."""
    return float(getattr(measurement.error, "standard_deviation"))  # noqa: B009  (errors of sums have it)


def pay_from(account: Account | None, measurement: Measurement, data: object, key: str | None) -> Release:
    """Pay, then ask; nothing is read where the account refuses."""
    if not isinstance(account, Account):
        raise InvalidParameter("models.who_pays", parameter="account", spent="nothing")
    with account.open(measurement, key=key) as run:
        return run.step(data)


def pay_for_table(
    account: Account | None, measurement: Measurement, look: Callable[[], object], *, remote: bool, key: str | None
) -> Release:
    """Let the engine analyze the statement without reading a row, pay, then ask."""
    if not isinstance(account, Account):
        raise InvalidParameter("models.who_pays", parameter="account", spent="nothing")
    key = f"model-{secrets.token_hex(8)}" if key is None and remote else key
    if key is None or not account.holds(key):
        with look_only():
            look()
    return pay_from(account, measurement, None, key)
