"""Questions without training on Flower: the server asks and pays, each client answers with a masked, noisy value."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter, MissingExtra
from mosha.core.language import phrase
from mosha.core.number import positive, positive_integer
from mosha.core.release import Release
from mosha.federated.analytics import Analytics
from mosha.federated.plans.secure_plan import Opened
from mosha.federated.secure.keys import Ring
from mosha.noise import secure

try:
    from flwr.app import ArrayRecord, MessageType

    from mosha.federated.flower.masking import MaskedSteps
    from mosha.federated.flower.network import Network
    from mosha.federated.flower.records import ARRAYS, arrays_of, message_of, record_of
    from mosha.federated.flower.secure import opened_sum
except ImportError:
    raise MissingExtra("federated", needed_for=phrase("federated.on_flower")) from None

__all__ = ["flower_answer", "flower_ask"]


def flower_ask(
    question: Analytics,
    account: Account,
    grid: object,
    *,
    key: str | None = None,
    action: str | None = None,
    arrays: object = None,
    wait_for: int | None = None,
    patience: float = 600.0,
    timeout: float = 3600.0,
) -> Release:
    """Ask all connected nodes one question, inside a ServerApp, and open nothing but the noisy sum of their answers.

    Args:
        question: a histogram, mean or quantile; clients have a copy of their own (`flower_answer`).
        account: who pays, before the first message; its unit is Client().
        grid: Flower's.
        key: makes the payment idempotent: the same answer is given again, and nobody is asked.
        action: which of the app's query functions answers; the default one without it.
        arrays: a model that travels with the question, Flower's ArrayRecord: clients tell how it does on their data.
        wait_for: how many nodes to wait for; the clients that were planned with by default.
        patience: for how many seconds to wait for them.
        timeout: for how many seconds to wait for the replies to a message.

    Guarantee:
        That of `Analytics`: the server sees masked values and opens sums of at least `survivors` clients alone. Where
        too few answer (SourceUnavailable) nothing is opened and the price is handed back.

    >>> flower_ask("how many?", None, None)
    Traceback (most recent call last):
    mosha.core.errors.InvalidParameter: ... Nothing was spent.
    """
    if not isinstance(question, Analytics):
        raise InvalidParameter("federated.not_a_question", parameter="question", spent="nothing")
    if not isinstance(account, Account):
        raise InvalidParameter("federated.not_an_account", parameter="account", spent="nothing")
    wanted = question.clients if wait_for is None else positive_integer("wait_for", wait_for)
    if action is not None and not (isinstance(action, str) and action.isidentifier()):
        raise InvalidParameter("federated.action_not_a_name", parameter="action", spent="nothing")
    if not (arrays is None or isinstance(arrays, ArrayRecord)):
        raise InvalidParameter("federated.not_an_array_record", parameter="arrays", spent="nothing")
    kind = MessageType.QUERY if action is None else f"{MessageType.QUERY}.{action}"
    nodes = Network(grid, positive("timeout", timeout), kind)
    nodes.wait(wanted, positive("patience", patience))
    if len(nodes.clients()) > 2 * question.clients:
        raise InvalidParameter("federated.more_connected_than_planned", clients=question.clients, spent="nothing")
    with account.open(question.measurement(), key=key) as run:
        return run.step(_Asked(question, nodes, None if arrays is None else arrays_of(arrays)))


class _Asked:
    """A `SecureFederation` of nodes that answer one question."""

    def __init__(self, question: Analytics, nodes: Network, model: Mapping[str, NDArray[Any]] | None = None) -> None:
        self.question, self.nodes, self.model = question, nodes, model

    def clients(self) -> Sequence[Hashable]:
        return self.nodes.clients()

    def secure_sum(self, chosen: Sequence[Hashable], ask: object) -> Opened:
        del ask
        question, exchange = self.question, self.nodes.exchange
        return opened_sum(exchange, chosen, question.survivors, lambda m: question.session(m, secure()), self._content)

    def _content(self, config: Mapping[str, Any]) -> Any:
        return message_of(config) if self.model is None else record_of(self.model, config)


def flower_answer(
    question: Analytics, value: Callable[..., object], *, at_most: int = 1, takes_model: bool = False
) -> Callable[[Any, Any], Any]:
    """What a ClientApp answers queries with: `app.query()(flower_answer(question, value))`.

    Args:
        question: the client's own copy; a server that asks another one, or on other terms, is refused.
        value: gives this client's value from Flower's context. A value that cannot be had or read counts as none.
        at_most: how often a masked value may leave. It leaves again where a round could not be opened; each is opened
            once at most by a server that follows the protocol, and paid for once.
        takes_model: whether `value` is given the model that travels with the question too, as arrays by name:
            `value(context, arrays)`.

    Guarantee:
        What leaves is the client's value with its share of the noise, under masks; neither the value nor that it could
        not be had is told to anybody.

    >>> from mosha.federated import mean
    >>> question = mean(between=(0, 10), clients=100, survivors=60, epsilon=1, delta=1e-6)
    >>> callable(flower_answer(question, lambda context: 3.0))
    True
    """
    if not isinstance(question, Analytics):
        raise InvalidParameter("federated.not_a_question", parameter="question")
    if not callable(value):
        raise InvalidParameter("federated.value_not_a_function", parameter="value")
    steps = MaskedSteps(f"mosha-{question.question[:24]}", question.check, positive_integer("at_most", at_most))

    def answering(message: object, context: object) -> Any:
        def encode(label: bytes) -> Ring:
            del label
            given = (context, _model(message)) if takes_model else (context,)
            return question.encode(_value(value, *given), secure())

        return steps(message, context, encode)

    return answering


def _model(message: Any) -> dict[str, NDArray[Any]]:
    return arrays_of(message.content.array_records[ARRAYS]) if ARRAYS in message.content.array_records else {}


def _value(value: Callable[..., object], *given: object) -> Any:
    try:
        return value(*given)
    except Exception:  # noqa: BLE001  (that it failed, and how, stays on the client)
        return None
