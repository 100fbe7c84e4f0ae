"""The wrapping that users of Opacus know: model, optimiser and loader in, private ones out.

The loop stays the user's own:

    model, optimizer, loader = mosha.learning.private(model, optimizer, loader, plan=plan, account=account)
    for inputs, targets in loader:          # drawn as the plan says, in pieces of at most `physical` rows
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()                    # clips; after the last piece of a batch: pays, adds noise, updates
        optimizer.zero_grad()

Sharp edge: the loop sees private batches, and a loss that it prints is private too. `plan.train` shows neither.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader, default_collate

from mosha.core.account import Account, Run
from mosha.core.errors import InvalidParameter, RunClosed
from mosha.core.options import LossReduction
from mosha.core.unit import Person
from mosha.learning.batches import Sampler
from mosha.learning.checking.probe import Losses, check_buffers, fit_memory, probe
from mosha.learning.dropout_randomness import DropoutCoins
from mosha.learning.gradients.device import place_rows
from mosha.learning.gradients.engine import Engine
from mosha.learning.model_buffers import ModelBuffers
from mosha.learning.noisy_gradients import Gradients
from mosha.learning.plan import DPSGD
from mosha.learning.reading.layout import Call, Flat
from mosha.learning.reading.loading import Pieces, examples_of
from mosha.learning.training import Loss, check_optimizer, check_precision, make_losses
from mosha.learning.updates import Updates
from mosha.noise import secure

Ask = Callable[[nn.Module, Flat], Call]

__all__ = ["PrivateLoader", "PrivateOptimizer", "private"]


def _of_inside(name: str) -> Any:
    """An attribute that is the inner optimiser's own, for readers and for writers."""
    return property(
        lambda self: getattr(self.optimizer, name), lambda self, value: setattr(self.optimizer, name, value)
    )


