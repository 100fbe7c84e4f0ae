"""A stream as a running service: it survives a crash, never answers a step in two ways, and pays once.

    serve(account, stream, name="feeder-7", state="feeder-7.state") -> Service

Noise is drawn anew whenever a state is taken up again, the state is written before an output leaves, the ledger notes
each step.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mosha.core.account import Account
from mosha.core.errors import AlreadyReleased, HorizonExceeded, InvalidParameter, StateRefused
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng, StatePolicy
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.release import Release
from mosha.exact.bounding import to_array
from mosha.ledger.paying.codec import decode, encode
from mosha.noise import KeyedRandom
from mosha.streams.batches import Batches, read_columns
from mosha.streams.noise.exact_toeplitz import LiftedState, LiftedToeplitz
from mosha.streams.noise.tree import TreeState
from mosha.streams.plan import Plan, StreamState
from mosha.streams.service.checkpoint import Checkpoint
from mosha.streams.service.state_text import from_plain, to_plain
from mosha.streams.stream import Stream, new_tape

__all__ = ["Service", "serve"]

_PARTS = {"name", "question", "charter", "time", "state", "digest", "answer"}
_PENDING = object()  # stands for the data of a step whose answer is in the checkpoint already


@dataclass(frozen=True)
class _Held:
    number: int


class _Durable:
    """The measurement's state on disk, one step at a time."""

    def __init__(self, measurement: Measurement, checkpoint: Checkpoint, *, moved: bool) -> None:
        self.measurement, self._checkpoint = measurement, checkpoint
        found = checkpoint.load()
        question = measurement.question
        if found is not None and not found.keys() >= _PARTS:
            raise StateRefused("streams.state_of_another_version", spent="nothing")
        if found is not None and (found["question"], found["name"]) != (question, measurement.name):
            raise StateRefused("streams.state_of_other_parameters", spent="nothing")
        self.charter: str = secrets.token_hex(16) if found is None else found["charter"]
        self.time: int = 0 if found is None else found["time"]
        # a release has one step or several; where the state does not say, it was written when each had one
        self.releases: int = 0 if found is None else found.get("releases", self.time)
        self.first: int = 0 if found is None else found.get("first", self.time)  # the first step of the last one
        self.state: Any = measurement.init() if found is None else from_plain(found["state"])
        self.digest: str = "" if found is None else found["digest"]
        self.answer: Any = None if found is None else decode(found["answer"])
        self._tape: Any = None
        self._seed: str | None = None if found is None else found.get("seed")  # of the noise up to now
        self._keyed = found is not None and "seed" not in found  # by a version whose noise could be made again
        self.payment = ""  # the entry of the ledger that pays
        self._check_home(found, moved=moved)
        if found is None:
            self._save({"time": 0, "releases": 0, "first": 0}, self.state, "", None)

    def _check_home(self, found: dict[str, object] | None, *, moved: bool) -> None:
        """Refuse a copy of a state whose noise will be used again: two copies would publish with the same noise."""
        if found is None or moved or found.get("home") in (None, self._checkpoint.home):
            return
        if isinstance(getattr(self.state, "inner", None), TreeState):
            raise StateRefused("streams.state_was_copied", stream=self.measurement.name, spent="nothing")

    def holds(self, answer: object) -> bool:
        """Whether this is the last answer that the state knows of."""
        return repr(encode(answer)) == repr(encode(self.answer))

    def _save(self, numbers: dict[str, int], state: object, digest: str, answer: object) -> None:
        content: dict[str, Any] = {
            "name": self.measurement.name,
            "question": self.measurement.question,
            "charter": self.charter,
            "seed": self._seed,
            "home": self._checkpoint.home,
        }
        content |= numbers | {"state": to_plain(state), "digest": digest, "answer": encode(answer)}
        self._checkpoint.save(content)

    def digest_of(self, data: object) -> str:
        """A keyed digest of a step's data, to tell the same data from other data."""
        return hmac.new(self._checkpoint.digest_key, _describe_data(data).encode(), "sha256").hexdigest()

    def _past_source(self, block: int) -> Rng:
        """The noise of a block that an earlier process drew."""
        if self._keyed:
            return KeyedRandom(self._checkpoint.noise_key, self.charter, self.payment, "block", block)
        return KeyedRandom(bytes.fromhex(self._seed or ""), "block", block)

    def _attach_tape(self, state: StreamState, plan: Plan, rng: Rng) -> StreamState:
        """The state with noise ahead of it: drawn anew by each process, so that a clone has noise of its own.

        What the past of the noise still has to say is brought into the state first.
        """
        if self._tape is None:
            inner = state.inner
            if isinstance(inner, LiftedState) and isinstance(plan.mechanism, LiftedToeplitz) and inner.time:
                inner = plan.mechanism.settle(inner, new_tape(plan, self._past_source))
            seed = rng.bytes(32)
            self._tape = new_tape(plan, lambda block: KeyedRandom(seed, "block", block))
            self._seed, self._keyed = seed.hex(), False
            state = replace(state, inner=inner)
        return replace(state, tape=self._tape)

    def step(self, held: _Held, data: object, ask: object, rng: Rng) -> tuple[Any, _Held]:
        """A release for the first time: compute, write ahead, answer. The last one again: the answer it had."""
        number = held.number + 1
        if number == self.releases and (data is _PENDING or self.digest_of(data) == self.digest):
            return self.answer, _Held(number)
        if number != self.releases + 1 or data is _PENDING:
            raise StateRefused("streams.step_out_of_order")
        state, digest, first = self.state, self.digest_of(data), self.time + 1
        if isinstance(self.measurement, Stream) and isinstance(state, StreamState):
            self.state = state = self._attach_tape(state, self.measurement.plan, rng)
        answer, state = self.measurement.step(state, data, ask, rng)
        time = state.time if isinstance(state, StreamState) else first
        self._save({"time": time, "releases": number, "first": first}, state, digest, answer)
        self.time, self.releases, self.first = time, number, first
        self.state, self.digest, self.answer = state, digest, answer
        return answer, _Held(number)

    def _count_steps(self, held: _Held) -> int:
        known = {self.releases: self.time, self.releases - 1: self.first - 1}  # of earlier ones: a step each at least
        return known.get(held.number, held.number)

    def as_measurement(self, name: str) -> Measurement:
        made = self.measurement
        return Measurement(
            unit=made.unit,
            event=made.event,
            step=self.step,
            init=lambda: _Held(0),
            horizon=made.horizon,
            state=StatePolicy(
                resume=lambda held, _: _Held(held.number + 1),
                replays=True,
                passed=self._count_steps,
                covers=made.state.covers,
            ),
            error=made.error,
            draw=made.draw,
            name=made.name,
            delta=made.delta,
            question=fingerprint(made.question, made.unit, "service", name, self.charter),
        )


