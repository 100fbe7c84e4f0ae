"""Texts of any kind as short words, so that popular ones can be found from their beginnings."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from mosha.core.errors import InvalidParameter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["OTHER", "Prefixes"]

OTHER = "\N{REPLACEMENT CHARACTER}"
_FIRST, _STEP = 18, 12  # bits of the first word, and of a later one at most
_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15  # with the two factors below: the finalizer of SplitMix64
_FACTORS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_MOST_LEVELS = 128


@dataclass(frozen=True)
class Prefixes:
    """A text as symbols of equally many bits, cut into words; each level adds a word, and is hashed into buckets.

    A text ends with the symbol 0, and with zeros up to `longest` symbols; what is longer is cut there. A symbol that
    the alphabet does not have becomes one symbol, `OTHER`. So every text has a code, and no code depends on data.

    Fields:
        longest: how many symbols are read: bytes of UTF-8, or members of the alphabet.
        alphabet: the symbols, or None for the bytes of UTF-8.
        buckets: how many buckets a level is hashed into.
        rows: how many hash functions there are.

    >>> code = Prefixes(4, tuple("abc"), 1024)
    >>> code.bits, code.widths, code.read(code.words_of("cab"))
    (3, (12,), 'cab')
    """

    longest: int
    alphabet: tuple[str, ...] | None
    buckets: int
    rows: int = 2

    @cached_property
    def bits(self) -> int:
        """Of one symbol: the end, the alphabet, and whatever is not in it."""
        return 8 if self.alphabet is None else (len(self.alphabet) + 1).bit_length()

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The bits of each word: the first has up to 18, the others share the rest, at most 12 each."""
        whole = self.longest * self.bits
        first = min(_FIRST, whole)
        count = -((first - whole) // _STEP)
        if count + 1 > _MOST_LEVELS:
            raise InvalidParameter("local.text_too_long", parameter="longest", bits=whole)
        rest = [(whole - first) * (i + 1) // count - (whole - first) * i // count for i in range(count)]
        return (first, *rest)

    @property
    def levels(self) -> int:
        return len(self.widths)

    @property
    def spells_tokens(self) -> bool:
        """Whether a value is a list of tokens and not one text."""
        return self.alphabet is not None and any(len(symbol) != 1 for symbol in self.alphabet)

    @property
    def largest_symbol(self) -> int:
        return 255 if self.alphabet is None else len(self.alphabet) + 1

    def check_value(self, value: object) -> Sequence[str]:
        """A text, or a list of tokens where the alphabet has some; anything else is refused."""
        if not self.spells_tokens:
            if not isinstance(value, str):
                raise InvalidParameter("local.not_a_text", parameter="value")
            return value
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise InvalidParameter("local.not_tokens", parameter="value")
        if not all(isinstance(token, str) for token in value):
            raise InvalidParameter("local.not_tokens", parameter="value")
        return value

    def symbols_of(self, value: object) -> list[int]:
        """The symbols of a value, cut at `longest`."""
        own = self.check_value(value)
        if self.alphabet is None:
            text = "".join(own).encode("utf-8", "replace")
            return [byte or 255 for byte in text[: self.longest]]  # 255 is no byte of UTF-8
        other = len(self.alphabet) + 1
        return [self._numbers.get(symbol, other) for symbol in own[: self.longest]]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {symbol: number for number, symbol in enumerate(self.alphabet or (), 1)}

    def words_of(self, value: object) -> list[int]:
        """One word a level."""
        whole = 0
        symbols = self.symbols_of(value)
        for symbol in symbols:
            whole = whole << self.bits | symbol
        whole <<= self.bits * (self.longest - len(symbols))
        words, left = [], self.longest * self.bits
        for width in self.widths:
            left -= width
            words.append(whole >> left & (1 << width) - 1)
        return words

    def read(self, words: Sequence[int]) -> str | tuple[str, ...]:
        """The value with these words."""
        whole = 0
        for word, width in zip(words, self.widths, strict=True):
            whole = whole << width | int(word)
        places = range(self.longest - 1, -1, -1)
        symbols = [whole >> self.bits * place & (1 << self.bits) - 1 for place in places]
        symbols = symbols[: symbols.index(0)] if 0 in symbols else symbols
        if self.alphabet is None:
            return bytes(symbols).decode("utf-8", "replace")
        told = [self.alphabet[symbol - 1] if symbol <= len(self.alphabet) else OTHER for symbol in symbols]
        return tuple(told) if self.spells_tokens else "".join(told)

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Where each hash function starts; public, and the same everywhere."""
        names = (f"mosha prefixes {row}".encode() for row in range(self.rows))
        return tuple(int.from_bytes(hashlib.sha256(name).digest()[:8], "little") for name in names)

    def buckets_of(self, value: object) -> tuple[int, ...]:
        """The bucket of each level and row, level by level."""
        return tuple(self.hash_words(self.words_of(value)))

    def level_of_end(self, symbols: int) -> int:
        """The level that reads the end of a text of so many symbols; the last one, where it is cut."""
        ends = accumulate(self.widths)
        needed = (symbols + 1) * self.bits
        return next((level for level, end in enumerate(ends) if end >= needed), self.levels - 1)

    def hash_words(self, words: Sequence[int]) -> list[int]:
        """The bucket of each level and row, of a value with these words."""
        found, states = [], list(self.seeds)
        for word in words:
            states = [_mix(state + _GOLDEN * (word + 1) & _WORD) for state in states]
            found += [(state >> 32) * self.buckets >> 32 for state in states]
        return found

    def extend(self, states: NDArray[np.uint64], words: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The states of many prefixes that are one word longer; what `hash_words` does for one."""
        import numpy as np

        found = states + np.uint64(_GOLDEN) * (words.astype(np.uint64) + np.uint64(1))
        for shift, factor in _FACTORS:
            found = (found ^ found >> np.uint64(shift)) * np.uint64(factor)
        return np.asarray(found ^ found >> np.uint64(31))

    def place(self, states: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The buckets of these states."""
        import numpy as np

        return ((states >> np.uint64(32)) * np.uint64(self.buckets) >> np.uint64(32)).astype(np.int64)


def _mix(state: int) -> int:
    for shift, factor in _FACTORS:
        state = (state ^ state >> shift) * factor & _WORD
    return state ^ state >> 31
