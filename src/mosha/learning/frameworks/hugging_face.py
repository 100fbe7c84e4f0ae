"""The Trainer of Hugging Face, made private: arguments, callbacks and schedules stay, batches and losses do not.

Transformers is not imported here: whoever has a Trainer has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.learning.frameworks.wrapping import PrivateLoader, PrivateOptimizer, private
from mosha.learning.plan import DPSGD
from mosha.learning.training import Loss

__all__ = ["make_trainer_private"]

_PARTS = ("model", "train_dataset", "args", "create_optimizer", "training_step", "get_train_dataloader")


def make_trainer_private(trainer: Any, *, plan: DPSGD, account: Account, loss: Loss) -> Any:
    """A `transformers.Trainer` that trains by the plan, which is paid here; call `trainer.train()` as before.

    Args:
        trainer: with a model on the CPU and a data set of mappings of one shape (pad to a fixed length), `labels` among
            their entries. Its optimizer, schedule, callbacks, evaluation and saving stay.
        plan: one update for each step of the Trainer; its own batch size, number of steps, gradient accumulation,
            clipping and resuming are not used.
        account: what pays for the whole plan.
        loss: from what the model gives and the labels to one number an example, such as
            `lambda out, labels: cross_entropy(out.logits, labels, reduction="none")`.

    Guarantee:
        As `private`, whose loader and optimizer these are. What the Trainer logs as loss is zero: the loss of a private
        batch is not public.

    Raises:
        InvalidParameter: where trainer, model, loss or plan do not fit. Nothing was spent.

    >>> make_trainer_private("no trainer", plan=None, account=None, loss=None)
    Traceback (most recent call last):
    mosha.core.errors.InvalidParameter: ... Nothing was spent.
    """
    if not all(hasattr(trainer, part) for part in _PARTS) or trainer.train_dataset is None:
        raise InvalidParameter("learning.not_a_trainer", parameter="trainer", spent="nothing")
    loader = DataLoader(trainer.train_dataset, batch_size=1)
    optimizer = trainer.create_optimizer()
    _, wrapped, batches = private(trainer.model, optimizer, loader, plan=plan, account=account, loss=loss)
    steps = _Steps(batches, wrapped, loss)
    trainer.optimizer = wrapped
    trainer.get_train_dataloader = lambda: steps
    trainer.training_step = steps.take
    trainer.model_accepts_loss_kwargs, trainer.compute_loss_func = False, None  # nothing is counted over a batch
    trainer.args.max_steps, trainer.args.gradient_accumulation_steps, trainer.args.max_grad_norm = plan.steps, 1, 0.0
    return trainer


class _Steps:
    """The batches of a plan, one for each update of the Trainer, which sees their first pieces alone."""

    def __init__(self, loader: PrivateLoader, optimizer: PrivateOptimizer, loss: Loss) -> None:
        self._loader, self._optimizer, self._loss = loader, optimizer, loss
        self._pieces: Iterator[Any] = iter(())

    def __iter__(self) -> Iterator[Any]:
        while self._loader.has_more():
            self._pieces = self._loader.next_batch()
            yield from self._pieces  # the first: `take` takes the others; of an empty batch there is none

    def take(self, model: nn.Module, inputs: Any, _items: object = None, **_options: object) -> Tensor:
        """Forward and backward pass of all pieces of a batch; the Trainer's own `optimizer.step()` takes the last."""
        model.train()
        while True:
            given = {name: values for name, values in inputs.items() if name != "labels"}
            self._loss(model(**given), inputs["labels"]).mean().backward()  # type: ignore[no-untyped-call]
            if self._optimizer.last_piece:
                return torch.zeros(())
            self._optimizer.step()
            inputs = next(self._pieces)
