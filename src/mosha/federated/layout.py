"""Named arrays as one flat vector and back: floating-point arrays take part, all others stay as they were sent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """Names, shapes and types of the arrays of a model, in order.

    Integer arrays (counters of a normalisation layer, say) are frozen: no client changes them and no noise is lost
    in them.

    >>> layout = Layout.of({"w": np.zeros((2, 3), np.float32), "seen": np.array([7])})
    >>> layout.coordinates, layout.arrays(np.arange(6.0), {"w": np.zeros((2, 3)), "seen": np.array([7])})["seen"]
    (6, array([7]))
    """

    shapes: tuple[tuple[str, tuple[int, ...], str], ...]

    @staticmethod
    def of(arrays: Mapping[str, NDArray[np.generic]]) -> Layout:
        """The layout of a model that is about to be trained."""
        shapes = tuple((name, array.shape, array.dtype.str) for name, array in arrays.items())
        layout = Layout(shapes)
        if layout.coordinates == 0:
            raise InvalidParameter("federated.model_without_weights")
        return layout

    @property
    def _trained(self) -> list[tuple[str, tuple[int, ...], str]]:
        return [(name, shape, kind) for name, shape, kind in self.shapes if np.dtype(kind).kind == "f"]

    @property
    def coordinates(self) -> int:
        """How many weights are trained."""
        return sum(int(np.prod(shape)) for _, shape, _ in self._trained)

    def flatten(self, arrays: Mapping[str, NDArray[np.generic]]) -> NDArray[np.float64]:
        """The trained weights as one vector."""
        parts = [np.asarray(arrays[name], np.float64).reshape(-1) for name, _, _ in self._trained]
        return np.concatenate(parts)

    def change(self, arrays: Mapping[str, object], sent: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """What a client changed, as one vector; None for anything that is not shaped like the model.

        What a client sent never raises here: an error would tell others about it.
        """
        try:
            parts = []
            for name, shape, _ in self._trained:
                array = np.asarray(arrays[name])
                if array.shape != shape or array.dtype.kind not in "fiu":
                    return None
                parts.append(array.astype(np.float64).reshape(-1))
            with np.errstate(all="ignore"):
                change: NDArray[np.float64] = np.concatenate(parts) - sent
        except Exception:  # noqa: BLE001  (whatever a stranger's bytes do)
            return None
        return change

    def arrays(
        self, weights: NDArray[np.float64], frozen: Mapping[str, NDArray[np.generic]]
    ) -> dict[str, NDArray[Any]]:
        """The whole model with these weights, in its own types; `frozen` gives what is not trained."""
        found, start = {}, 0
        for name, shape, kind in self.shapes:
            if np.dtype(kind).kind == "f":
                size = int(np.prod(shape))
                found[name] = weights[start : start + size].reshape(shape).astype(kind)
                start += size
            else:
                found[name] = np.asarray(frozen[name])
        return found

    def digest(self) -> str:
        """A fingerprint of names, shapes and types."""
        return hashlib.sha256(repr(self.shapes).encode()).hexdigest()
