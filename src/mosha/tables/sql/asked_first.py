"""Numbers about all people inside a query, such as (SELECT AVG(x) FROM t): asked and paid before the rest of it.

Numbers about public tables that stand beside results are found first, too: exactly and for nothing.

Guarantee:
    Each number about people is a release of its own. The query is then asked with the noisy number in its place, which
    is public by then, and pays for itself: an account admits questions that are chosen by earlier answers (`rules.md`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from numbers import Real
from typing import Any

from sqlglot import exp

from mosha.core.budget import Budget
from mosha.core.errors import MoshaError
from mosha.core.language import say
from mosha.core.showing import write_number
from mosha.tables.answer import Answer
from mosha.tables.question import Question
from mosha.tables.questions.look import look
from mosha.tables.sql.aggregate import is_aggregate
from mosha.tables.sql.public_rows import PublicStatement
from mosha.tables.sql.query import Statement
from mosha.tables.sql.scalar import Refused, name_of
from mosha.tables.sql.tables_in import make_reader

__all__ = [
    "AskedFirst",
    "Prices",
    "_list_texts",
    "add_receipts",
    "check_any_number",
    "check_room",
    "find_values",
    "replace_values",
    "split_prices",
]  # fmt: skip

Prices = Mapping[str, float | None]


def find_values(select: exp.Select, tables: Mapping[str, object]) -> list[exp.Subquery]:
    """The subqueries of WHERE and of results that are one number about all people, and look at nothing outside.

    Of public tables those that stand beside results; elsewhere they are joined.
    """
    reader = make_reader(tables)
    found = []
    for node in select.find_all(exp.Subquery):
        place = node.find_ancestor(exp.Where, exp.From, exp.Join, exp.Select)
        known = place is select or isinstance(place, exp.Where)
        if not known or not isinstance(node.this, exp.Select) or not _is_number(node):
            continue
        inner = node.this
        if any(isinstance(part, exp.Select) and part is not inner for part in inner.walk()):
            continue
        own = {common.alias.lower() for common in select.find_all(exp.CTE)}
        if any(table.name.lower() in own for table in inner.find_all(exp.Table)):
            continue
        inside = reader.tables(inner)
        closed = all(any(table.find(column) for table in inside) for column in inner.find_all(exp.Column))
        beside = node.find_ancestor(exp.Where) is None and not _is_summed(node) and not _is_grouped(node, select)
        if closed and (beside or any(table.base is not None for table in inside)):
            found.append(node)
    return found


def _is_grouped(node: exp.Expr, select: exp.Select) -> bool:
    """Whether a node stands in a key, or in an item that GROUP BY names."""
    group = select.args.get("group")
    item = next(part for part in (node, *_list_parents(node)) if part.parent is select)
    listed = item.arg_key == "expressions"
    named = {item.alias_or_name.lower(), str(1 + (item.index or 0))} - {""} if listed else set()
    keys = [] if group is None else group.expressions
    return item is group or any(key.name.lower() in named for key in keys)


def _is_number(node: exp.Subquery) -> bool:
    """Whether a subquery stands for one number: an aggregate without groups, and not in EXISTS or IN."""
    inner = node.this
    one = len(inner.expressions) == 1 and any(map(is_aggregate, inner.expressions[0].walk()))
    return one and not inner.args.get("group") and not isinstance(node.parent, exp.In | exp.Exists | exp.Subquery)


@dataclass(frozen=True, eq=False)
class AskedFirst:
    """A query and the numbers that are asked before it: `read` makes the one, given the others.

    Fields:
        values: each number's text in the query, and its question.
        read: the query with these numbers (None: nothing) in their places.
    """

    values: tuple[tuple[str, Statement | PublicStatement], ...]
    read: Callable[[Sequence[float | None]], Statement]
    explained: bool = False

    def answer(self, prices: Prices, **options: Any) -> Answer:
        """Pay for every number and then for the query, each with the same share of the price."""
        paid = self._count_paid()
        if paid and options.get("within") is not None:
            raise Refused("tables.sql_within_of_several", spent="nothing")
        options = {name: option for name, option in options.items() if name != "within" or not paid}
        key = options.pop("key", None)
        share = split_prices(prices, paid + 1)
        if paid:
            rehearsed = self.read([1.0] * len(self.values)).question
            check_room(rehearsed, prices)
            plan = rehearsed.plan_release(Budget(**share))
            look(plan.frame, plan.selection, plan.parts)  # what cannot be asked last is told before the first is paid
        found: list[Answer] = []
        for place, (_, asked) in enumerate(self.values):
            named = None if key is None else f"{key} (number {place + 1})"
            if isinstance(asked, PublicStatement):
                found.append(asked.answer(deadline=options.get("deadline")))
            else:
                found.append(asked.answer(asked.question.release(**share, **options, key=named)))
        last = self.read([_read_number(answer) for answer in found])
        last = replace(last, numbers={f"{ASKED}{place + 1}": answer for place, answer in enumerate(found)})
        answer = last.answer(last.question.release(**share, **options, key=key))
        bought = [(text, each) for (text, _), each in zip(self.values, found, strict=True) if not each.public]
        notes = [_write_note(text, each) for text, each in bought]
        return replace(answer, notes=(*notes, *answer.notes), receipt=add_receipts([*(a for _, a in bought), answer]))

    def _count_paid(self) -> int:
        """How many of the numbers are about people."""
        return sum(isinstance(asked, Statement) for _, asked in self.values)

    def list_questions(self) -> list[Question]:
        """What is asked first and paid, and then the query, with a number in the place of each."""
        first = [asked.question for _, asked in self.values if isinstance(asked, Statement)]
        return [*first, self.read([1.0] * len(self.values)).question]

    def explain(self, prices: Prices, *, statements: bool = False) -> str:
        """What is asked first and what then, each with its share of the price."""
        share = split_prices(prices, self._count_paid() + 1)
        told = [question.explain(**share, statements=statements) for question in self.list_questions()]
        listed = [text for text, asked in self.values if isinstance(asked, Statement)]
        if not listed:
            return told[0]
        head = say("tables.explained_first", numbers=listed, parts=len(told))
        return "\n\n".join([f"-- {head}" if statements else head, *told])


def split_prices(prices: Prices, parts: int) -> dict[str, Any]:
    """The same share of the price for each of so many questions."""
    shares = {name: price / parts for name, price in prices.items() if price is not None}
    exact = parts & (parts - 1) == 0  # a power of two divides a price without rounding
    return shares if exact else {name: math.nextafter(share, 0.0) for name, share in shares.items()}


def check_room(question: Question, prices: Prices) -> None:
    """Refuse before anything is paid where the account cannot pay for all."""
    quote = getattr(question.account, "quote", None)
    wanted = {name: price for name, price in prices.items() if price}
    if quote is not None and wanted and not (offered := quote(question, **wanted)).fits:
        raise Refused("tables.sql_first_without_room", accounts=list(offered.lacking), spent="nothing")


def _read_number(answer: Answer) -> float | None:
    """The number; None where none can stand for it: it is missing, HAVING left it out, or no constant is as large."""
    [column] = [column for name, column in answer.exact.table.items() if name in answer.columns]
    value = column[0] if len(answer) == 1 else None
    return float(value) if isinstance(value, Real) and abs(float(value)) < LARGEST else None


def _write_note(text: str, answer: Answer) -> str:
    value = _read_number(answer)
    bar = math.nan if value is None else max(float(b[0]) for n, b in answer.error(0.95).items() if n in answer.columns)
    paid = f"{answer.receipt.measure} {answer.receipt.cost:.4g}"
    return say(
        "tables.asked_first", "en", text=text, value=write_number(value, bar), bar=write_number(bar, bar), paid=paid
    )


def add_receipts(answers: Sequence[Answer]) -> Any:
    """One receipt for all: what was paid together, as the last of them found the account."""
    last = answers[-1].receipt
    same = [answer.receipt for answer in answers if answer.receipt.account == last.account]
    return replace(
        last, cost=sum(each.cost for each in same), delta=sum(each.delta for each in same),
        event=sum((each.event for each in same[1:]), same[0].event),
    )  # fmt: skip


LARGEST = 2.0**500  # of a real constant
TRIED = (LARGEST / 2, -LARGEST / 2, 1.0, 0.0, 0.5, -1.0, 2.0**40, -(2.0**40), None)
"""Numbers that stand for all that an answer may be."""


def check_any_number(read: Callable[[Sequence[float | None]], Statement], texts: Sequence[str]) -> None:
    """Refuse numbers where not every number can stand (bounds of CLAMP, widths): theirs are known after payment."""
    rising = [2.0**20 * (place - len(texts) / 2) for place in range(len(texts))]
    tried: list[Sequence[float | None]] = [rising, rising[::-1], *([number] * len(texts) for number in TRIED)]
    for numbers in tried:
        with suppress(MoshaError):
            read(numbers)
            continue
        raise Refused("tables.sql_first_in_any_place", numbers=", ".join(texts), spent="nothing")


ASKED = "number asked first "
"""The name of a number among the results, followed by its place."""


def replace_values(nodes: Sequence[exp.Subquery], values: Sequence[float | None]) -> dict[str, str]:
    """Write numbers in the places of subqueries; zero over zero, which is missing, where there is none.

    A number among results keeps its bar: a column stands in its place. What is returned is each column's text and name.
    """
    texts = _list_texts(nodes)
    columns: dict[str, str] = {}
    for node in nodes:
        place = texts.index(name_of(node))
        value = values[place]
        if node.find_ancestor(exp.Where) is None and not _is_summed(node):
            column = exp.column(f"{ASKED}{place + 1}", quoted=True)
            columns[name_of(column)] = column.name
            node.replace(column)
            continue
        number: exp.Expression = exp.Literal.number(abs(value or 0.0))
        if value is None:
            number = exp.Paren(this=exp.Div(this=number, expression=number.copy()))
        elif value < 0:
            number = exp.Paren(this=exp.Neg(this=number))
        node.replace(number)
    return columns


def _list_texts(nodes: Sequence[exp.Subquery]) -> list[str]:
    """The texts of subqueries, each once: a number that stands in two places is asked for once."""
    return list(dict.fromkeys(map(name_of, nodes)))


def _is_summed(node: exp.Expr) -> bool:
    """Whether a node stands in an aggregate, where it is a number for every row."""
    above = takewhile(lambda part: not isinstance(part, exp.Select), _list_parents(node))
    return any(is_aggregate(part) and not isinstance(part.parent, exp.Window) for part in above)


def _list_parents(node: exp.Expr) -> Iterator[exp.Expr]:
    """What a node stands in, the nearest first."""
    while (above := node.parent) is not None:
        yield above
        node = above
