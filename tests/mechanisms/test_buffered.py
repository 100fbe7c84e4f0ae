"""Buffered encoders are the matrix they say, within their doubt, and one unit moves them by no more than is charged."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mosha.mechanisms.plans.buffered import (
    BufferedDecoder,
    BufferedEncoder,
    encode_step,
    make_decoder,
    optimized_buffers,
)
from mosha.mechanisms.plans.correlated import SCALE, encoder
from mosha.mechanisms.plans.optimized_bands import mean_error, optimized_encoder

SLOW = (1 << 30) - (1 << 17)  # the slowest pole that a search can find
ENCODERS = {
    "fast": BufferedEncoder((1 << 28,), (SCALE // 3,)),
    "slow": BufferedEncoder((SLOW, 12345), (SCALE, SCALE)),
    "four": BufferedEncoder((SLOW, SLOW - 99, 7, 0), (SCALE, 1, 4000, SCALE)),
    "found": optimized_buffers(3, 200, 20),
}


def encode_all(encoder: Any, rows: Any) -> Any:
    kept, found = (), []
    for row in rows:
        encoded, kept = encoder.encode(row, kept)
        found.append(encoded)
    return np.array(found)


def encode_exactly(encoder: Any, rows: Any) -> Any:
    """In fractions, without any rounding."""
    buffers, found = [[Fraction(0)] * len(rows[0]) for _ in encoder.poles], []
    for row in rows:
        held = [max(-encoder.largest, min(encoder.largest, int(entry))) for entry in row]
        found.append(
            [
                SCALE * x + sum(w * b[k] for w, b in zip(encoder.weights, buffers, strict=True))
                for k, x in enumerate(held)
            ]
        )
        for pole, buffer in zip(encoder.poles, buffers, strict=True):
            buffer[:] = [Fraction(pole, 1 << 30) * b + x for b, x in zip(buffer, held, strict=True)]
    return found


@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)
def test_rounding_stays_within_the_doubt(encoder: Any) -> None:
    most, drawn = encoder.largest, np.random.default_rng()
    rows = np.column_stack([
        np.full(120, most),
        np.full(120, -most),
        np.tile([most, -most], 60),
        np.full(120, np.iinfo(np.int64).max),  # held
        drawn.integers(-9, 9, 120),
        np.full(120, -1),
        drawn.integers(-most, most, 120),
    ])  # fmt: skip
    found, exact = encode_all(encoder, rows), encode_exactly(encoder, rows)
    lost = [
        float(int(y) - x) for row, wanted in zip(found, exact, strict=True) for y, x in zip(row, wanted, strict=True)
    ]
    assert max(lost) <= 0
    assert min(lost) > -encoder.doubt
    if len(encoder.poles) > 1:
        assert min(lost) < -1  # there is something to pay for


def test_buffers_at_the_largest_sum_stay_within_their_bits() -> None:
    encoder = ENCODERS["slow"]
    row = np.array([encoder.largest, -encoder.largest])
    kept = (np.array([1 << 56, -(1 << 56)]),) * 2
    _, after = encoder.encode(row, kept)
    assert max(int(abs(int(b))) for buffer in after for b in buffer) <= 1 << 56


@pytest.mark.parametrize(("steps", "apart"), [(40, 8), (33, 5), (12, 12), (7, 1)])
def test_one_unit_moves_a_run_by_what_is_charged_and_by_hardly_less(steps: int, apart: int) -> None:
    """All contributions in one direction are the worst there is; a norm that is a thousandth smaller does not hold."""
    encoder, size = BufferedEncoder((SLOW, 1 << 29), (SCALE // 3, SCALE // 4)), 1 << 24
    others = np.random.default_rng().integers(-(1 << 30), 1 << 30, (steps, 2))
    charged = SCALE * size * encoder.norm(steps, apart)
    slack, moved = encoder.doubt * math.sqrt(steps * 2), []
    for first in range(apart):
        more = others.copy()
        more[first::apart, 0] += size
        moved.append(float(np.linalg.norm((encode_all(encoder, more) - encode_all(encoder, others)).astype(float))))
    assert max(moved) <= charged + slack
    assert moved[0] == max(moved) > 0.999 * charged
    for signs in itertools.product((1, -1), repeat=3):  # other directions move less
        more = others.copy()
        for place, sign in enumerate(signs):
            more[place * apart : place * apart + 1, place % 2] += sign * size  # where the run is that long
        assert (
            np.linalg.norm((encode_all(encoder, more) - encode_all(encoder, others)).astype(float)) <= charged + slack
        )


@pytest.mark.parametrize("encoder", [ENCODERS["fast"], ENCODERS["found"]])
def test_a_decoder_gives_back_what_was_encoded_and_goes_on_from_a_checkpoint(encoder: Any) -> None:
    rows = np.random.default_rng().integers(-1000, 1000, (60, 3))
    decode, found = make_decoder(encoder), []
    for number, encoded in enumerate(encode_all(encoder, rows)):
        if number == 30:
            kept = decode.state()
            decode = BufferedDecoder(encoder)
            decode.restore(kept)
        found.append(decode(encoded))
    assert np.abs(np.array(found) - rows).max() < 0.1  # what rounding leaves, after the decoder


def test_the_error_is_that_of_the_matrix_and_coefficients_are_those_of_the_recursion() -> None:
    encoder, steps = optimized_buffers(2, 50, 10), 50
    column = encoder.coefficients(steps)
    matrix = sum(np.diag(np.full(steps - j, c), -j) for j, c in enumerate(column))
    sums = np.tril(np.ones((steps, steps))) @ np.linalg.inv(matrix)
    assert encoder.error_of_sums(steps) == pytest.approx(np.linalg.norm(sums) / math.sqrt(steps))
    pattern = matrix[:, ::10].sum(axis=1)  # type: ignore[index]
    assert encoder.norm(steps, 10) == pytest.approx(np.linalg.norm(pattern))
    pulse = encode_all(encoder, np.array([[1 << 30]] + [[0]] * (steps - 1)))[:, 0] / (SCALE << 30)
    assert pulse == pytest.approx(column, abs=1e-6)
    assert (column >= 0).all()


@pytest.mark.parametrize(("steps", "apart"), [(200, 20), (500, 500), (400, 40)])
def test_two_buffers_do_better_than_eight_bands_and_no_worse_than_one(steps: int, apart: int) -> None:
    times = math.sqrt(-(-steps // apart))
    bands = optimized_encoder(8, steps)
    banded = times * math.hypot(*bands) / SCALE * mean_error(bands, steps)
    one, two = (optimized_buffers(k, steps, apart) for k in (1, 2))
    found = [e.norm(steps, apart) * e.error_of_sums(steps) for e in (one, two)]
    assert found[1] < 0.85 * banded
    assert found[1] <= found[0] * 1.001


def test_a_step_of_bands_is_what_it_was() -> None:
    sums = [np.array([value]) for value in (3, 5, 7)]
    kept = ()
    for number, step in enumerate(sums):
        encoded, kept = encode_step(encoder(2), step, kept)  # type: ignore[assignment]
        assert len(kept) == 1
        assert encoded[0] == 4096 * step[0] + (2048 * sums[number - 1][0] if number else 0)  # type: ignore[unreachable]
