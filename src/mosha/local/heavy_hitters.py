"""Which values are popular, where nobody can list them beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive, positive_integer
from mosha.local.protocols.choice import best_table
from mosha.local.protocols.prefixes import Prefixes
from mosha.local.protocols.protocol import Protocol
from mosha.local.several import OneOf
from mosha.local.survey import Survey, require_reports

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mosha.local.collect.hitters import Hitters

__all__ = ["HeavyHitters", "check_alphabet"]

_BUCKETS = 1 << 18
_MOST_SYMBOLS = (1 << 17) - 2  # with the end and what is not among them a symbol fits in the first word
_FEWEST_BUCKETS, _MOST_BUCKETS = 64, 1 << 20


class HeavyHitters(Survey):
    """A survey of texts that nobody lists: words, addresses, n-grams; the popular ones are found from their beginnings.

    Each device tells the beginning of its text, of a length that it draws at random: hashed into one of `buckets`, and
    told as `Frequency` tells a value. The collector extends what stands out, word by word (Wang, Li and Jha's prefix
    extending method, with tables of counts as in TreeHist of Bassily, Nissim, Stemmer and Thakurta).

    Guarantee:
        That of `OneOf`: which length and which hash function are told is drawn without a look at the text, and the
        bucket is told by an `epsilon`-private protocol. Texts that are cut or have strange symbols are texts too.

    Units:
        `longest` is in bytes of UTF-8, or in members of `alphabet`. Estimates are numbers of people. Twice the length
        needs about twice as many people for the same error.

    Args:
        longest: how much of a text is told; the rest is cut.
        epsilon: what one report may reveal.
        alphabet: the characters of texts, if they are few; a list of words makes values lists of words (n-grams).
        buckets: at most so many; more keep more popular values apart and take more memory of the collector.

    >>> survey = HeavyHitters(longest=12, alphabet="abcdefghijklmnopqrstuvwxyz", epsilon=4)
    >>> survey.levels, len(survey.report("hello"))
    (5, 5)
    """

    kind = "heavy_hitters"
    randomizer: OneOf

    def __init__(
        self,
        *,
        longest: int,
        epsilon: float,
        alphabet: Sequence[str] | None = None,
        buckets: int = _BUCKETS,
    ) -> None:
        self.epsilon = positive("epsilon", epsilon)
        self.buckets = check_buckets(buckets, _MOST_BUCKETS)
        self.protocol: Protocol = best_table(self.buckets, self.epsilon)
        length, listed = positive_integer("longest", longest), check_alphabet(alphabet)
        self.prefixes = Prefixes(length, listed, self.protocol.size)
        self.randomizer = OneOf(self.epsilon, (self.protocol,) * (self.levels * self.prefixes.rows))

    @property
    def levels(self) -> int:
        """Of how many lengths a device tells one."""
        return self.prefixes.levels

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain data; the protocol, which is the same for every length, is named once."""
        return super().to_dict() | {"parts": len(self.randomizer.parts), "part": self.protocol.describe()}

    def _question_fields(self) -> dict[str, Any]:
        listed = self.prefixes.alphabet
        alphabet = listed if listed is None or self.prefixes.spells_tokens else "".join(listed)
        return {
            "longest": self.prefixes.longest,
            "alphabet": list(alphabet) if isinstance(alphabet, tuple) else alphabet,
            "buckets": self.buckets,
            "widths": list(self.prefixes.widths),
            "seeds": [str(seed) for seed in self.prefixes.seeds],
        }

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> HeavyHitters:
        given = {name: fields[name] for name in ("longest", "epsilon", "alphabet", "buckets")}
        return cls(**given)

    def _describe(self) -> str:
        listed = self.prefixes.alphabet
        symbols = "bytes" if listed is None else f"symbols of {len(listed)}"
        return f"of texts of at most {self.prefixes.longest} {symbols}, {self.protocol.name}"

    def _encode(self, value: object) -> tuple[int, ...]:
        return self.prefixes.buckets_of(value)

    def _encode_many(self, values: object) -> Any:
        import numpy as np

        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise InvalidParameter("local.not_one_value_each", parameter="values")
        numbers: dict[Any, int] = {}
        codes: list[tuple[int, ...]] = []
        places = []
        for value in values:
            key = tuple(self.prefixes.check_value(value))
            if key not in numbers:
                numbers[key] = len(codes)
                codes.append(self._encode(value))
            places.append(numbers[key])
        known = np.array(codes, np.int32).reshape(len(codes), len(self.randomizer.parts))
        return known[np.array(places, np.int64)]

    def count_answers(self, counters: NDArray[np.int64], reports: int) -> int:  # noqa: ARG002
        return int(counters[: len(self.randomizer.parts)].min())

    def decode(
        self, counters: NDArray[np.int64], reports: int, *, kept: int = 512, confidence: float = 0.95
    ) -> Hitters:
        """The popular values.

        Args:
            counters: of a collector.
            reports: how many it counted.
            kept: how many beginnings are followed at a time.
            confidence: that no value is among them which nobody has, but for collisions of hashes.
        """
        from mosha.local.collect.hitters import find_hitters
        from mosha.local.collect.report_tables import ReportTables

        require_reports(self.count_answers(counters, reports))
        tables = ReportTables.read(self.prefixes, self.protocol, counters)
        kept = positive_integer("kept", kept)
        found = find_hitters(self.prefixes, tables, reports, kept=kept, confidence=confidence)
        return replace(found, epsilon=self.protocol.epsilon)


def check_alphabet(alphabet: object) -> tuple[str, ...] | None:
    """The symbols of texts, or a refusal."""
    if alphabet is None:
        return None
    if not isinstance(alphabet, str | Sequence) or isinstance(alphabet, bytes) or not len(alphabet):
        raise InvalidParameter("local.not_an_alphabet", parameter="alphabet")
    listed = tuple(alphabet)
    if not all(isinstance(symbol, str) and symbol for symbol in listed) or len(set(listed)) != len(listed):
        raise InvalidParameter("local.not_an_alphabet", parameter="alphabet")
    if len(listed) > _MOST_SYMBOLS:
        raise InvalidParameter("local.lists_too_long", parameter="alphabet", count=len(listed), most=_MOST_SYMBOLS)
    return listed


def check_buckets(buckets: int, most: int) -> int:
    """A number of buckets that a collector can hold, or a refusal."""
    count = positive_integer("buckets", buckets)
    if not _FEWEST_BUCKETS <= count <= most:
        raise InvalidParameter("local.not_buckets", parameter="buckets", least=_FEWEST_BUCKETS, most=most)
    return count
