"""Exact sums of clipped gradients without noise, for silos that add a share of it each (`federated.silos`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mosha.core.errors import InvalidParameter
from mosha.core.measurement import Rng
from mosha.learning.batches import Sampler
from mosha.learning.checking.probe import check_buffers, probe
from mosha.learning.gradients.engine import Engine
from mosha.learning.model_buffers import ModelBuffers, set_training
from mosha.learning.noisy_gradients import Gradients
from mosha.learning.reading.examples import Collate, Examples
from mosha.learning.reading.layout import Target
from mosha.learning.rounding import COARSE
from mosha.learning.terms import TrainingTerms
from mosha.learning.training import Loss, check_precision, make_losses

__all__ = ["SiloSums", "load_weights"]


def load_weights(parameters: Mapping[str, Tensor], flat: NDArray[np.float32]) -> None:
    """Write flat weights into parameters, in their order.

    >>> layer = nn.Linear(2, 1)
    >>> load_weights(dict(layer.named_parameters()), np.array([1, 2, 3], np.float32))
    >>> layer.weight.tolist(), layer.bias.tolist()
    ([[1.0, 2.0]], [3.0])
    """
    start = 0
    with torch.no_grad():
        for parameter in parameters.values():
            part = flat[start : start + parameter.numel()].reshape(tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(part.copy()))
            start += parameter.numel()


class SiloSums:
    """A model and private examples: one exact sum after another, each of a fresh sample; private, all of them.

    Guarantee:
        That of `Gradients` for one step: sums of neighbors are within 2**bits of each other in the l2 norm whenever
        the unit is drawn, and equal otherwise. No noise is in them.
    """

    def __init__(
        self,
        terms: TrainingTerms,
        model: nn.Module,
        loss: Loss,
        dataset: object,
        *,
        collate: Collate | None = None,
        target: Target | None = None,
        like: object = None,
    ) -> None:
        make_losses(loss)  # refuses one that averages
        examples = Examples(dataset, owners=None, each=terms.each, collate=collate, target=target, like=like)
        if not examples.has_public_shapes:
            raise InvalidParameter("learning.silo_without_shapes", parameter="like", spent="nothing")
        engine = Engine(model)
        try:
            check_precision(engine)
            losses = make_losses(loss, None, examples.layout)
            rows = terms.at_once * terms.rows_of_unit
            each, targets = terms.rows_of_unit, examples.layout.targets
            probe(engine, losses, examples.shapes, rows=rows, each=each, targets=targets)
            self._gradients = Gradients(terms, engine, losses, fine=COARSE)
        except BaseException:
            engine.detach()
            raise
        self._data = (examples, Sampler(terms, examples.units))
        self._buffers = ModelBuffers(engine.model)

    @property
    def shapes(self) -> Mapping[str, torch.Size]:
        """The trained parameters by name, in the order of the sums."""
        return self._gradients.shapes

    @property
    def coordinates(self) -> int:
        """How many weights are trained."""
        return self._gradients.size

    def add_up(self, weights: NDArray[np.float32], rng: Rng) -> NDArray[np.int64]:
        """The exact sum over a fresh sample at these weights, in whole steps of the grid."""
        engine = self._gradients.engine
        load_weights(engine.parameters, weights)
        set_training(engine.model)
        total, _ = self._gradients.sum_batch(self._gradients.first(), self._data, rng)
        check_buffers(self._buffers)
        return total

    def close(self) -> None:
        """Give the model its own forward pass back."""
        self._gradients.engine.detach()
