"""A look at the model with public batches, before anything is spent: what would go wrong is said here.

Batches of two, of a few and of as many made-up rows as every physical batch has are sent through in training mode: what
is tried is what is run. Nothing of the data but shapes and types is used. That no row has a part in the loss of another
is tried (`mixing.py`), not proved: it is assumption A1 of `rounding.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from mosha.core.errors import DataError, InvalidParameter, MoshaError
from mosha.learning.checking.kernels import check_kernels
from mosha.learning.checking.mixing import Losses, check_rows_apart
from mosha.learning.checking.oracle import check_gradients
from mosha.learning.gradients.device import fork_randomness, hold_kernels
from mosha.learning.gradients.engine import Engine, check_losses
from mosha.learning.model_buffers import ModelBuffers, set_training
from mosha.learning.physical_batches import MOST_ROWS
from mosha.learning.reading.layout import Flat
from mosha.learning.terms import TrainingTerms

__all__ = ["Losses", "Public", "check_buffers", "fit_memory", "probe"]

APART = ("learning.first_axis", "learning.packed_sequences", "learning.state_trained", "learning.tokens_in_rows")
"""Errors of layers that see no rows one by one: what is around them may."""

MEMORY = {"cpu": 40 << 20, "cuda": 1 << 30}
"""Bytes that activations of a physical batch may take, and as many more as the parameters take, by the kind of device:
on a CPU more rows make nothing quicker but what passes over all parameters, and take memory until norms are known."""

LEAST_ROWS = 4  # at once, also where rows are large
DIFFERS = ("learning.losses_differ", "learning.gradients_differ")

Public = Callable[[int], Flat]
Terms = TypeVar("Terms", bound=TrainingTerms)
"""So many made-up rows."""


def probe(
    engine: Engine,
    losses: Losses,
    public: Public,
    *,
    rows: int,
    each: int = 1,
    targets: int = 1,
    shown: bool = False,
) -> None:
    """Refuse a model, a loss or a shape of data with which gradients of single examples cannot be had.

    `rows` is how many a physical batch of the plan has, whoever is drawn (`plan.at_once * plan.rows_of_unit`), `each`
    of which belong to one unit; the last `targets` tensors of a batch are what the loss compares with, `shown` whether
    the model may see them, too. Of a device that is not the CPU, the kernels are tried as well (`kernels.py`).

    Raises:
        InvalidParameter, DataError: naming the layer or the parameter, or what PyTorch said. Nothing was spent.
    """
    first: Exception | None = None
    while True:
        try:
            _probe(engine, losses, public, rows, targets, shown=shown)
            if engine.device.type != "cpu":
                check_kernels(engine, losses, public(rows), each=each, targets=targets)
        except (RuntimeError, TypeError, IndexError, ValueError, AttributeError, DataError) as error:
            first = first or error
            if not any(engine.widen(layer) for layer in _suspects(engine, error)):
                raise _explain(first) from first
        else:
            return


def _suspects(engine: Engine, error: Exception) -> list[str]:
    """Layers in which rows cannot be told apart, after this error: what is around them may compute each row alone."""
    if isinstance(error, MoshaError) and error.code == "learning.used_outside":
        return [str(error.parameter).rpartition(".")[0]]
    if isinstance(error, MoshaError) and error.code in DIFFERS:
        return sorted({*engine.tape.folds, *_shared_layers(engine), *engine.mapped_parts()})
    if isinstance(error, MoshaError):
        return [str(error.public["layer"]).partition("[")[0]] if error.code in APART else []
    return sorted(_shared_layers(engine))


def _shared_layers(engine: Engine) -> set[str]:
    return {place.partition("[")[0] for place, _ in engine.tape.shared}


def _explain(error: Exception) -> MoshaError:
    if isinstance(error, MoshaError):
        return error.with_spent("nothing")
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", []))
    return InvalidParameter("learning.look_failed", reason=f"{error}{notes}", spent="nothing")


def _probe(engine: Engine, losses: Losses, public: Public, physical: int, targets: int, *, shown: bool) -> None:
    training, kept = {module: module.training for module in engine.model.modules()}, ModelBuffers(engine.model)
    few = _rows(public(1))
    engine.tape.looking = True
    try:
        engine.model.eval()  # no dropout, so that both ways compute the same
        try:
            for number in (few, physical) if engine.has_registered_layers() else (few,):
                check_gradients(engine, losses, public(number))
        except DataError as error:
            if error.code in DIFFERS:
                check_rows_apart(engine, losses, public(few), targets=targets, shown=shown)  # the likelier reason
            raise
        set_training(engine.model, training)
        for number in (2, few, physical):
            _check_used(engine, _records(engine, losses, public(number), number))
        engine.tape.looking = False
        check_buffers(kept)
        check_rows_apart(engine, losses, public(physical), targets=targets, shown=shown)
        check_buffers(kept)
    finally:
        engine.tape.looking = False
        kept.restore()
        for module, was in training.items():
            module.training = was


def _rows(batch: Flat) -> int:
    """How many rows to try: no other axis is as long, so that the axis of rows is known by its length."""
    lengths: set[int] = {length for values in batch for length in values.shape[1:]}
    return next(rows for rows in range(3, 1 << 20) if rows not in lengths)


def check_buffers(kept: ModelBuffers) -> None:
    """Refuse, after putting it back, what a model wrote down while a batch passed."""
    name = kept.find_change()
    if name is not None:
        kept.restore()
        raise InvalidParameter("learning.buffer_changed", buffer=name)


def _check_used(engine: Engine, seen: set[str]) -> None:
    unused = sorted(set(engine.parameters) - seen)
    if unused:
        raise InvalidParameter("learning.unused_parameter", parameter=unused[0], spent="nothing")


def _records(engine: Engine, losses: Losses, batch: Flat, rows: int) -> set[str]:
    """The parameters that were noted; errors of the user's own code pass, for the batch is public."""
    with fork_randomness(engine.device), hold_kernels(engine.device), engine.tape.record(rows, 1):
        values = losses(engine.model, batch)
        check_losses(values, rows)
        values.sum().backward()  # type: ignore[no-untyped-call]
    engine._check_outside()  # noqa: SLF001
    seen = {key.name for key in engine.tape.records}
    engine.tape.records = {}
    return seen


def fit_memory(plan: Terms, engine: Engine, losses: Losses, public: Public) -> Terms:
    """The plan with as many rows at once as fit into memory (`MEMORY`), where it does not say how many.

    Shapes alone decide: what the backward pass keeps of a row is counted with made-up ones, on every machine alike.
    """
    if plan.physical is not None:
        return plan
    kept = ModelBuffers(engine.model)
    try:
        some, more = (_bytes_kept(engine, losses, public(rows)) for rows in (2, 3))
    except Exception:  # noqa: BLE001  (the look says what is wrong)
        return plan
    finally:
        kept.restore()
    most = MEMORY[engine.device.type] + sum(p.numel() * p.element_size() for p in engine.parameters.values())
    rows = max(LEAST_ROWS, min(MOST_ROWS, most // max(1, more - some)))
    return replace(plan, physical=max(rows, plan.rows_of_unit))


def _bytes_kept(engine: Engine, losses: Losses, batch: Flat) -> int:
    kept: dict[int, int] = {}

    def note(values: Tensor) -> Tensor:
        storage = values.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return values

    with fork_randomness(engine.device), torch.autograd.graph.saved_tensors_hooks(note, lambda values: values):
        losses(engine.model, batch)
    return sum(kept.values())
