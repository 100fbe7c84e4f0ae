"""A question as it comes over the wire (SQL text, or a plan that is data and never code), made into the library's own.

The same code runs in the server, on a table without rows, and in a worker, on the table itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from mosha.connect.language.expression import Expression, col
from mosha.connect.language.schema import Type
from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.server.errors import BadRequest
from mosha.sql import Statement, statement
from mosha.tables import Answer, Budget, Question, Table

__all__ = ["Asked", "build_question", "fingerprint_of", "restrict", "settle_price"]


@dataclass(frozen=True)
class Asked:
    """A question that was checked; `shape` is what SELECT makes of its answer, where it came as SQL."""

    question: Question
    shape: Statement | None = None

    def show(self, answer: Answer) -> Answer:
        return answer if self.shape is None else self.shape.answer(answer)

    def paid_by(self, account: Account) -> Asked:
        return replace(self, question=replace(self.question, account=account))


def build_question(table: Table, name: str, said: Mapping[str, Any], condition: Mapping[str, Any] | None) -> Asked:
    """Check a question about one dataset. Nothing is read and nothing is spent."""
    chosen = table if condition is None else restrict(table, condition)
    if "plan" in said:
        return Asked(Question.from_dict(chosen, said["plan"]))
    options = {part: said[part] for part in ("ranges", "keys", "bars") if said.get(part) is not None}
    if "ranges" in options:
        options["ranges"] = {column: tuple(ends) for column, ends in options["ranges"].items()}
    checked = statement(said["sql"], {name: chosen}, **options)
    if checked.explained:
        raise BadRequest("server.field_wrong", parameter="sql", expected="SELECT")
    return Asked(checked.question, checked)


def restrict(table: Table, condition: Mapping[str, Any]) -> Table:
    """The rows of a block: those whose column equals a value, or lies in [from, until)."""
    column, kind = col(condition["column"]), table.schema[condition["column"]]
    tests: list[Expression] = []
    if "equals" in condition:
        tests.append(column == _constant(condition["equals"], kind))
    if "from" in condition:
        tests.append(column >= _constant(condition["from"], kind))
    if "until" in condition:
        tests.append(column < _constant(condition["until"], kind))
    if not tests:
        raise BadRequest("server.one_of", parameter="condition", names="equals, from, until")
    for test in tests:
        table = table.where(test)
    return table


def _constant(value: Any, kind: Type) -> Any:
    try:
        if isinstance(value, str) and kind is Type.DATE:
            return date.fromisoformat(value)
        if isinstance(value, str) and kind in {Type.TIMESTAMP, Type.INSTANT}:
            return datetime.fromisoformat(value)
    except ValueError:
        raise BadRequest("server.field_wrong", parameter="condition", expected=str(kind)) from None
    return value


def settle_price(asked: Asked, said: Mapping[str, Any]) -> dict[str, float]:
    """The budget that will be paid: as it was said, or the least epsilon for the accuracy that was asked for."""
    if sum(part in said for part in ("epsilon", "rho", "within")) != 1:
        raise BadRequest("server.one_of", parameter="price", names="epsilon, rho, within")
    if "within" in said:
        options = {part: said[part] for part in ("within", "confidence", "delta", "rows") if part in said}
        found = asked.question.plan(**options)
        return {"epsilon": float(found.epsilon or 0.0)} | ({"delta": found.delta} if found.delta else {})
    price = {part: float(said[part]) for part in ("epsilon", "delta", "rho") if said.get(part) is not None}
    Budget(**price)
    if "rho" in price and price.get("delta"):
        raise InvalidParameter("a price in rho has no delta.")
    return price


def fingerprint_of(asked: Asked, said: Mapping[str, Any], price: Mapping[str, float], version: int, grant: str) -> str:
    """What an approval is bound to: the question to the letter, its price, the dataset's version and the grant."""
    content = [asked.question.fingerprint, dict(said), dict(price), version, grant]
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
