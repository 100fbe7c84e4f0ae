"""Scattering features of small pictures: fixed wavelets, moduli and averages, so nothing is learnt and nothing is paid.

The transform of Bruna and Mallat (2013) with two scales and eight directions, which Tramèr and Boneh (2021) found to be
the best start for private learning on little data; here with NumPy and SciPy's Fourier transforms alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.core.number import positive, positive_integer

__all__ = ["Scattering"]

DIRECTIONS = 8
WIDTH = 0.8  # of the finest wavelet, in pixels
CARRIER = 3 * math.pi / 4  # its frequency
SLANT = 4 / DIRECTIONS
BATCH = 64

Pictures: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class Scattering:
    """Features of square pictures of `side` pixels (a multiple of 4): side/4 by side/4 places of 81 channels.

    Channel 0 is the picture's average, 1 to 16 its wavelet moduli at two scales and eight directions, 17 to 80 the
    moduli of the finer ones seen again at the coarser scale. Channels are standardised within each picture, in so many
    `groups`. With `roots` the square roots of all are taken first, which brings faint and strong edges nearer; `first`
    is how many times the first 17 channels count. No row is longer than `norm`.

    Guarantee:
        A row is a function of its picture alone up to the rounding of floats; whoever trains on rows bounds them
        again (`BoundedRows`), one by one, so rounding moves no sensitivity.

    >>> features = Scattering(side=28)
    >>> features(np.zeros((2, 28, 28))).shape, features.norm
    ((2, 3969), 63.0)
    """

    side: int
    groups: int = 27
    roots: bool = False
    first: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "side", positive_integer("side", self.side))
        object.__setattr__(self, "groups", positive_integer("groups", self.groups))
        object.__setattr__(self, "first", positive("first", self.first))
        if self.side % 4 or not 8 <= self.side <= 1024:
            raise InvalidParameter("learning.side_of_pictures", parameter="side")
        if not 2.0**-10 <= self.first <= 2.0**10 or not isinstance(self.roots, bool):
            raise InvalidParameter("learning.first_and_roots", parameter="first")
        if self.channels % self.groups:
            raise InvalidParameter("learning.groups_of_channels", parameter="groups", channels=self.channels)

    @property
    def channels(self) -> int:
        return 1 + 2 * DIRECTIONS + DIRECTIONS * DIRECTIONS

    @property
    def places(self) -> int:
        return self.side // 4

    @property
    def width(self) -> int:
        """How many features a picture has."""
        return self.channels * self.places**2

    @property
    def norm(self) -> float:
        """The largest norm of a row of features: a group's is the root of its size, times its largest weight."""
        weights = self._weights.reshape(self.groups, -1).max(axis=1).astype(float)
        return math.sqrt(self.width / self.groups * float((weights**2).sum()))

    @cached_property
    def _weights(self) -> NDArray[np.float32]:
        return np.where(np.arange(self.channels) <= 2 * DIRECTIONS, self.first, 1.0).astype(np.float32)

    @cached_property
    def _padded(self) -> int:
        return self.side + 4

    @cached_property
    def _wavelets(self) -> tuple[NDArray[np.complex64], NDArray[np.complex64]]:
        """Spectra of the fine wavelets on the whole grid, and of the coarse ones on its inner half."""
        fine = np.array([_morlet(self._padded, 0, k) for k in range(DIRECTIONS)], np.complex64)
        coarse = np.array([_inner(_morlet(self._padded, 1, k)) / 4 for k in range(DIRECTIONS)], np.complex64)
        return fine, coarse

    def _average(self, step: int) -> NDArray[np.float32]:
        """The matrix (places by pixels) of the Gaussian average, for pictures with every `step`-th pixel."""
        centres = 2 + 4 * np.arange(self.places) + 1.5
        pixels = np.arange(0, self._padded, step)
        weights = np.exp(-((centres[:, None] - pixels[None, :]) ** 2) / (2 * (2 * WIDTH) ** 2))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True), np.float32)

    def __call__(self, pictures: object) -> NDArray[np.float32]:
        """One row of features for each picture (n by side by side, or n by side squared)."""
        array = np.asarray(pictures)
        if array.dtype.kind not in "biuf" or array.size != array.shape[0] * self.side**2:
            raise DataError("learning.pictures_of_side", side=self.side)
        array = array.reshape(-1, self.side, self.side)
        found = np.empty((array.shape[0], self.width), np.float32)
        for start in range(0, array.shape[0], BATCH):
            part = array[start : start + BATCH].astype(np.float32)
            found[start : start + BATCH] = self._standardize(self._scatter(part))
        return found

    def _scatter(self, pictures: Pictures) -> Pictures:
        from scipy import fft  # noqa: PLC0415  (only where pictures are)

        padded = np.pad(pictures, ((0, 0), (2, 2), (2, 2)), mode="reflect")
        whole, half = self._average(1), self._average(2)
        fine, coarse = self._wavelets
        out = np.empty((pictures.shape[0], self.channels, self.places, self.places), np.float32)
        out[:, 0] = whole @ padded @ whole.T
        spectrum = fft.fft2(padded)
        edges = np.abs(fft.ifft2(spectrum[:, None] * fine, overwrite_x=True))
        out[:, 1 : 1 + DIRECTIONS] = whole @ edges @ whole.T
        broad = np.abs(fft.ifft2(_inner(spectrum)[:, None] * coarse, overwrite_x=True))
        out[:, 1 + DIRECTIONS : 1 + 2 * DIRECTIONS] = half @ broad @ half.T
        again = _inner(fft.fft2(edges))
        twice = np.abs(fft.ifft2(again[:, :, None] * coarse, overwrite_x=True))
        out[:, 1 + 2 * DIRECTIONS :] = (half @ twice @ half.T).reshape(pictures.shape[0], -1, *out.shape[2:])
        return out

    def _standardize(self, channels: Pictures) -> Pictures:
        seen = np.sign(channels) * np.sqrt(np.abs(channels)) if self.roots else channels
        grouped = seen.reshape(channels.shape[0], self.groups, -1)
        centred = grouped - grouped.mean(axis=2, keepdims=True)
        centred /= np.sqrt((centred * centred).mean(axis=2, keepdims=True) + np.float32(1e-8))
        weighted = centred.reshape(channels.shape) * self._weights[:, None, None]
        return np.asarray(weighted.reshape(channels.shape[0], -1), np.float32)


