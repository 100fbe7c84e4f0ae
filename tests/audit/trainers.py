"""A small DP-SGD in NumPy, and ways to get it wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from mosha import noise

LAYERS = {"first": (64, 32), "second": (32, 64)}
WIDTH = sum(a * b for a, b in LAYERS.values())


class DPSGD:
    """Sums of clipped gradients plus Gaussian noise, on Poisson samples."""

    clip = 1.0
    noise_multiplier = 1.1
    rate = 0.05
    population = 600

    def __init__(self) -> None:
        self.gradients = np.random.default_rng(3).normal(size=(self.population, WIDTH))
        self.gradients *= np.geomspace(0.1, 10, self.population)[:, None] / np.sqrt(WIDTH)

    def sample(self, rng: Any) -> Any:
        coins = np.frombuffer(rng.bytes(8 * self.population), np.uint64)
        return np.flatnonzero(coins < np.uint64(self.rate * 2**64))

    def clipped(self, gradients: Any) -> Any:
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        return gradients * np.minimum(1.0, self.clip / np.maximum(norms, 1e-30))

    def noise(self, rng: Any, batch: Any) -> Any:
        steps = noise.discrete_gaussian(4096, WIDTH, rng=rng)
        return steps / 4096 * self.clip * self.noise_multiplier

    def update(self, batch: Any, rng: Any) -> Any:
        return self.layers(self.clipped(self.gradients[batch]).sum(axis=0) + self.noise(rng, batch))

    def layers(self, vector: Any) -> dict[Any, Any]:
        pieces = np.split(vector, np.cumsum([a * b for a, b in LAYERS.values()])[:-1])
        return {name: piece.reshape(shape) for (name, shape), piece in zip(LAYERS.items(), pieces, strict=True)}


class Shuffled(DPSGD):
    """Batches of one size from a shuffled list, each example once an epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = []  # type: ignore[var-annotated]

    def sample(self, rng: Any) -> Any:
        size = round(self.rate * self.population)
        if len(self.queue) < size:
            self.queue = list(np.random.default_rng().permutation(self.population))
        batch, self.queue = self.queue[:size], self.queue[size:]
        return np.array(batch)


class NoiseLow(DPSGD):
    """Noise 3% too small."""

    def noise(self, rng: Any, batch: Any) -> Any:
        return 0.97 * super().noise(rng, batch)


class Unclipped(DPSGD):
    """The sum is clipped instead of each gradient."""

    def update(self, batch: Any, rng: Any) -> Any:
        total = self.gradients[batch].sum(axis=0)
        limit = self.clip * max(1, len(batch))
        total *= min(1.0, limit / max(np.linalg.norm(total), 1e-30))  # type: ignore[operator]
        return self.layers(total + self.noise(rng, batch))


class ClippedPerLayer(DPSGD):
    """Each layer is clipped to the whole norm."""

    def clipped(self, gradients: Any) -> Any:
        middle = LAYERS["first"][0] * LAYERS["first"][1]
        clipped = super().clipped
        return np.concatenate([clipped(part) for part in np.split(gradients, [middle], axis=1)], axis=1)


class LayerForgotten(DPSGD):
    """One layer gets no noise."""

    def noise(self, rng: Any, batch: Any) -> Any:
        drawn = super().noise(rng, batch)
        drawn[: LAYERS["first"][0] * LAYERS["first"][1]] = 0
        return drawn


class NoiseReused(DPSGD):
    """The noise of the first update serves for all."""

    kept = None

    def noise(self, rng: Any, batch: Any) -> Any:
        if self.kept is None:
            self.kept = super().noise(rng, batch)
        return self.kept


class NoiseOverRootBatch(DPSGD):
    """Noise is divided by the root of the batch size."""

    def noise(self, rng: Any, batch: Any) -> Any:
        return super().noise(rng, batch) / np.sqrt(max(1, len(batch)))


class ClipForgotten(DPSGD):
    """The deviation of the noise forgets the clipping norm."""

    clip = 2.0

    def noise(self, rng: Any, batch: Any) -> Any:
        return super().noise(rng, batch) / self.clip


class FullBatch(DPSGD):
    """Everybody is in every batch."""

    def sample(self, rng: Any) -> Any:
        return np.arange(self.population)


class Signs(DPSGD):
    """Gradients of norm clip that point one way or the other: nothing but places can move a sum too far."""

    def __init__(self) -> None:
        super().__init__()
        self.gradients[:] = 0
        self.gradients[:, 0] = np.where(np.arange(self.population) % 2, self.clip, -self.clip)


class MicroBatches(Signs):
    """Sums of four neighbors are clipped, in place of single examples."""

    size = 4

    def update(self, batch: Any, rng: Any) -> Any:
        starts = range(0, len(batch), self.size)
        sums = [self.gradients[batch[start : start + self.size]].sum(axis=0) for start in starts]
        total = self.clipped(np.array(sums).reshape(-1, WIDTH)).sum(axis=0)
        return self.layers(total + self.noise(rng, batch))


class Eights(MicroBatches):
    """Sums of eight neighbors are clipped."""

    size = 8


class FirstCountsTwice(Signs):
    """The first example of a batch counts twice."""

    def update(self, batch: Any, rng: Any) -> Any:
        found = self.clipped(self.gradients[batch])
        return self.layers(found.sum(axis=0) + found[:1].sum(axis=0) + self.noise(rng, batch))


class Alternating(Signs):
    """Examples count with the sign of their place."""

    def update(self, batch: Any, rng: Any) -> Any:
        signs = np.where(np.arange(len(batch)) % 2, 1.0, -1.0)[:, None]
        return self.layers((signs * self.clipped(self.gradients[batch])).sum(axis=0) + self.noise(rng, batch))


FAULTY = {  # type: ignore[misc]
    **dict.fromkeys((MicroBatches, Eights, FirstCountsTwice, Alternating), "sensitivity at most clip"),
    Shuffled: "batch sizes vary",
    NoiseLow: "noise law at batch size 0",
    Unclipped: "sensitivity at most clip",
    ClippedPerLayer: "sensitivity at most clip",
    LayerForgotten: "noise law at batch size 0",
    NoiseReused: "noise is fresh",
    NoiseOverRootBatch: "noise law at batch size 120",
    ClipForgotten: "noise law at batch size 0",
    FullBatch: "inclusion rate",
}
