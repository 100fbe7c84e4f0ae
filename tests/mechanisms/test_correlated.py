"""Correlated noise: the encoder is the root of summing, the decoder undoes it, the sensitivity is what it moves."""

import math
from typing import Any

import numpy as np
import pytest

from mosha.federated.clipping import STEPS
from mosha.federated.plans.correlated_rounds import total_sensitivity
from mosha.mechanisms.plans.correlated import SCALE, Decoder, column_norm, encode_sums, encoder, squared_column
from mosha.noise import secure, uniform


def matrix(bands: Any, steps: Any) -> Any:
    """C, times SCALE."""
    c = encoder(bands)
    return sum(np.diag(np.full(steps - j, c[j]), -j) for j in range(min(bands, steps)))


def encode_all(sums: Any, bands: Any) -> list[Any]:
    return [encode_sums(sums[t::-1] if t else sums[:1], bands) for t in range(len(sums))]


@pytest.mark.parametrize("bands", [1, 2, 3, 8, 64])
def test_the_encoder_is_the_root_of_prefix_sums_cut_to_a_band(bands: int) -> None:
    c = np.array(encoder(bands)) / SCALE
    assert (np.abs(np.convolve(c, c)[:bands] - 1) < bands * 2.0**-12).all()
    assert column_norm(bands) == pytest.approx(math.sqrt(float((c * c).sum())))
    assert squared_column(bands) == sum(x * x for x in encoder(bands))
    assert column_norm(3) == pytest.approx(math.sqrt(1 + 1 / 4 + 9 / 64))


@pytest.mark.parametrize("bands", [2, 5, 9])
def test_sums_are_encoded_as_the_matrix_says_and_decoded_to_what_they_were(bands: int) -> None:
    sums = [uniform(2001, 6, rng=secure()) - 1000 for _ in range(9)]
    encoded = encode_all(sums, bands)
    assert np.array_equal(np.stack(encoded), matrix(bands, 9) @ np.stack(sums))
    decode = Decoder(bands)
    assert np.allclose([decode(y) for y in encoded], sums, atol=1e-6)


def test_a_decoder_that_was_kept_goes_on_where_it_was() -> None:
    encoded = encode_all([np.array([t, 1 - t]) for t in range(6)], 3)
    one, other = Decoder(3), Decoder(3)
    for y in encoded[:3]:
        one(y)
    other.restore(one.state())
    assert all(np.array_equal(one(y), other(y)) for y in encoded[3:])


def test_one_band_is_no_encoder() -> None:
    assert Decoder(1)(np.array([3, -4])).tolist() == [3.0, -4.0]
    assert Decoder(1).state() == []


@pytest.mark.parametrize(("bands", "apart", "steps"), [(4, 4, 12), (3, 5, 11), (8, 8, 9)])
def test_a_unit_moves_all_steps_by_its_sensitivity_and_no_less(bands: int, apart: int, steps: int) -> None:
    """Contributions of full length, `apart` steps apart: equality, but for the column that the end cuts off."""
    sums = [np.array([STEPS if t % apart == 0 else 0, 0]) for t in range(steps)]
    moved = math.sqrt(sum(float(x) ** 2 for y in encode_all(sums, bands) for x in y))
    participations = -(-steps // apart)
    assert moved <= total_sensitivity(bands, participations)
    assert total_sensitivity(bands, participations) <= math.sqrt(participations) * column_norm(
        bands
    ) * SCALE * STEPS * (1 + 1e-12)
    if steps % apart == 0 or steps % apart >= bands:
        assert moved == pytest.approx(total_sensitivity(bands, participations))


def test_units_that_come_back_too_soon_would_move_more_than_is_charged() -> None:
    sums = [np.array([STEPS]), np.array([STEPS]), *[np.array([0])] * 6]
    moved = math.sqrt(sum(float(y[0]) ** 2 for y in encode_all(sums, 4)))
    assert moved > 1.2 * total_sensitivity(4, 2)
