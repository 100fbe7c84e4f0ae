"""The oracle: what layers note must be what PyTorch's own backward pass gives, on public rows, before anything is paid.

Every example gets a random weight. The weighted sum of the gradients that were noted, example by example, must be the
gradient of the weighted sum of losses. A layer whose gradients are given to the wrong examples, or are wrong, is found.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from mosha.core.errors import DataError
from mosha.learning.checking.mixing import Batch, Losses
from mosha.learning.gradients.engine import Engine

__all__ = ["check_gradients"]

TOLERANCE = 0.02  # of the norm of a parameter's gradient; a wrong one is off by about that norm
SMALL = 1e-4  # of the norm of all gradients: what rounding leaves of a gradient that is zero


def check_gradients(engine: Engine, losses: Losses, batch: Batch) -> None:
    """Refuse a model for which gradients of single examples do not add up to what PyTorch computes.

    Raises:
        DataError: naming the parameter.
    """
    rows = len(batch[0])
    weights = torch.rand(rows) + 0.5
    wanted, values = _plain_gradients(engine, losses, batch, weights)
    found = engine.clip(lambda model: losses(model, batch), rows, lambda _norms: np.asarray(weights.double()))
    if not torch.allclose(values, found.losses, rtol=1e-3, atol=1e-5, equal_nan=True):
        raise DataError("learning.losses_differ")
    if not wanted:
        return
    total = torch.stack([gradient.norm() for gradient in wanted.values()]).norm()
    for name, gradient in wanted.items():
        difference = (found.sums.get(name, torch.zeros(gradient.shape)).view(gradient.shape) - gradient.cpu()).norm()
        if bool(torch.isfinite(total)) and bool(difference > TOLERANCE * gradient.norm() + SMALL * total):
            raise DataError("learning.gradients_differ", parameter=name)


def _plain_gradients(engine: Engine, losses: Losses, batch: Batch, weights: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """By PyTorch: the gradient of the weighted sum of losses for each parameter, and the losses."""
    engine.tape.recording = False
    values = losses(engine.model, batch)
    names, parameters = zip(*engine.parameters.items(), strict=True)
    if values.shape != weights.shape or not values.requires_grad:
        return {}, values.detach()
    found = torch.autograd.grad((values * weights.to(values.device)).sum(), parameters, allow_unused=True)
    given = zip(names, parameters, found, strict=True)
    return {n: torch.zeros_like(p) if g is None else g for n, p, g in given}, values.detach()
