"""A whole training as one step, for searches: a candidate is trained from the first step to the last, or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.fingerprint import write_as_stored
from mosha.core.measurement import Measurement, Rng
from mosha.core.unit import Person
from mosha.learning.batches import Sampler
from mosha.learning.checking.probe import Losses, check_buffers, probe
from mosha.learning.gradients.engine import Engine
from mosha.learning.model_buffers import ModelBuffers, set_training
from mosha.learning.noisy_gradients import Gradients
from mosha.learning.reading.examples import Examples
from mosha.learning.terms import TrainingTerms
from mosha.learning.training import check_optimizer, check_precision, make_losses
from mosha.learning.updates import Updates

__all__ = ["candidate_measurement"]

Build = Callable[[], tuple[nn.Module, torch.optim.Optimizer]]


def candidate_measurement(plan: TrainingTerms, build: Build, loss: Any, like: tuple[Tensor, ...]) -> Measurement:
    """All steps of a plan as one: see `DPSGD.candidate`."""
    losses = make_losses(loss)
    if not isinstance(like, tuple) or len(like) < 2 or not all(isinstance(v, Tensor) and v.ndim for v in like):
        raise InvalidParameter("learning.like_batch", parameter="like", spent="nothing")
    gradients = _build_gradients(plan, build, losses)[0]
    try:
        rows, each = plan.at_once * plan.rows_of_unit, plan.rows_of_unit
        probe(gradients.engine, losses, Examples(like).shapes, rows=rows, each=each)
    finally:
        gradients.engine.detach()
    shapes = ",".join(f"{name}:{tuple(shape)}" for name, shape in gradients.shapes.items())

    def step(state: object, data: object, ask: object, rng: Rng) -> tuple[dict[str, Tensor], Any]:
        del ask
        return _train_model(plan, build, losses, _examples(plan, data), rng), state

    return Measurement(
        unit=plan.unit,
        event=plan.event_after(plan.steps),
        step=step,
        name=f"a training by {type(plan).__name__}({plan.steps} steps)",
        question=hashlib.sha256(f"whole;{write_as_stored(plan)};{shapes}".encode()).hexdigest(),
    )


def _build_gradients(plan: TrainingTerms, build: Build, losses: Losses) -> tuple[Gradients, torch.optim.Optimizer]:
    model, optimizer = build()
    engine = Engine(model)
    try:
        check_precision(engine)
        check_optimizer(optimizer, engine)
        return Gradients(plan, engine, losses), optimizer
    except BaseException:
        engine.detach()
        raise


def _examples(plan: TrainingTerms, data: object) -> Examples:
    if not isinstance(plan.unit, Person):
        return Examples(data)
    if not isinstance(data, tuple) or len(data) != 2:
        raise DataError("learning.search_with_owners")
    return Examples(data[0], owners=data[1], each=plan.each)


def _train_model(plan: TrainingTerms, build: Build, losses: Losses, examples: Examples, rng: Rng) -> dict[str, Tensor]:
    """The parameters and buffers of a new model after all steps."""
    gradients, optimizer = _build_gradients(plan, build, losses)
    gradients.reuse = True
    model, updates, state = gradients.engine.model, Updates(gradients), gradients.first()
    set_training(model)
    data, kept = (examples, Sampler(plan, examples.units)), ModelBuffers(model)
    try:
        for _ in range(plan.steps):
            answer, state = gradients.step(state, data, None, rng)
            check_buffers(kept)
            updates.apply(answer)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return {name: values.detach().clone() for name, values in model.state_dict().items()}
    finally:
        gradients.engine.detach()
