"""Which way of reporting a category has the least error, and why."""

from __future__ import annotations

from dataclasses import dataclass

from mosha.core.errors import InvalidParameter
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.number import positive, positive_integer
from mosha.local.protocols.hadamard import Hadamard
from mosha.local.protocols.hashing import LocalHashing
from mosha.local.protocols.k_ary import KAry
from mosha.local.protocols.odds import Odds
from mosha.local.protocols.projective import Projective, largest_space
from mosha.local.protocols.protocol import Protocol
from mosha.local.protocols.subset import SubsetSelection
from mosha.local.protocols.unary import OptimisedUnary, SymmetricUnary

__all__ = ["PROTOCOLS", "Choice", "best", "protocol_by_name"]

PROTOCOLS: tuple[type[Protocol], ...] = (
    KAry,
    SubsetSelection,
    Projective,
    OptimisedUnary,
    SymmetricUnary,
    LocalHashing,
    Hadamard,
)

_MOST_WORK = 1 << 16  # of a collector for each report


@dataclass(frozen=True)
class Choice:
    """The `protocol` that was chosen, the ones that were not, and the reason in words.

    `considered` are those within `bytes_per_report`, the best first; others are `too_long`, or `too_costly` for the
    collector.

    >>> chosen = best(size=4, epsilon=1)
    >>> chosen.protocol in chosen.considered
    True
    """

    protocol: Protocol
    considered: tuple[Protocol, ...]
    too_long: tuple[Protocol, ...]
    bytes_per_report: int
    too_costly: tuple[Protocol, ...] = ()

    @property
    def why(self) -> str:
        chosen = self.protocol
        said = (
            f"{chosen.name}: {1 + chosen.width} bytes per report, n times variance {chosen.variance:.4g} for a rare "
            f"value, the least of {len(self.considered)} within {self.bytes_per_report} bytes"
        )
        others = [other for other in self.considered if other is not chosen]
        if others:
            said += f"; next is {others[0].name} with {others[0].variance:.4g}"
        better = [other for other in self.too_long if other.variance < chosen.variance]
        if better:
            said += f". {better[0].name} would have {better[0].variance:.4g} in {1 + better[0].width} bytes"
        costly = [other for other in self.too_costly if other.variance < chosen.variance]
        if costly:
            work = f"{costly[0].work_per_report:,} operations of the collector per report"
            said += f". {costly[0].name} would have {costly[0].variance:.4g}, but takes {work}"
        return said + "."

    def __str__(self) -> str:
        return self.why


@explain_wrong_calls
def best(size: int, epsilon: float, *, bytes_per_report: int = 8) -> Choice:
    """The protocol with the least error at `epsilon` for `size` values whose reports fit in `bytes_per_report`.

    Protocols whose collector would work through more than 65,536 values for every short report are left out.

    Units:
        `bytes_per_report` counts the first byte, which names version and survey.

    >>> print(best(1000, 1.0))
    projective: 3 bytes per report, n times variance 3.761 for a rare value, the least of 3 within 8 bytes; next is
    hadamard with 4.683. subset-selection would have 3.673 in 126 bytes.
    >>> best(2, 1.0).protocol.name
    'k-ary'
    """
    positive_integer("bytes_per_report", bytes_per_report)
    size, epsilon = positive_integer("size", size), positive("epsilon", epsilon)
    made = [found for kind in PROTOCOLS if (found := _make_protocol(kind, size, epsilon)) is not None]
    costly = tuple(protocol for protocol in made if protocol.work_per_report > max(_MOST_WORK, bytes_per_report))
    made = [protocol for protocol in made if protocol not in costly]
    ordered = sorted(made, key=lambda protocol: (round(protocol.variance, 12), protocol.width))
    fitting = [protocol for protocol in ordered if 1 + protocol.width <= bytes_per_report]
    if not fitting:
        least = min(1 + protocol.width for protocol in ordered)
        raise InvalidParameter(
            "local.reports_too_short", parameter="bytes_per_report", size=size, bytes=bytes_per_report, least=least
        )
    others = tuple(protocol for protocol in ordered if protocol not in fitting)
    return Choice(fitting[0], tuple(fitting), others, bytes_per_report, costly)


def _make_protocol(kind: type[Protocol], size: int, epsilon: float) -> Protocol | None:
    try:
        return kind(size, epsilon)
    except InvalidParameter:
        if kind is KAry:  # which suits every survey: the question itself is wrong
            raise
        return None


def best_table(most: int, epsilon: float) -> Protocol:
    """The protocol with the least error among those that fill a table of at most `most` cells, and more than an eighth.

    For whoever may choose the number of values, as hash functions do: then no cell of the table is wasted.

    >>> best_table(1 << 18, 4.0).size, best_table(1 << 18, 4.0).cells
    (151740, 151740)
    """
    tables: list[Protocol] = [Hadamard(most - 1, epsilon)]
    size = largest_space(most, Odds.of(epsilon))
    if size is not None:
        tables.append(Projective(size, epsilon, size))
    return min(tables, key=lambda table: (round(table.variance, 12), -table.size))


def protocol_by_name(name: str, size: int, epsilon: float) -> Protocol:
    """The protocol of that name.

    >>> protocol_by_name("hadamard", 10, 1.0).width
    1
    """
    kind = Protocol.kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        known = sorted(kind.name for kind in PROTOCOLS)
        raise InvalidParameter("local.unknown_protocol", parameter="protocol", protocols=known)
    return kind(size, epsilon)