class Service:
    """A stream that is running: `step` publishes; after a crash, `serve` again goes on where it stopped.

    Made by `serve`: `account`, `measurement`, `name`, `checkpoint` and whether it was `moved`. Methods take the `data`
    of one step, or `batches` of several.

    Guarantee:
        Each step has one answer: it leaves after the checkpoint and the ledger's row are on disk, and the ledger takes
        one row a step, from its last claimant only. A step that was computed and not noted is noted from the
        checkpoint, not computed again. What was computed and never left is lost with its noise: a process that takes up
        the state draws later noise anew, so that a clone of state and ledger has noise of its own and shows at most
        what a second payment would buy (`service.md`; trees under Laplace noise go on with nodes that are in use, and
        a copy of their files is refused where it can be told from the original). A state older than the ledger's last
        row, or with another answer in it, is refused, as is other data for the last step; a second process on
        one file finds the lock, and a copy of the file loses the claim to whoever steps first.

    >>> import tempfile
    >>> import mosha
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Reading(), epsilon=1)
    >>> stream = mosha.streams.counter(unit=mosha.Reading(), horizon=10, epsilon=1)
    >>> service = serve(account, stream, name="visits", state=Path(tempfile.mkdtemp()) / "visits.state")
    >>> service.taken
    0
    >>> service.close()
    """

    def __init__(
        self, account: Account, measurement: Measurement, name: str, checkpoint: Checkpoint, *, moved: bool = False
    ) -> None:
        self.name, self._checkpoint = name, checkpoint
        self._durable = _Durable(measurement, checkpoint, moved=moved)
        self.stream = measurement
        self._run = account.open(self._durable.as_measurement(name), key=f"stream {name}")
        self._durable.payment = self._run.receipt.entry
        self.last: Release | None = None
        self._noted = 0  # how many releases of the state are in the ledger
        self._behind = False  # the ledger has one that the state does not know
        found = self._settle()
        if found is not None and not self._durable.holds(found.value):
            raise self._refuse_overtaken()

    @property
    def taken(self) -> int:
        """How many steps have been published; one that waits for the ledger is not among them."""
        return self._durable.time if self._noted == self._durable.releases else self._durable.first - 1

    @property
    def remaining(self) -> int:
        return self._run.remaining

    @property
    def receipt(self) -> Any:
        return self._run.receipt

    def _settle(self) -> Release | None:
        """Read what state and ledger both have, and note what the state alone has; the last of it."""
        found = None
        while self._noted < self._durable.releases:
            release = self._run.step(_PENDING)
            self._noted += 1
            self.last = found = self._number(release)
        return found

    def _refuse_overtaken(self) -> StateRefused:
        self._behind = True
        return StateRefused("streams.state_behind", stream=self.name)

    def steps(self, batches: Any, *, number: int | None = None) -> Release:
        """Publish the next steps at once: an array with the numbers that single steps give, one for each batch.

        One write of the state and one row of the ledger for all of them; `release.step` is the last one. `number` is
        that of the first, as for `step`.
        """
        many = batches if isinstance(batches, Batches) else Batches(batches)
        if not isinstance(self.stream, Stream):
            raise InvalidParameter("streams.single_steps_only")
        return self.step(many, number=number)

    def step(self, data: object, *, number: int | None = None) -> Release:
        """Publish the next step. With `number`, the last one may be asked for again with the same data.

        After `LedgerUnavailable` the answer of a step waits to be noted: the same data are given that answer, other
        data are the next step's.
        """
        if self._behind:
            raise self._refuse_overtaken()
        waited = self._settle()
        if waited is not None and number is None and self._durable.digest_of(data) == self._durable.digest:
            return waited
        if number is not None and number != self.taken + 1:
            return self._repeat_last(data, number)
        if getattr(self._durable.state, "left", 1) == 0:
            raise HorizonExceeded("streams.service_alarms_used_up", stream=self.name)
        release = self._run.step(data)
        if self._durable.releases == self._noted:
            raise self._refuse_overtaken()
        self._noted += 1
        self.last = self._number(release)
        return self.last

    def _number(self, release: Release) -> Release:
        """The last release with the number of its step, and with the error bar of that step."""
        return replace(release, step=self._durable.time, _error=self.stream.find_error(self._durable.state))

    def _repeat_last(self, data: object, number: int) -> Release:
        if number == self._durable.first and self.last is not None:
            if self._durable.digest_of(data) == self._durable.digest:
                return self.last
            raise StateRefused("streams.step_had_other_data", step=number)
        if number > self.taken + 1:
            raise InvalidParameter("streams.wrong_step_number", parameter="number", next=self.taken + 1, number=number)
        raise AlreadyReleased("streams.published_long_ago", step=number)

    def close(self) -> None:
        """Stop; the stream can be served again."""
        self._checkpoint.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@explain_wrong_calls