class PrivateOptimizer(torch.optim.Optimizer):
    """An optimiser whose `step` clips what the last backward pass noted, and updates when a batch is complete.

    Groups, state and hooks are those of the optimiser inside, so that schedulers and whatever else takes an `Optimizer`
    work on either; hooks are called around an update, not around a piece of a batch.
    """

    is_private = True

    def __init__(self, optimizer: torch.optim.Optimizer, gradients: Gradients, run: Run, *, mean: bool) -> None:
        self.optimizer, self.run = optimizer, run
        self._gradients, self._updates, self._mean = gradients, Updates(gradients), mean
        self._state, gradients.reuse = gradients.first(), True
        self._sums = gradients.sums()
        self._kept = ModelBuffers(gradients.engine.model)
        self.last_piece = True
        self._noted, self._first = False, True  # whether layers noted something, and whether a batch begins
        self._counting = np.zeros(0, np.bool_)
        self._lock = threading.RLock()  # sums go where the answer before them was, until that was read

    param_groups, state, defaults = _of_inside("param_groups"), _of_inside("state"), _of_inside("defaults")
    state_dict, load_state_dict = _of_inside("state_dict"), _of_inside("load_state_dict")
    register_step_pre_hook = _of_inside("register_step_pre_hook")
    register_step_post_hook = _of_inside("register_step_post_hook")
    register_state_dict_pre_hook = _of_inside("register_state_dict_pre_hook")
    register_state_dict_post_hook = _of_inside("register_state_dict_post_hook")
    register_load_state_dict_pre_hook = _of_inside("register_load_state_dict_pre_hook")
    register_load_state_dict_post_hook = _of_inside("register_load_state_dict_post_hook")

    def add_param_group(self, param_group: dict[str, object]) -> None:
        """Refused: what is trained was settled when it was paid."""
        del param_group
        raise InvalidParameter("learning.groups_settled")

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self._gradients.engine.device

    def __repr__(self) -> str:
        return f"PrivateOptimizer({self.optimizer!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InvalidParameter("learning.optimizer_not_copied")

    def close(self) -> None:
        """Layers get their own forward pass back, unused steps are handed back where rules allow."""
        self._gradients.engine.detach()
        self.run.close()

    def discard(self) -> None:
        """A new batch is drawn: what an abandoned one left in the sum is forgotten."""
        with self._lock:
            self._sums.begin()
            self._noted, self._first = False, True
            self._gradients.engine.tape.recording, self._gradients.engine.tape.records = False, {}

    def begin(self, counting: NDArray[np.bool_]) -> None:
        """A piece is about to pass, of which these rows count: from now on layers note."""
        self._gradients.engine.tape.start(len(counting), 1)
        self._noted, self._counting = True, counting

    def zero_grad(self, set_to_none: bool = True) -> None:  # noqa: FBT001, FBT002  (PyTorch's own signature)
        """As for any optimiser."""
        self.optimizer.zero_grad(set_to_none=set_to_none)

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Clip and add up; after the last piece of a batch, pay, add noise and update.

        A closure is called once, before that, for the forward and the backward pass; what it gives is given back, and
        is as private as the loss of your loop.
        """
        found = None
        if closure is not None and not self._noted:
            raise RunClosed("learning.step_without_batch")
        if closure is not None:
            with torch.enable_grad():
                found = closure()
        with self._lock:
            self._step()
        return found

    def _step(self) -> None:
        if not self._noted:
            raise RunClosed("learning.step_without_batch")
        engine, self._noted = self._gradients.engine, False
        engine.tape.recording = False
        engine.check_unchanged()
        check_buffers(self._kept)
        if self._first and not self.last_piece:  # a loop that kept the last gradients could look there between pieces
            self._sums = self._gradients.sums(elsewhere=True)
        self._first = False
        try:
            with self._sums.batch() as land:
                rule = self._gradients.rule(self._state, self._counting)
                engine.clip_recorded(rule, scale=engine.tape.units if self._mean else 1, into=land)
            if self.last_piece:
                self._finish()
        except BaseException:
            self._sums.begin()  # zeros, where no answer was made of the sums
            raise

    def finish(self) -> None:
        """Pay for the step, add noise to the sum and update."""
        with self._lock:
            self._finish()

    def _finish(self) -> None:
        try:
            answer = self.run.step(self._sums).value
        except BaseException:
            self._sums.begin()  # zeros, where no answer was made of the sums
            self._sums = self._gradients.sums(elsewhere=True)  # an answer may wait for the ledger where the sums were
            raise
        self._updates.apply(answer)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class PrivateLoader:
    """Batches drawn as the plan says, cut into pieces; iterating once is one epoch, and the last one ends the plan."""

    def __init__(self, loader: DataLoader[object], plan: DPSGD, optimizer: PrivateOptimizer) -> None:
        self._pieces, self._plan = Pieces(loader), plan
        self._sampler = Sampler(plan, self._pieces.examples.units)
        self._optimizer, self.taken = optimizer, 0

    def __len__(self) -> int:
        return self._plan.bins

    def __iter__(self) -> Iterator[Any]:
        for _ in range(min(self._plan.bins, self._plan.steps - self.taken)):
            yield from self.next_batch()

    def has_more(self) -> bool:
        """Whether steps of the plan are left."""
        return self.taken < self._plan.steps

    def continue_batches(self) -> Iterable[Any]:
        """The same pieces for loops that stop after `len(loader)` of them, as Lightning's do.

        A batch that was cut into pieces goes on in the next epoch, where a loop over the loader would forget it.
        """
        return _Continued(self)

    def next_batch(self) -> Iterator[Any]:
        """The pieces of the next batch; of an empty one there is none, and its step is taken."""
        rng, before = secure(), self._optimizer.run.remaining
        pieces = list(self._sampler.physical(self._sampler.draw(self.taken, rng)))
        self.taken += 1
        mine, coins = self.taken, DropoutCoins(rng, self._optimizer.device)
        self._optimizer.discard()
        read = self._pieces.read([np.resize(units, self._plan.at_once) for units in pieces])
        for number, units in enumerate(pieces, start=1):
            self._optimizer.last_piece = number == len(pieces)
            with coins.fresh():
                batch, fit = next(read)  # filled up with rows that do not count
                self._optimizer.begin(fit & (np.arange(self._plan.at_once) < len(units)))
                yield batch
            if self.taken != mine:
                raise RunClosed("learning.batches_overlap")
        if not pieces:
            self._optimizer.finish()  # an empty batch is a step like any other: noise alone
        elif self._optimizer.run.remaining == before:
            raise RunClosed("learning.step_not_called", spent="nothing")


class _Continued:
    """As many pieces at a time as an epoch has batches; what is left of a batch comes first the next time."""

    def __init__(self, loader: PrivateLoader) -> None:
        self._loader = loader
        self._pieces: Iterator[Any] = iter(())

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        for _ in range(len(self)):
            piece = next(self._pieces, None)
            while piece is None and self._loader.has_more():
                self._pieces = self._loader.next_batch()
                piece = next(self._pieces, None)
            if piece is None:
                return
            yield piece


def private(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: DataLoader[object] | Iterable[object],
    *,
    plan: DPSGD,
    account: Account,
    reduction: LossReduction = "mean",
    forward: Callable[[nn.Module, object], object] | None = None,
    loss: Loss | None = None,
    rows_collated_apart: bool = False,
) -> tuple[nn.Module, PrivateOptimizer, PrivateLoader]:
    """Model, optimiser and loader in, private ones out; `reduction` is what the loss does over a batch.

    `forward(model, batch)` says how your loop calls the model, for a look at it with made-up rows before paying
    (`probe.py`); as it stands, `model(*batch[:-1])`. `loss(output, target)` is what your loop takes the mean of, one
    number an example: given here, it is looked at as well, and refused where it mixes examples.
    `rows_collated_apart=True` declares that the loader's own collate_fn treats each example without regard to the
    others; one that pads to the longest of a batch does not.

    `optimizer` and `loader` are PyTorch's; `plan` says rate, clip, noise and how many steps are paid for.

    Guarantee:
        As `DPSGD`: batches are drawn by exact coins at the declared rate, each example is clipped by itself, sums are
        exact, and every update is paid by `account.open`, which charges the whole plan here.

    Raises:
        InvalidParameter: where model, optimiser or plan do not fit. Nothing was spent.

    >>> import torch
    >>> import mosha
    >>> model = torch.nn.Linear(2, 2)
    >>> data = torch.utils.data.TensorDataset(torch.zeros(20, 2), torch.zeros(20, dtype=torch.long))
    >>> loader = torch.utils.data.DataLoader(data, batch_size=10)
    >>> plan = mosha.learning.DPSGD(steps=2, rate=0.5, clip=1.0, batch=10).calibrate(epsilon=5, delta=1e-5)
    >>> account = mosha.Ledger.memory().account("digits", unit=mosha.Example(), epsilon=5, delta=1e-5)
    >>> model, optimizer, loader = private(
    ...     model, torch.optim.SGD(model.parameters(), lr=0.1), loader, plan=plan, account=account
    ... )
    >>> for inputs, targets in loader:
    ...     optimizer.zero_grad()
    ...     torch.nn.functional.cross_entropy(model(inputs), targets).backward()
    ...     optimizer.step()
    """
    if not isinstance(plan, DPSGD) or not isinstance(account, Account):
        raise InvalidParameter("learning.private_needs", spent="nothing")
    if reduction not in ("mean", "sum"):
        raise InvalidParameter("learning.reduction_options", parameter="reduction")
    if not isinstance(loader, DataLoader):
        raise InvalidParameter("learning.private_takes_loader", parameter="loader")
    if isinstance(plan.unit, Person) or plan.bands > 1 or plan.clipping == "adaptive" or _promises_more(plan):
        raise InvalidParameter("learning.private_too_simple", parameter="plan", spent="nothing")
    if loader.collate_fn is not default_collate and not rows_collated_apart:
        raise InvalidParameter("learning.own_collate", parameter="loader", spent="nothing")
    examples = examples_of(loader)
    engine = Engine(model)
    try:
        check_precision(engine)
        check_optimizer(optimizer, engine)
        layout = examples.layout
        make_losses(loss or _not_called)  # refuses one that averages

        def ask(model: nn.Module, flat: Flat) -> Call:
            flat = place_rows(flat, model)
            call = layout.join(flat)
            found = call.ask(model) if forward is None else forward(model, layout.restore(flat))
            return Call((found,), {}, call.target)

        losses = _row_by_row(ask) if loss is None else _by_loss(ask, loss)
        plan = fit_memory(plan, engine, losses, examples.shapes)
        seen = forward is not None  # which may hand the targets to the model
        probe(engine, losses, examples.shapes, rows=plan.at_once, targets=layout.targets, shown=seen)
        gradients = Gradients(plan, engine, _not_called)
        measurement = gradients.measurement_of_sums()
        run = account.open(measurement)
    except BaseException:
        engine.detach()
        raise
    wrapped = PrivateOptimizer(optimizer, gradients, run, mean=reduction == "mean")
    return engine.model, wrapped, PrivateLoader(loader, plan, wrapped)


def _promises_more(plan: DPSGD) -> bool:
    """Whether the plan promises more than gradients of examples: a loss, an average of weights, several views."""
    return plan.loss_at_most is not None or plan.average is not None or plan.views > 1


def _row_by_row(ask: Ask) -> Losses:
    """One number a row of all that the model gives: the loop's own loss is not known here."""

    def losses(model: nn.Module, batch: Flat) -> Tensor:
        rows = len(batch[0])
        leaves = tree_leaves(ask(model, batch).arguments)
        given = [v for v in leaves if isinstance(v, Tensor) and v.is_floating_point()]
        flat = [v.reshape(rows, -1).float() for v in given if v.ndim and v.shape[0] == rows]
        if not flat:
            raise InvalidParameter("learning.no_output_a_row", spent="nothing")
        weighted = [v * torch.linspace(1, 2, v.shape[1], device=v.device) for v in flat]
        return torch.stack([v.sum(dim=1) for v in weighted]).sum(dim=0)

    return losses


def _by_loss(ask: Ask, loss: Loss) -> Losses:
    def losses(model: nn.Module, batch: Flat) -> Tensor:
        call = ask(model, batch)
        return loss(call.arguments[0], call.target)

    return losses


def _not_called(model: object, batch: object) -> Tensor:
    raise AssertionError((model, batch))
