"""A federation inside one process: local training of all drawn clients at once, by `torch.func`, or one by one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter, MissingExtra
from mosha.core.language import phrase
from mosha.core.names.calls import renamed_argument
from mosha.core.number import non_negative, positive
from mosha.federated.federation import Ask, Block
from mosha.federated.plans.plan import check_count

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["Simulation"]

_AT_ONCE, _NUMBERS_AT_ONCE = 256, 1 << 22  # clients of one block, and weights of all of them: more gain nothing
_RECORDINGS = 16  # of how many sizes of blocks


@renamed_argument(vectorised="vectorized")
class Simulation:
    """Clients with their data in memory: a `Federation` for research.

    Each drawn client takes `local_steps` steps of plain SGD from the weights it is sent, on batches of its own
    examples in an order that `seed`, round and client decide, and sends back the difference. With `proximal` each step
    pulls back towards the weights that were sent (FedProx).

    All clients of a block are trained together (vmap); a model that vmap cannot trace is trained client by client,
    which gives the same numbers to float tolerance. `vectorized` says which: "auto" finds out, and records what is
    done to blocks of one size, so that a loss that changes from round to round needs `vectorized=True`.

    Methods take the `model`, its `loss`, the `batch` and `rate` of local steps, the `weights` that are sent, the
    `chosen` clients, and what to `ask` them.

    Units:
        `examples` is a pair of tensors (inputs, targets), each with one row for each client and within it one for
        each example; `sizes` says how many of them are real where clients own different numbers.

    >>> import torch
    >>> examples = (torch.zeros(5, 4, 2), torch.zeros(5, 4, dtype=torch.long))  # 5 clients with 4 examples each
    >>> loss = torch.nn.functional.cross_entropy
    >>> phones = Simulation(torch.nn.Linear(2, 2), loss, examples, local_steps=1, batch=2, rate=0.1)
    >>> len(phones.clients()), phones.initial().size
    (5, 6)
    """

    def __init__(
        self,
        model: torch.nn.Module,
        loss: Callable[[Tensor, Tensor], Tensor],
        examples: tuple[Tensor, Tensor],
        *,
        local_steps: int,
        batch: int,
        rate: float,
        sizes: Sequence[int] | None = None,
        proximal: float = 0.0,
        seed: int = 0,
        vectorized: bool | Literal["auto"] = "auto",
    ) -> None:
        try:
            import torch  # noqa: PLC0415  (an extra, loaded where it is used)
        except ImportError:
            raise MissingExtra("federated", needed_for=phrase("federated.simulation")) from None
        self._torch = torch
        self.inputs, self.targets = _check_parts(torch, model, loss, examples)
        self.local_steps = check_count("local_steps", local_steps, at_most=1 << 30)
        self.batch = check_count("batch", batch, at_most=1 << 30)
        self.rate, self.proximal = positive("rate", rate), non_negative("proximal", proximal)
        self.sizes = np.full(len(self.inputs), self.inputs.shape[1]) if sizes is None else np.asarray(sizes)
        whole = self.sizes.shape == (len(self.inputs),) and self.sizes.dtype.kind in "iu"
        if not whole or self.sizes.min() < 1 or self.sizes.max() > self.inputs.shape[1]:
            raise InvalidParameter("federated.sizes_wrong", parameter="sizes")
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise InvalidParameter("federated.seed_not_whole", parameter="seed")
        if not (vectorized in (True, False) or vectorized == "auto"):
            raise InvalidParameter("federated.vectorised_option", parameter="vectorized")
        self.model, self.loss, self.seed = model, loss, seed
        self._shapes = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
        self._buffers = dict(model.named_buffers())
        self._vectorized, self._playback = vectorized, vectorized == "auto"
        self._recorded: dict[tuple[int, bool], tuple[Any, Any]] = {}
        self._seen: set[tuple[int, bool]] = set()

    @property
    def coordinates(self) -> int:
        """How many weights are trained; buffers are not: they stay as they were."""
        return sum(int(np.prod(shape)) for shape in self._shapes.values())

    def initial(self) -> NDArray[np.float64]:
        """The weights of the model as it was given, flat."""
        parts = [weight.detach().reshape(-1) for weight in self.model.parameters()]
        flat: NDArray[np.float64] = self._torch.cat(parts).numpy().astype(np.float64)
        return flat

    def load(self, weights: NDArray[np.generic]) -> torch.nn.Module:
        """The model with these weights."""
        flat = np.asarray(weights, np.float32)
        if flat.shape != (self.coordinates,):
            raise InvalidParameter("federated.weights_of_other_size", parameter="weights", size=self.coordinates)
        named = self._unflat(self._torch.as_tensor(flat))
        with self._torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(named[name])
        return self.model

    def clients(self) -> Sequence[Hashable]:
        """All clients, by number."""
        return range(len(self.inputs))

    def updates(self, chosen: Sequence[Any], ask: Ask) -> Iterator[Block]:
        """What each of the `chosen` clients learns from the weights of `ask`."""
        if np.shape(ask.weights) != (self.coordinates,):
            raise InvalidParameter("federated.weights_of_other_size", parameter="weights", size=self.coordinates)
        sent = self._torch.as_tensor(np.asarray(ask.weights, np.float32))
        most = max(1, min(_AT_ONCE, _NUMBERS_AT_ONCE // self.coordinates))
        size = -(-len(chosen) // max(1, -(-len(chosen) // most))) or 1  # blocks of one size, where that can be
        for start in range(0, len(chosen), size):
            part = list(chosen[start : start + size])
            yield Block(part, self._train(part, sent, ask.number))

    def mean(self, chosen: Sequence[object], ask: Ask) -> NDArray[np.float64]:
        """The plain mean of all updates: what a round without privacy gives. For comparison on public data."""
        total = np.zeros(self.coordinates)
        for block in self.updates(chosen, ask):
            total += block.updates.sum(axis=0)
        return total / max(len(chosen), 1)

    def _train(self, part: list[int], sent: Tensor, number: int) -> NDArray[np.float32]:
        index = self._torch.as_tensor(self._orders(np.asarray(part), number))
        rows = self._torch.as_tensor(part)[:, None]
        if self._vectorized == "auto":
            self._vectorized = self._traces(rows, index, sent)
        changed = self._together(rows, index, sent) if self._vectorized else self._one_by_one(rows, index, sent)
        change: NDArray[np.float32] = changed.numpy()
        return change

    def _orders(self, part: NDArray[np.int64], number: int) -> NDArray[np.int64]:
        """Which examples each client takes in which step: shuffled passes over its own, whoever else takes part."""
        wanted = self.local_steps * self.batch
        taken = np.empty((len(part), wanted), np.int64)
        for size in np.unique(self.sizes[part]).tolist():
            alike = np.flatnonzero(self.sizes[part] == size)
            for start in range(0, wanted, size):
                passed = _orders(size, self.seed, number, start, part[alike])
                taken[alike, start : start + size] = passed[:, : wanted - start]
        return taken.reshape(len(part), self.local_steps, self.batch)

    def _traces(self, rows: Tensor, index: Tensor, sent: Tensor) -> bool:
        try:
            self._together(rows[:1], index[:1, :2], sent)
        except (RuntimeError, NotImplementedError, ValueError):
            return False
        return True

    def _together(self, rows: Tensor, index: Tensor, sent: Tensor) -> Tensor:
        torch, count, start = self._torch, len(rows), self._unflat(sent)
        places = (index + rows[:, :, None] * self.inputs.shape[1]).transpose(0, 1).reshape(index.shape[1], -1)
        inputs, targets = (part.flatten(0, 1) for part in (self.inputs, self.targets))

        def batch(step: int) -> tuple[Tensor, Tensor]:
            x, y = inputs.index_select(0, places[step]), targets.index_select(0, places[step])
            return x.view(count, self.batch, *x.shape[1:]), y.view(count, self.batch, *y.shape[1:])

        first, later = self._slopes(count, start, batch(0))
        changes = first(start, *batch(0))  # all stand at the same weights yet
        weights = {name: torch.sub(start[name], change, alpha=self.rate) for name, change in changes.items()}
        for step in range(1, index.shape[1]):
            for name, change in later(weights, *batch(step)).items():
                pulled = change + self.proximal * (weights[name] - start[name]) if self.proximal else change
                weights[name].sub_(pulled, alpha=self.rate)
        moved: Tensor = torch.empty(count, len(sent))
        place = 0
        for name in self._shapes:  # one pass: neither the weights nor their differences are copied again
            before = start[name].reshape(-1)
            torch.sub(weights[name].reshape(count, -1), before, out=moved[:, place : place + len(before)])
            place += len(before)
        return moved

    def _slopes(self, count: int, start: dict[str, Tensor], batch: tuple[Tensor, Tensor]) -> tuple[Any, Any]:
        """Gradients of `count` clients at once: at weights that they share, and at weights of their own.

        The second time that a block has this size they are recorded, and from then on played back: the same operations
        without the cost of finding them out.
        """
        kind = count, self.model.training
        if kind in self._recorded:
            return self._recorded[kind]
        func = self._torch.func

        def local_loss(weights: dict[str, Tensor], inputs: Tensor, targets: Tensor) -> Tensor:
            return self.loss(func.functional_call(self.model, weights | self._buffers, (inputs,)), targets)

        how: dict[str, Any] = {"randomness": "different"}
        slope = func.grad(local_loss)
        plain = func.vmap(slope, in_dims=(None, 0, 0), **how), func.vmap(slope, **how)
        if self._playback and kind in self._seen and len(self._recorded) < _RECORDINGS:
            self._recorded[kind] = self._record(plain, start, count, batch)
            return self._recorded[kind]
        self._seen.add(kind)
        return plain

    def _record(
        self, plain: Any, start: dict[str, Tensor], count: int, batch: tuple[Tensor, Tensor]
    ) -> tuple[Any, Any]:
        from torch.fx.experimental.proxy_tensor import make_fx  # noqa: PLC0415  (slow to import)

        own = {name: weight.expand(count, *weight.shape).clone() for name, weight in start.items()}
        try:
            return make_fx(plain[0])(start, *batch), make_fx(plain[1])(own, *batch)
        except Exception:  # noqa: BLE001  (whatever cannot be recorded is run as it is)
            return plain[0], plain[1]

    def _one_by_one(self, rows: Tensor, index: Tensor, sent: Tensor) -> Tensor:
        results = []
        parameters = dict(self.model.named_parameters())
        for row, picks in zip(rows[:, 0], index, strict=True):
            self._put(parameters, sent)
            for picked in picks:
                self.model.zero_grad(set_to_none=True)
                self.loss(self.model(self.inputs[row, picked]), self.targets[row, picked]).backward()  # type: ignore[no-untyped-call]
                self._descend(parameters, sent)
            results.append(self._torch.cat([p.detach().reshape(-1) for p in parameters.values()]))
        self._put(parameters, sent)
        change: Tensor = self._torch.stack(results) - sent
        return change

    def _put(self, parameters: dict[str, Any], flat: Tensor) -> None:
        with self._torch.no_grad():
            for name, value in self._unflat(flat).items():
                parameters[name].copy_(value)

    def _descend(self, parameters: dict[str, Any], sent: Tensor) -> None:
        with self._torch.no_grad():
            for name, start in self._unflat(sent).items():
                parameter = parameters[name]
                change = self._torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                if self.proximal:
                    change = change + self.proximal * (parameter - start)
                parameter.sub_(change, alpha=self.rate)

    def _unflat(self, flat: Tensor) -> dict[str, Tensor]:
        named, start = {}, 0
        for name, shape in self._shapes.items():
            size = int(np.prod(shape))
            named[name] = flat[start : start + size].reshape(shape)
            start += size
        return named


def _check_parts(torch: Any, model: Any, loss: object, examples: object) -> tuple[Tensor, Tensor]:
    """Inputs and targets, where they, the model and the loss are what they should be."""
    if not isinstance(model, torch.nn.Module) or next(model.parameters(), None) is None:
        raise InvalidParameter("federated.not_a_model", parameter="model")
    if not callable(loss):
        raise InvalidParameter("federated.loss_not_a_function", parameter="loss")
    pair: Any = examples if isinstance(examples, tuple | list) and len(examples) == 2 else (None, None)
    if not all(isinstance(part, torch.Tensor) and part.ndim >= 2 and part.numel() for part in pair):
        raise InvalidParameter("federated.examples_not_tensors", parameter="examples")
    inputs, targets = pair
    if inputs.shape[:2] != targets.shape[:2]:
        raise InvalidParameter("federated.examples_disagree", parameter="examples")
    return inputs, targets


def _orders(size: int, seed: int, number: int, start: int, clients: NDArray[np.int64]) -> NDArray[np.int64]:
    """One permutation of 0, ..., size - 1 for each client: the order of numbers that mix all arguments.

    For the order of local batches alone, which no guarantee rests on.
    """
    root = np.random.SeedSequence((abs(seed), number, start, size)).generate_state(1, np.uint64)
    with np.errstate(over="ignore"):
        mixed = root + clients.astype(np.uint64)[:, None] * np.uint64(0x9E3779B97F4A7C15)
        for odd in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(odd)
            mixed = mixed + np.arange(size, dtype=np.uint64) * np.uint64(0xD6E8FEB86659FD93)
        mixed ^= mixed >> np.uint64(32)
    return np.argsort(mixed, axis=1, kind="stable")
