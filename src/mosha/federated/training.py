"""The rounds of a federated training: paid for before the first, told one by one, made again after a crash."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mosha import accounting
from mosha.accounting import Odometer
from mosha.core.account import Account, Run
from mosha.core.errors import HorizonExceeded, InvalidParameter, SourceUnavailable, StepGivenUp
from mosha.core.event import Event
from mosha.core.language import Language, say
from mosha.core.release import Receipt, Release
from mosha.core.showing import Card, Shown, write_number
from mosha.federated.federation import Ask, Federation
from mosha.federated.noise_secret import load_secret
from mosha.federated.optimizer import Floats
from mosha.federated.picture import accuracy_against_epsilon
from mosha.federated.plans.plan import FederatedPlan, first_weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["History", "Round", "Spending", "train"]


@dataclass(frozen=True)
class Round:
    """One round that is over: public, like everything that is computed from its answer.

    `epsilon` is what all rounds so far cost at the plan's delta (None where the plan has none); `metrics` is what
    `evaluate` made of the new weights.

    `number` counts from 1; `weights` are the model after it, `clip` is the length to which updates were cut, `receipt`
    says who paid.

    >>> import numpy as np
    >>> Round(number=1, weights=np.zeros(2), clip=1.0, epsilon=0.5, receipt=None).epsilon
    0.5
    """

    number: int
    weights: NDArray[np.float64] = field(repr=False)
    clip: float
    epsilon: float | None
    receipt: Receipt = field(repr=False)
    metrics: Any = None


@dataclass(repr=False)
class History(Shown):
    """All `rounds` of a training, for tables and pictures, where it is called `name`.

    >>> History().rounds
    []
    """

    rounds: list[Round] = field(default_factory=list)
    name: str = "federated"

    def __repr__(self) -> str:
        return f"History({self.name}, {len(self.rounds)} rounds)"

    def make_card(self) -> Card:
        """Clip, epsilon and metrics of each round."""
        heads = [say("federated.shown_round"), say("mechanisms.shown_clip"), "epsilon", say("federated.shown_metrics")]
        lines = [
            [
                f"{r.number:,}",
                f"{r.clip:.4g}",
                "" if r.epsilon is None else f"{r.epsilon:.3f}",
                _write_metrics(r.metrics),
            ]
            for r in self.rounds
        ]
        return Card(title=self.name, heads=heads, lines=lines, numbers=0)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The last weights."""
        if not self.rounds:
            raise InvalidParameter("federated.no_round_yet")
        return self.rounds[-1].weights

    def table(self) -> list[dict[str, Any]]:
        """Number, clip, epsilon and metrics of each round."""
        return [{"round": r.number, "clip": r.clip, "epsilon": r.epsilon, "metrics": r.metrics} for r in self.rounds]

    def plot(
        self, *, ax: object | None = None, title: str | None = None, unit: str | None = None,
        lang: Language | None = None,
    ) -> Figure:  # fmt: skip
        """Metrics against epsilon (needs the extra `plot`).

        Args:
            ax: axes of matplotlib to draw on.
            title: what stands above.
            unit: what the metric is counted in.
            lang: "en" or "zh"; the chosen language where it is left out.
        """
        return accuracy_against_epsilon([self], ax=ax, title=title, unit=unit, lang=lang)


def _write_metrics(metrics: object) -> str:
    """What an evaluation on public data said, in a few words."""
    return "" if metrics is None else write_number(metrics) if isinstance(metrics, float) else str(metrics)[:80]


def train(
    plan: FederatedPlan,
    federation: Federation,
    initial: NDArray[np.generic],
    *,
    account: Account,
    key: str | None = None,
    config: object = None,
    evaluate: Callable[[NDArray[np.float64]], object] | None = None,
    retries: int = 0,
    secret: str | os.PathLike[str] | None = None,
) -> Iterator[Round]:
    """Pay for all rounds of `plan`, then run them one by one.

    Guarantee:
        The whole price is charged, or refused, before any client is asked. Each round is a step of that one payment.
        With a `key`, a training that was killed goes on after its last round in the next call with the same plan,
        the same initial weights and the same key, and pays nothing more: earlier answers are read from the ledger, and
        weights are a function of them.

    Args:
        plan: what to run; its noise must have been chosen.
        federation: the clients.
        initial: the weights to begin with, flat. Public.
        account: who pays; its unit is the plan's.
        key: makes the payment idempotent, and the training resumable.
        config: sent to clients with each ask.
        evaluate: called with the weights after each round; free, as long as it reads public data alone.
        retries: how often a round is asked for again when clients could not be reached (SourceUnavailable); free.
        secret: the path of a file that is made where there is none, for correlated noise (bands, buffers) under a key:
            the noise of rounds that were answered is made again from it. Keep it as you keep the data: whoever has it
            and the ledger can take the noise away.

    >>> import numpy as np
    >>> import mosha
    >>> from mosha.federated import Block, ServerSide
    >>> class Listed:
    ...     def clients(self):
    ...         return range(50)
    ...     def updates(self, chosen, ask):
    ...         yield Block(list(chosen), np.ones((len(chosen), 3)))
    >>> plan = ServerSide(rounds=2, clients=50, rate=0.5, clip=1.0).calibrate(epsilon=5, delta=1e-5)
    >>> account = mosha.Ledger.memory().account("phones", unit=mosha.Client(), epsilon=5, delta=1e-5)
    >>> [done.number for done in train(plan, Listed(), np.zeros(3), account=account)]
    [1, 2]
    """
    weights = first_weights(initial)
    _check(plan, federation, account, evaluate, retries)
    if getattr(federation, "coordinates", weights.size) != weights.size:
        raise InvalidParameter("federated.initial_of_other_size", parameter="initial", spent="nothing")
    about = hashlib.sha256(weights.tobytes()).hexdigest()
    measurement = plan.measurement(weights.size, about=about, **_secret_option(plan, key, secret))
    run = account.open(measurement, key=key)
    asking = _Asking(run, federation, config, retries)
    return _rounds(plan, asking, weights, evaluate)


