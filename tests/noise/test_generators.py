"""Every random byte is handed out once, and only to whom it belongs."""

import copy
import hashlib
import hmac
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from mosha.core.errors import InsecureRandomness, InvalidParameter
from mosha.core.measurement import Rng
from mosha.noise import KeyedRandom, SecureRandom, SeededRandom, discrete_gaussian, discrete_laplace, secure
from mosha.noise.generators import secure_random as module
from tests.noise.goodness import rejects

KEY = bytes(range(32))
EVERY = [SecureRandom, lambda: SeededRandom(7), lambda: KeyedRandom(KEY, "a")]


@pytest.mark.parametrize("make", EVERY)
def test_every_generator_obeys_the_protocol(make: Any) -> None:
    generator = make()
    assert isinstance(generator, Rng)
    assert [len(generator.bytes(n)) for n in (0, 1, 17, 512, 513, 100_000, 300_000)] == [
        0, 1, 17, 512, 513, 100_000, 300_000,
    ]  # fmt: skip
    words = generator.words(1000, np.uint32)  # type: ignore[attr-defined]
    assert words.dtype == np.uint32
    assert words.shape == (1000,)


def test_only_secret_generators_call_themselves_secure() -> None:
    assert SecureRandom().secure
    assert KeyedRandom(KEY).secure
    assert not SeededRandom(1).secure
    assert not issubclass(SeededRandom, SecureRandom)
    for generator in (SecureRandom(), SeededRandom(1), KeyedRandom(KEY)):
        with pytest.raises(AttributeError):
            generator.secure = True  # type: ignore[misc]


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("size", [8, 4096])
def test_bytes_are_uniform(make: Any, size: int) -> None:
    """Each of the 2048 bits-of-value events below: at most 1e-10 false alarms together."""
    generator = make()
    drawn = np.frombuffer(b"".join(generator.bytes(size) for _ in range(400_000 // size)), np.uint8)
    counts = np.bincount(drawn, minlength=256)
    assert not rejects([(int(count), drawn.size, 1 / 256) for count in counts])
    skewed = np.where(drawn < 8, 0, drawn)
    assert rejects([(int(count), drawn.size, 1 / 256) for count in np.bincount(skewed, minlength=256)])


def test_secure_bytes_never_repeat() -> None:
    generator = SecureRandom()
    drawn = [generator.bytes(16) for _ in range(20_000)]
    assert len(set(drawn)) == len(drawn)
    assert generator.bytes(1000) != generator.bytes(1000)


@pytest.mark.parametrize("largest", [64, 1 << 18, (1 << 18) + 7])
def test_pieces_are_one_expansion_under_a_key_of_its_own(largest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.os, "urandom", lambda n: KEY[:n])  # type: ignore[attr-defined]
    stream = Cipher(algorithms.AES(KEY), modes.CTR(bytes(16))).encryptor()
    piece = SecureRandom().pieces(largest)
    for n in (largest, 0, 5, largest, largest - 1):
        assert bytes(piece(n)) == stream.update(bytes(n))
    monkeypatch.undo()
    assert bytes(SecureRandom().pieces(64)(64)) != bytes(SecureRandom().pieces(64)(64))


def test_the_pool_forgets_what_it_gave() -> None:
    generator = SecureRandom()
    given = generator.bytes(32)
    pool = generator._pool
    assert given not in bytes(pool._buffer)
    assert bytes(pool._buffer[:32]) == bytes(32)


def test_threads_never_share_a_byte() -> None:
    generator, drawn = SecureRandom(), []

    def work() -> None:
        drawn.append([generator.bytes(8) for _ in range(5000)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pieces = [piece for some in drawn for piece in some]
    assert len(set(pieces)) == len(pieces) == 40_000  # a chance collision: below 1e-10


FORK = """
import os, sys
from mosha.noise import secure, discrete_laplace
secure().bytes(8)                              # a pool exists before the fork
ends = []
for _ in range(3):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        grandchild = os.fork()
        if grandchild:
            os.waitpid(grandchild, 0)
        data = secure().bytes(64) + secure().bytes(600)[:64] + discrete_laplace(2**50, 8).tobytes()
        os.write(write, data)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    ends.append(read)
pieces = [secure().bytes(64) + secure().bytes(600)[:64] + discrete_laplace(2**50, 8).tobytes()]
for end in ends:
    data = b""
    while chunk := os.read(end, 4096):
        data += chunk
    pieces += [data[:192], data[192:]]
words = [piece[i:i + 8] for piece in pieces for i in range(0, len(piece), 8)]
assert len(pieces) == 7 and all(len(piece) == 192 for piece in pieces), [len(p) for p in pieces]
assert len(set(words)) == len(words) == 7 * 24, "two processes share bytes"
"""


def test_forked_processes_never_share_a_byte() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_pool_of_another_process_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = SecureRandom()
    generator.bytes(8)
    inherited = generator._pool
    rest = bytes(inherited._buffer)
    monkeypatch.setattr(module.os, "getpid", lambda: -1)  # type: ignore[attr-defined]
    fresh = generator.bytes(8)
    assert generator._pool is not inherited
    assert fresh not in rest


def test_a_fork_that_keeps_the_process_id_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = SecureRandom()
    generator.bytes(8)
    inherited = generator._pool
    monkeypatch.setattr(module, "_forks", module._forks + 1)
    generator.bytes(8)
    assert generator._pool is not inherited


def test_the_process_has_one_generator() -> None:
    assert secure() is secure()
    assert secure().secure


@pytest.mark.parametrize("generator", [SecureRandom(), KeyedRandom(KEY)])
def test_a_secret_generator_cannot_be_copied(generator: Any) -> None:
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InsecureRandomness, match="same noise twice"):
            duplicate(generator)


def test_a_secure_generator_takes_no_seed() -> None:
    with pytest.raises(InvalidParameter, match="takes no seed"):
        SecureRandom(42)
    assert not hasattr(SecureRandom(), "seed")
    with pytest.raises(AttributeError):
        SecureRandom().state = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("n", [-1, 1.5, "8", None])
def test_a_wrong_number_of_bytes_is_refused(make: Any, n: Any) -> None:
    with pytest.raises(InvalidParameter):
        make().bytes(n)


@pytest.mark.parametrize("dtype", [np.int64, np.float64, bool])
def test_words_are_unsigned_integers(dtype: Any) -> None:
    with pytest.raises(InvalidParameter, match="unsigned"):
        SecureRandom().words(3, dtype)


@pytest.mark.parametrize("make", EVERY[1:])
def test_a_replayed_stream_does_not_depend_on_how_it_is_cut(make: Any) -> None:
    whole, cut = make().bytes(10_000), make()
    assert b"".join(cut.bytes(n) for n in (1, 15, 16, 968, 9000)) == whole


def test_a_seed_repeats_and_another_does_not() -> None:
    assert SeededRandom(5).bytes(99) == SeededRandom(5).bytes(99)
    assert SeededRandom(5).bytes(99) != SeededRandom(6).bytes(99)


@pytest.mark.parametrize("seed", [1.0, "1", None, True, b"1"])
def test_a_seed_is_an_integer(seed: Any) -> None:
    with pytest.raises(InvalidParameter):
        SeededRandom(seed)


def test_contexts_do_not_run_into_each_other() -> None:
    contexts = [(), ("",), ("a", "b"), ("ab",), ("a", "b", ""), ("1",), (1,), (b"1",), (-1,), ("a", 1), ("a", "1")]
    streams = {KeyedRandom(KEY, *context).bytes(32) for context in contexts}
    assert len(streams) == len(contexts)
    assert KeyedRandom(KEY[::-1], "a").bytes(32) != KeyedRandom(KEY, "a").bytes(32)


def test_a_keyed_stream_is_hkdf_and_aes_in_counter_mode() -> None:
    """Computed a second time from the standard library's HMAC and single AES blocks (RFC 5869, NIST SP 800-38A)."""
    info = b"s" + (6).to_bytes(8, "little") + b"visits" + b"i" + (1).to_bytes(8, "little") + b"7"
    extracted = hmac.digest(b"mosha.noise.KeyedRandom.1", KEY, "sha256")
    key = hmac.digest(extracted, info + b"\x01", "sha256")
    block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    expected = b"".join(block.update(counter.to_bytes(16, "big")) for counter in range(4))
    assert KeyedRandom(KEY, "visits", 7).bytes(64) == expected


@pytest.mark.parametrize("key", [b"", bytes(31), "a" * 32, None, bytearray(32)])
def test_a_short_or_wrong_key_is_refused(key: Any) -> None:
    with pytest.raises(InvalidParameter):
        KeyedRandom(key)


@pytest.mark.parametrize("part", [1.5, None, True, ("a",)])
def test_a_wrong_context_is_refused(part: Any) -> None:
    with pytest.raises(InvalidParameter):
        KeyedRandom(KEY, part)


def test_a_keyed_generator_is_refused_in_a_forked_child(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = KeyedRandom(KEY, "a")
    monkeypatch.setattr(module.os, "getpid", lambda: -1)  # type: ignore[attr-defined]
    with pytest.raises(InsecureRandomness, match="another process"):
        generator.bytes(8)


def test_no_generator_shows_its_secret() -> None:
    assert repr(KeyedRandom(KEY, "a")) == "KeyedRandom(...)"
    assert repr(SecureRandom()) == "SecureRandom()"


def test_streams_mean_the_same_for_ever() -> None:
    """Golden: a crashed release is made again by a later version. A change here breaks replay."""
    assert SeededRandom(1).bytes(8) == hashlib_stream(1)[:8]
    assert discrete_laplace(10, 12, rng=SeededRandom(1)).tolist() == [-8, 12, -1, 6, -30, 4, -9, 13, 0, -28, -8, 0]
    assert [discrete_laplace(2.0**40, rng=SeededRandom(n)) for n in range(3)] == [
        927163175487,
        864886310769,
        -1892563806155,
    ]
    assert digest(discrete_laplace(2**40, 100_000, rng=SeededRandom(2))) == "747eeddcd8efd220"
    assert digest(discrete_gaussian(12.5, 100_000, rng=SeededRandom(2))) == "6f6df9c286ab3434"


def digest(samples: Any) -> Any:
    return hashlib.sha256(samples.astype("<i8").tobytes()).hexdigest()[:16]


def hashlib_stream(seed: Any) -> Any:
    key = hashlib.sha256(f"mosha.noise.SeededRandom.1:{seed}".encode()).digest()
    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(64))
