"""How many of the counted points of a projective space lie on each hyperplane, in time that grows with the points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosha.local.protocols.points import count_points

__all__ = ["count_orthogonal"]

_BLOCK = 1 << 20  # numbers that are transformed back at a time


def count_orthogonal(counters: NDArray[np.int64], q: int, t: int, size: int) -> NDArray[np.int64]:
    """For each of the first `size` points the sum of the counters of all points that are orthogonal to it.

    K points cost O(K log K) operations and about 24 bytes each (`projective.md` has the proof).

    Args:
        counters: one for each point of the space, in the order of their numbers; their sum is below 2^40.
        q: a prime.
        t: the number of coordinates.
        size: how many points are wanted, the first of them.

    >>> count_orthogonal(np.ones(13, np.int64), 3, 3, 13).tolist()  # every line has four points
    [4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]
    """
    found = np.zeros(size, np.int64)
    if t == 1:
        return found
    far = count_points(q, t - 1)  # points (0, u); the others are (1, a)
    beyond = count_orthogonal(counters[:far], q, t - 1, far)
    spectrum = _transform(counters[far:], q, t - 1)
    if size > far:
        found[far] = counters[:far].sum()  # of the point (1, 0, ..., 0)
    inverses = np.array([0] + [pow(c, -1, q) for c in range(1, q)], np.int64)
    for m in range(t - 1):
        rows = max(1, _BLOCK // q)
        for start in range(q**m, 2 * q**m, rows):
            directions = np.arange(start, min(start + rows, 2 * q**m), dtype=np.int64)
            numbers = directions - q**m + count_points(q, m)
            if numbers[0] >= size:
                break
            sums = _sum_hyperplanes(spectrum, directions, q, m) + beyond[numbers, None]
            inside = numbers < size
            found[numbers[inside]] = sums[inside, 0]
            _fill_multiples(found[far:], sums, directions, inverses, m)
    return found


def _transform(counters: NDArray[np.int64], q: int, axes: int) -> NDArray[np.complex128]:
    """The Fourier transform of the counters of the points (1, a); half of it, as they are real."""
    from scipy.fft import rfftn

    found: NDArray[np.complex128] = rfftn(counters.astype(np.float64).reshape((q,) * axes), overwrite_x=True)
    return found


def _sum_hyperplanes(
    spectrum: NDArray[np.complex128], directions: NDArray[np.int64], q: int, m: int
) -> NDArray[np.int64]:
    """The sums over {a : <u, a> = r} for each direction u and r = 0, ..., q - 1.

    Only the last m + 1 digits of the directions are not zero.
    """
    from scipy.fft import irfft

    factors = np.arange(q // 2 + 1, dtype=np.int64)
    half = spectrum.shape[-1]
    last = directions[:, None] % q * factors % q
    mirrored = last >= half  # the transform of real numbers at -k is the conjugate of that at k
    places = np.where(mirrored, q - last, last)
    for place in range(1, m + 1):
        digit = directions[:, None] // q**place % q * factors % q
        digit = np.where(mirrored, (q - digit) % q, digit)
        places += digit * (half * q ** (place - 1))
    waves = spectrum.reshape(-1).take(places)
    np.conjugate(waves, out=waves, where=mirrored)
    return np.asarray(np.rint(irfft(waves, n=q, axis=1, overwrite_x=True)), np.int64)


def _fill_multiples(
    found: NDArray[np.int64],
    sums: NDArray[np.int64],
    directions: NDArray[np.int64],
    inverses: NDArray[np.int64],
    m: int,
) -> None:
    """The counts of the points (1, c u), c = 1, ..., q - 1, among the first ones that are wanted."""
    q = len(inverses)
    most = min(q - 1, (len(found) - 1) // q**m)  # c u has the number c q^m or more
    if most < 1:
        return
    factors = np.arange(1, most + 1, dtype=np.int64)
    numbers = np.zeros((len(directions), most), np.int64)
    for place in range(m + 1):
        numbers += directions[:, None] // q**place % q * factors % q * q**place
    inside = numbers < len(found)
    values = sums[:, (-inverses[factors]) % q]
    found[numbers[inside]] = values[inside]