def serve(
    account: Account,
    measurement: Measurement,
    *,
    name: str,
    state: str | Path,
    secret: bytes | None = None,
    moved: bool = False,
) -> Service:
    """Open a stream as a service, or go on with it after a stop or a crash; it is paid for once.

    Args:
        account: who pays.
        measurement: a stream or an alarm of this module.
        name: the stream's name: the ledger finds its payment by it.
        state: the file that keeps the state, sealed.
        secret: at least 32 bytes to seal it with; by default a key file beside it.
        moved: the files were copied from elsewhere, and the original will never be served again.

    >>> import tempfile
    >>> import mosha
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Reading(), epsilon=1)
    >>> stream = mosha.streams.counter(unit=mosha.Reading(), horizon=10, epsilon=1)
    >>> with serve(account, stream, name="visits", state=Path(tempfile.mkdtemp()) / "visits.state") as service:
    ...     release = service.step([1, 0, 1])
    >>> service.taken
    1
    """
    if not isinstance(name, str) or not name:
        raise InvalidParameter("streams.no_service_name", parameter="name")
    checkpoint = Checkpoint(state, name, secret)
    try:
        return Service(account, measurement, name, checkpoint, moved=moved)
    except BaseException:
        checkpoint.close()
        raise


def _describe_data(data: object) -> str:
    """Data as text that is the same for the same rows."""
    if isinstance(data, Batches):
        if data.rows is None:
            return repr([_describe_data(batch) for batch in data.list_batches()])
        columns = data.rows if isinstance(data.rows, dict) else {"": data.rows}
        return repr(
            [data.count, _describe_column(data.offsets), [(name, _describe_column(columns[name])) for name in columns]]
        )
    named = read_columns(data)
    if named is not None:
        return repr([(name, _describe_entries(column)) for name, column in named.items()])
    if hasattr(data, "keys") and hasattr(data, "__getitem__"):
        return repr([(str(name), _describe_entries(to_array(data[name]))) for name in data.keys()])  # noqa: SIM118
    if isinstance(data, tuple):
        return repr([_describe_data(part) for part in data])
    return _describe_entries(to_array(data))


def _describe_column(column: NDArray[np.generic]) -> str:
    """A column as text: numbers by their bytes, which is quick, anything else by its words."""
    if column.dtype.kind == "O":
        return _describe_entries(column)
    return f"{column.dtype.str} {column.shape} {hashlib.sha256(np.ascontiguousarray(column).tobytes()).hexdigest()}"


def _describe_entries(column: NDArray[np.generic]) -> str:
    """The entries of a column as text; one that cannot be told is known by its type, and stops nobody."""
    entries = column.tolist()
    try:
        return repr(entries)
    except Exception:  # noqa: BLE001  (what a row does when it is read must not be heard)
        return repr([_describe_entry(entry) for entry in entries])


def _describe_entry(entry: object) -> str:
    try:
        return repr(entry)
    except Exception:  # noqa: BLE001
        return type(entry).__name__