def _frequencies(size: int) -> NDArray[np.float64]:
    return np.asarray(2 * math.pi * np.fft.fftfreq(size), np.float64)


def _morlet(size: int, scale: int, direction: int) -> NDArray[np.float64]:
    """The spectrum of a wavelet that has no mean: a Gaussian around its carrier minus one around zero."""
    angle = math.pi * direction / DIRECTIONS
    width, carrier = WIDTH * 2**scale, CARRIER / 2**scale
    total = np.zeros((size, size))
    for shift_y in (-1, 0, 1):  # the spectrum of samples is periodic
        for shift_x in (-1, 0, 1):
            y = _frequencies(size)[:, None] + 2 * math.pi * shift_y
            x = _frequencies(size)[None, :] + 2 * math.pi * shift_x
            along = math.cos(angle) * x + math.sin(angle) * y
            across = (-math.sin(angle) * x + math.cos(angle) * y) / SLANT
            carried = np.exp(-(width**2) * ((along - carrier) ** 2 + across**2) / 2)
            still = np.exp(-(width**2) * (along**2 + across**2) / 2)
            total += carried - math.exp(-((width * carrier) ** 2) / 2) * still
    return total


def _inner(spectrum: NDArray[np.generic]) -> NDArray[Any]:
    """The inner half of the frequencies of each axis: what pictures of half the size can hold."""
    size = spectrum.shape[-1]
    kept = np.r_[0 : size // 4, size - size // 4 : size]
    return spectrum[..., kept[:, None], kept[None, :]]
