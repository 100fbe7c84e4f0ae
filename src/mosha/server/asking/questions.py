"""A question as it comes over the wire (SQL text, or a plan that is data and never code), made into the library's own.

The same code runs in the server, on a table without rows, and in a worker, on the table itself. A plan asks for numbers
of a table, for a synthetic table (`{"synthesize": {...}}`), or about a graph (`{"graph": "triangles"}`).
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal

from mosha.core.account import Account
from mosha.core.budget import Budget
from mosha.core.errors import InvalidParameter
from mosha.server.errors import BadRequest

if TYPE_CHECKING:
    from mosha.connect.language.expression import Expression
    from mosha.connect.language.schema import Type
    from mosha.sql import Statement
    from mosha.tables import Answer, Table

__all__ = ["Asked", "build_question", "fingerprint_of", "load_engines", "restrict", "settle_price"]


Kind = Literal["table", "graph", "synthetic"]


@dataclass(frozen=True)
class Asked:
    """A question that was checked; `shape` is what SELECT makes of its answer, where it came as SQL."""

    question: Any
    shape: Statement | None = None
    kind: Kind = "table"

    def show(self, answer: Answer) -> Answer:
        return answer if self.shape is None else self.shape.answer(answer)

    def paid_by(self, account: Account) -> Asked:
        return replace(self, question=replace(self.question, account=account))

    def fingerprint(self, price: Mapping[str, float]) -> str:
        """What tells this question from others of the same price."""
        if self.kind != "synthetic":
            return str(self.question.fingerprint)
        return str(self.question.measurement_for(**price).question)


_turn, _loaded = threading.Lock(), threading.Event()


def load_engines() -> None:
    """Load what questions about tables need, once and by one thread: a server is ready before that."""
    if _loaded.is_set():
        return
    with _turn:
        from mosha.connect.engines.absent import absent_table  # noqa: F401, PLC0415
        from mosha.sql import statement  # noqa: F401, PLC0415
        from mosha.tables import Question, protect  # noqa: F401, PLC0415

        _loaded.set()


def build_question(table: object, name: str, said: Mapping[str, Any], condition: Mapping[str, object] | None) -> Asked:
    """Check a question about one dataset. Nothing is read and nothing is spent."""
    from mosha.sql import statement  # noqa: PLC0415  (a server is ready before it has loaded engines)
    from mosha.tables import Question, Table  # noqa: PLC0415  (the same)
    from mosha.tables.sql.spellings import reading  # noqa: PLC0415  (the same)

    if not isinstance(table, Table):
        return _build_about_graph(table, said, condition)
    chosen = table if condition is None else restrict(table, condition)
    if "synthesize" in said.get("plan", ()):
        from mosha.server.asking.synthesis import build_synthesis  # noqa: PLC0415  (loaded with the first of its kind)

        if unknown := sorted(set(said["plan"]) - {"synthesize"}):
            raise BadRequest("server.field_unknown", parameter=f"plan.{unknown[0]}"[:200])
        return Asked(build_synthesis(chosen, said["plan"]["synthesize"]), kind="synthetic")
    if "plan" in said:
        return Asked(Question.from_dict(chosen, said["plan"]))
    options = {part: said[part] for part in ("ranges", "keys", "bars") if said.get(part) is not None}
    if "ranges" in options:
        options["ranges"] = {column: tuple(ends) for column, ends in options["ranges"].items()}
    with reading():
        checked = statement(said["sql"], {name: chosen}, **options)
    if checked.explained:
        raise BadRequest("server.field_wrong", parameter="sql", expected="SELECT")
    return Asked(checked.question, checked)


def _build_about_graph(graph: Any, said: Mapping[str, Any], condition: Mapping[str, object] | None) -> Asked:
    from mosha.server.asking.graph_questions import build_graph_question  # noqa: PLC0415  (the same)

    if "plan" not in said or condition is not None:
        raise BadRequest("server.field_missing", parameter="plan")
    return Asked(build_graph_question(graph, said["plan"]), kind="graph")


def restrict(table: Table, condition: Mapping[str, Any]) -> Table:
    """The rows of a block: those whose column equals a value, or lies in [from, until)."""
    from mosha.connect.language.expression import col  # noqa: PLC0415  (the same)

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


def _constant(value: object, kind: Type) -> Any:
    from mosha.connect.language.schema import Type  # noqa: PLC0415  (the same)

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
    if "within" in said and asked.kind == "synthetic":
        raise BadRequest("server.one_of", parameter="price", names="epsilon, rho")
    if "within" in said:
        options = {part: said[part] for part in ("within", "confidence", "delta", "rows", "at_most") if part in said}
        if asked.kind == "graph":
            options = {part: value for part, value in options.items() if part not in ("rows", "at_most")}
        found = asked.question.plan(**options)
        return {"epsilon": float(found.epsilon or 0.0)} | ({"delta": found.delta} if found.delta else {})
    price = {part: float(said[part]) for part in ("epsilon", "delta", "rho") if said.get(part) is not None}
    Budget(**price)
    if "rho" in price and price.get("delta"):
        raise InvalidParameter("server.rho_with_delta", parameter="delta", spent="nothing")
    return price


def fingerprint_of(
    asked: Asked, said: Mapping[str, object], price: Mapping[str, float], version: int, grant: str
) -> str:
    """What an approval is bound to: the question to the letter, its price, the dataset's version and the grant."""
    content = [asked.fingerprint(price), dict(said), dict(price), version, grant]
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