def _check(plan: object, federation: object, account: object, evaluate: object, retries: object) -> None:
    """Refuse what could not be run, before anything is paid."""
    if not all(hasattr(plan, part) for part in ("rounds", "outer", "event_after", "measurement", "decoder")):
        raise InvalidParameter("federated.not_a_plan", parameter="plan", spent="nothing")
    asks = any(callable(getattr(federation, do, None)) for do in ("updates", "secure_sum"))
    if not (callable(getattr(federation, "clients", None)) and asks):
        raise InvalidParameter("federated.not_a_federation", parameter="federation", spent="nothing")
    if isinstance(plan, FederatedPlan) and not plan.takes(federation):
        raise InvalidParameter("federated.sums_of_examples_needed", parameter="federation", spent="nothing")
    if not isinstance(account, Account):
        raise InvalidParameter("federated.not_an_account", parameter="account", spent="nothing")
    if evaluate is not None and not callable(evaluate):
        raise InvalidParameter("federated.evaluate_not_a_function", parameter="evaluate", spent="nothing")
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InvalidParameter("federated.retries_not_whole", parameter="retries", spent="nothing")


def _secret_option(plan: FederatedPlan, key: str | None, secret: str | os.PathLike[str] | None) -> dict[str, bytes]:
    """The secret of correlated noise, where a run that is killed shall go on."""
    correlated = getattr(plan, "is_correlated", False)
    if secret is not None and not correlated:
        raise InvalidParameter("federated.secret_without_correlation", parameter="secret", spent="nothing")
    if correlated and key is not None and secret is None:
        raise InvalidParameter("federated.key_without_secret", parameter="secret", spent="nothing")
    return {} if secret is None else {"secret": load_secret(secret)}


class _Asking:
    """A run that is stepped through, with retries where nobody could be reached."""

    def __init__(self, run: Run, federation: Federation, config: object, retries: int) -> None:
        self.run, self.federation, self.config, self.retries = run, federation, config, retries

    def step(self, number: int, weights: Floats) -> Release:
        retries = self.retries
        while True:
            try:
                return self.run.step(self.federation, Ask(number, weights, self.config))
            except StepGivenUp:  # lost twice by processes that stopped: the next step takes its place
                continue
            except SourceUnavailable:
                if retries == 0:
                    raise
                retries -= 1


def _rounds(plan: FederatedPlan, asking: _Asking, weights: Floats, evaluate: Any) -> Iterator[Round]:
    memory = plan.outer.begin(weights.size)
    decode, spending = plan.decoder(), Spending(plan)
    for number in range(1, plan.rounds + 1):
        try:
            release = asking.step(number, weights)
        except HorizonExceeded:  # steps that failed were paid for, and cannot be taken again
            break
        weights, memory = plan.outer.advance(weights, decode(release.value), memory)
        metrics = None if evaluate is None else evaluate(weights)
        clip = float(release.value["clip"])
        yield Round(number, weights, clip, spending.after(release.step), release.receipt, metrics)
    asking.run.close()


class Spending:
    """What the rounds so far cost at the plan's delta, in about a millisecond a round; never more than all of them."""

    def __init__(self, plan: FederatedPlan) -> None:
        self._plan, self._odometer = plan, Odometer(quick=True)
        self._counted: Counter[Event] = Counter()
        self._whole: float | None = None

    def after(self, rounds: int) -> float | None:
        """Epsilon after so many rounds; None where the plan names no delta."""
        if self._plan.delta is None:
            return None
        if self._plan.delta == 0:
            return accounting.epsilon(self._plan.event_after(rounds), 0.0)
        for event, count in self._plan.event_after(rounds).parts():
            if (more := count - self._counted[event]) > 0:
                self._odometer.add(event, more)
                self._counted[event] = count
        if self._whole is None:
            self._whole = accounting.epsilon(self._plan.event_after(self._plan.rounds), self._plan.delta)
        return min(self._odometer.epsilon(self._plan.delta), self._whole)
