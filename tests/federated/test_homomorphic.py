"""Sums under encryption are the sums of secure aggregation, and nobody but the key holder reads them."""

import numpy as np
import pytest
import tenseal

from mosha import noise
from mosha.core.errors import InvalidParameter
from mosha.federated import (
    Distributed,
    KeyHolder,
    Session,
    add_encrypted,
    encrypt_numbers,
    securely_summed,
    sum_under_encryption,
)


def test_encryption_and_masks_open_the_same_sum() -> None:
    rng = np.random.default_rng()
    inputs = {n: rng.integers(0, 1 << 32, 5000, np.uint32) for n in range(1, 5)}
    session = Session.begin(list(inputs), partners=3, survivors=2, width=5000, rng=noise.secure())
    expected = sum(inputs.values(), np.zeros(5000, np.uint32))
    assert np.array_equal(sum_under_encryption(inputs), expected)
    assert np.array_equal(securely_summed(session, inputs, noise.secure()), expected)


def test_noisy_updates_are_sent_either_way() -> None:
    plan = Distributed(rounds=1, clients=4, clip=1.0, survivors=3).calibrate(epsilon=8, delta=1e-5)
    encoded = {n: plan.encode(np.full(10, 0.1), b"label", noise.secure()) for n in range(4)}
    assert np.array_equal(sum_under_encryption(encoded), sum(encoded.values(), np.zeros(16, np.uint32)))


def test_without_the_key_nothing_is_opened_and_equal_inputs_look_different() -> None:
    holder = KeyHolder()
    numbers = np.arange(8, dtype=np.uint32)
    first, second = (encrypt_numbers(numbers, holder.public_key) for _ in range(2))
    assert first != second
    context = tenseal.context_from(holder.public_key)
    assert not context.has_secret_key()
    with pytest.raises(ValueError, match="secret"):
        tenseal.bfv_vector_from(context, first[0]).decrypt()
    wrong = KeyHolder()
    try:
        opened = wrong.open_sum(first, width=8)
    except ValueError:
        return
    assert not np.array_equal(opened, numbers)


def test_what_is_not_in_the_ring_is_refused() -> None:
    holder = KeyHolder()
    with pytest.raises(InvalidParameter, match="uint32"):
        encrypt_numbers(np.array([0.5]), holder.public_key)
    with pytest.raises(InvalidParameter, match="inputs"):
        add_encrypted([], holder.public_key)
