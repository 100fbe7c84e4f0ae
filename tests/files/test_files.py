"""Files are there whole or not at all, held by one process, sealed, and never run."""

import contextlib
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosha.core.errors import InvalidParameter, StateRefused
from mosha.core.language import phrase
from mosha.files import atomic, sealed
from mosha.files.atomic import create_file, is_open_to_others, replace_file
from mosha.files.locks import FileLock
from mosha.files.packing import pack, unpack
from mosha.files.sealed import SealedFile, own_secret

WHAT = phrase("learning.another_path")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_what_is_packed_comes_back(value: Any) -> None:
    found = unpack(b"".join(pack(value)))
    assert found == value
    assert repr(found) == repr(value)


@pytest.mark.parametrize("kind", ["?", "i1", "u8", "f2", "f4", ">f8", "c16"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
def test_arrays_come_back_bit_for_bit_and_can_be_written_to(kind: str, shape: Any) -> None:
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    array = np.frombuffer(os.urandom(size) if kind != "?" else bytes(size), kind).reshape(shape)
    (found,) = unpack(b"".join(pack([array])))
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert found.flags.writeable


@pytest.mark.parametrize("value", [object(), np.array([object()]), {1, 2}, np.array(["text"]), lambda: 0, b"bytes"])
def test_what_is_not_plain_is_refused(value: Any) -> None:
    with pytest.raises(InvalidParameter, match="cannot be kept"):
        pack({"here": [value]})


@given(st.binary(max_size=300))
def test_bytes_from_elsewhere_are_refused_or_plain(data: Any) -> None:
    with contextlib.suppress(StateRefused):
        unpack(data)


def test_lengths_of_files_fall_into_few() -> None:
    lengths = {sum(map(len, pack(np.zeros(n, np.uint8)))) for n in range(0, 200_000, 997)}
    assert len(lengths) < 80
    assert min(lengths) == 4096


def box(path: Any, secret: Any, purpose: str = "a", magic: bytes = b"test\n") -> Any:
    return SealedFile(path, secret=secret, magic=magic, purpose=purpose, what=WHAT)


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 31, 32, 33, 100])
def test_a_sealed_file_gives_back_what_was_written_in_whatever_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setattr(sealed, "_PIECE", 16)
    content, secret = os.urandom(length), os.urandom(32)
    file = box(tmp_path / "f", secret)
    assert file.read() is None
    cut = secrets.randbelow(length + 1)
    file.write([content[:cut], memoryview(content[cut:])])
    assert file.read() == content
    assert content not in (tmp_path / "f").read_bytes() or length < 4


def test_a_sealed_file_refuses_whatever_is_not_exactly_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed, "_PIECE", 16)
    secret, path = os.urandom(32), tmp_path / "f"
    file = box(path, secret)
    file.write([os.urandom(48)])
    other = path.read_bytes()
    file.write([os.urandom(48)])
    whole = path.read_bytes()
    head, piece = 5 + 32, 32
    wrong = [whole[:n] for n in range(len(whole))]
    wrong += [whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :] for n in range(len(whole))]
    wrong += [whole + b"\0", whole[: head + piece] + other[head + piece :], b"", os.urandom(200)]
    wrong.append(whole[:head] + whole[head + piece : head + 2 * piece] + whole[head : head + piece] + whole[-piece:])
    for content in wrong:
        path.write_bytes(content)
        with pytest.raises(StateRefused, match="Nothing was read"):
            file.read()
    path.write_bytes(whole)
    for stranger in (box(path, os.urandom(32)), box(path, secret, purpose="b"), box(path, secret, magic=b"Test\n")):
        with pytest.raises(StateRefused):
            stranger.read()


def test_a_failed_write_leaves_what_stood_there_and_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "f"
    replace_file(path, [b"old"])

    def parts() -> Iterator[bytes]:
        yield b"new"
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        replace_file(path, parts())
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_file_is_its_owners_alone_unless_it_is_shared(tmp_path: Path) -> None:
    path = tmp_path / "f"
    before = os.umask(0o022)
    try:
        replace_file(path, [b"shared"], shared=True)
        with path.open("rb") as file:
            assert is_open_to_others(file.fileno()) is (os.name != "nt")
        replace_file(path, [b"own"])
        with path.open("rb") as file:
            assert not is_open_to_others(file.fileno())
    finally:
        os.umask(before)
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("links", [True, False])
def test_a_file_is_created_once_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def none(*_: Any) -> NoReturn:
        raise PermissionError

    if not links:
        monkeypatch.setattr(atomic.os, "link", none)  # type: ignore[attr-defined]
    path = tmp_path / "f"
    assert create_file(path, [b"first"])
    assert not create_file(path, [b"second"])
    assert path.read_bytes() == b"first"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
    with path.open("rb") as file:
        assert not is_open_to_others(file.fileno())
        path.chmod(0o640)
        assert is_open_to_others(file.fileno())


def test_a_secret_is_made_once_and_not_for_a_file_that_had_another(tmp_path: Path) -> None:
    path = tmp_path / "f"
    first = own_secret(path, what=WHAT, again=WHAT)
    assert own_secret(path, what=WHAT, again=WHAT) == first
    path.write_bytes(b"state")
    (tmp_path / "f.key").unlink()
    with pytest.raises(StateRefused, match="Give another path"):
        own_secret(path, what=WHAT, again=WHAT)


def test_a_lock_has_one_holder_among_processes_and_is_free_after_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    script = (
        "import sys, pathlib, os\nfrom mosha.files.locks import FileLock\n"
        f"lock = FileLock.take(pathlib.Path({str(path)!r}))\nprint(lock is not None, flush=True)\n"
        "sys.stdin.readline()\nos._exit(9)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "True\n"
    assert FileLock.take(path) is None
    child.communicate("\n")
    lock = FileLock.take(path)
    assert lock is not None
    assert FileLock.take(path) is None
    lock.release(remove=True)
    lock.release(remove=True)
    assert not path.exists()
    again = FileLock.take(path)
    again.release()
    assert path.exists()
