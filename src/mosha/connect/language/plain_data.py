"""Expressions as plain data: what JSON holds, and never code.

    3, 2.5, true, "text"                                       a constant
    {"value": "text"}                                          a constant too, where a bare text would name a column
    {"date": "2026-11-17"}, {"timestamp": ...}, {"instant": ...}   a constant of that type, in ISO 8601
    {"null": "integer"}                                        the missing value of a type
    {"column": "days"}                                         a column
    {"operator": "+", "of": [...], "options": [...]}           an operator (`Operator`) on expressions
    {"case": [[condition, value], ...], "else": value}         the value beside the first condition that is true

What is read is built by the same calls as in Python, so that the same checks
refuse it; the nesting and the number of its parts are bounded before anything follows them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NoReturn, TypeVar

from mosha.connect.language.cases import Case
from mosha.connect.language.expression import Call, Column, Expression, Literal, Operator, lit, null
from mosha.connect.language.schema import Type
from mosha.core.errors import InvalidParameter

__all__ = ["DEEPEST", "Plain", "Reader", "read_expression", "write_expression"]

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]

DEEPEST = 32
"""How deep data may be nested; `checking.DEPTH` allows expressions even less."""
MOST_SHOWN = 80
LONGEST_NAME = 1000
MOST_PARTS = 2**18
"""Parts of one question, keys of groups left aside."""

Built = TypeVar("Built")

_TEMPORAL = {"date": Type.DATE, "timestamp": Type.TIMESTAMP, "instant": Type.INSTANT}


@dataclass
class Reader:
    """Reads plain data part by part: its errors say where something stands, and the whole is bounded."""

    left: int = field(default=MOST_PARTS)

    def refuse(self, code: str, place: str, **public: str | int | list[str]) -> NoReturn:
        """Refuse what stands at a place."""
        raise InvalidParameter(code, parameter=place, spent="nothing", **public)  # type: ignore[arg-type]

    def count_part(self, place: str, depth: int = 0) -> None:
        """Count one part more, at this depth."""
        self.left -= 1
        if self.left < 0:
            self.refuse("connect.data_too_large", place, most=MOST_PARTS)
        if depth > DEEPEST:
            self.refuse("connect.data_too_deep", place, most=DEEPEST)

    def fields(
        self, data: object, place: str, *, needs: Collection[str], may: Collection[str] = ()
    ) -> dict[str, object]:
        """The fields of an object, none missing and none unknown."""
        if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
            self.refuse("connect.data_no_object", place, fields=[*needs, *may])
        if missing := [name for name in needs if name not in data]:
            self.refuse("connect.data_field_missing", place, field=missing[0])
        if unknown := [name for name in data if name not in needs and name not in may]:
            self.refuse("connect.data_field_unknown", place, field=unknown[0][:MOST_SHOWN], fields=[*needs, *may])
        return dict(data)

    def items(self, data: object, place: str) -> Sequence[object]:
        """The items of a list."""
        if not isinstance(data, list | tuple):
            self.refuse("connect.data_no_list", place)
        return data

    def text(self, data: object, place: str) -> str:
        """A name, or another text that is neither empty nor long."""
        if not isinstance(data, str) or not 0 < len(data) <= LONGEST_NAME:
            self.refuse("connect.data_no_text", place, most=LONGEST_NAME)
        return data

    def choice(self, data: object, place: str, allowed: Collection[str]) -> str:
        """One of some words."""
        if not isinstance(data, str) or data not in allowed:
            self.refuse("connect.data_no_choice", place, allowed=[str(word) for word in allowed])
        return data

    def build(self, place: str, make: Callable[[], Built]) -> Built:
        """What a call builds; arguments that it cannot take are refused with the place where they stand."""
        try:
            return make()
        except InvalidParameter:
            raise
        except (TypeError, ValueError, ArithmeticError):
            problem = InvalidParameter("connect.data_arguments", parameter=place, spent="nothing")
        raise problem

    def expression(self, data: object, place: str, depth: int = 0) -> Expression:
        """The expression that plain data describe."""
        self.count_part(place, depth)
        if isinstance(data, bool | int | float | str):
            return self.build(place, lambda: lit(data))
        if not isinstance(data, Mapping) or not data:
            self.refuse("connect.data_no_expression", place, forms=[*self._forms, *_TEMPORAL])
        for name, read in self._forms.items():
            if name in data:
                return read(self, data, place, depth)
        for name, kind in _TEMPORAL.items():
            if name in data:
                return self._moment(data, place, name, kind)
        return self.refuse("connect.data_no_expression", place, forms=[*self._forms, *_TEMPORAL])

    def _value(self, data: object, place: str, depth: int) -> Expression:
        del depth
        value = self.fields(data, place, needs=["value"])["value"]
        if not isinstance(value, bool | int | float | str):
            self.refuse("connect.data_no_constant", place)
        return self.build(place, lambda: lit(value))

    def _null(self, data: object, place: str, depth: int) -> Expression:
        del depth
        return null(self.choice(self.fields(data, place, needs=["null"])["null"], place, list(Type)))

    def _column(self, data: object, place: str, depth: int) -> Expression:
        del depth
        return Column(self.text(self.fields(data, place, needs=["column"])["column"], f"{place}.column"))

    def _moment(self, data: object, place: str, name: str, kind: Type) -> Expression:
        written = self.text(self.fields(data, place, needs=[name])[name], place)
        try:
            value = date.fromisoformat(written) if kind is Type.DATE else datetime.fromisoformat(written)
            found = lit(value)
        except (ValueError, OverflowError):
            found = None
        if found is None or found.type is not kind:
            self.refuse(f"connect.data_no_{name}", place)
        return found

    def _operator(self, data: object, place: str, depth: int) -> Expression:
        found = self.fields(data, place, needs=["operator", "of"], may=["options"])
        operator = Operator(self.choice(found["operator"], f"{place}.operator", list(Operator)))
        parts = self.items(found["of"], f"{place}.of")
        options = self.items(found.get("options", ()), f"{place}.options")
        if not all(isinstance(option, bool | int | float | str) for option in options):
            self.refuse("connect.data_no_constant", f"{place}.options")
        of = tuple(self.expression(part, f"{place}.of[{i}]", depth + 1) for i, part in enumerate(parts))
        if operator is Operator.IN and not all(isinstance(part, Literal) for part in of[1:]):
            self.refuse("connect.data_no_constant", f"{place}.of")
        if operator is Operator.CAST and len(options) == 1:
            options = [Type(self.choice(options[0], f"{place}.options", list(Type)))]
        return self.build(place, lambda: Call(operator, of, tuple(options)))

    def _case(self, data: object, place: str, depth: int) -> Expression:
        found = self.fields(data, place, needs=["case"], may=["else"])
        branches: list[tuple[Expression, Expression]] = []
        for i, branch in enumerate(self.items(found["case"], f"{place}.case")):
            pair = self.items(branch, f"{place}.case[{i}]")
            if len(pair) != 2:
                self.refuse("connect.data_no_pair", f"{place}.case[{i}]")
            condition, value = (self.expression(part, f"{place}.case[{i}]", depth + 1) for part in pair)
            branches.append((condition, value))
        if not branches:
            self.refuse("connect.data_no_branch", f"{place}.case")
        otherwise = self.expression(found["else"], f"{place}.else", depth + 1) if "else" in found else None
        return Case(tuple(branches), otherwise)

    _forms = {"value": _value, "null": _null, "column": _column, "operator": _operator, "case": _case}  # noqa: RUF012


def read_expression(data: object) -> Expression:
    """The expression that plain data describe; anything else is refused.

    >>> read_expression({"operator": ">", "of": [{"column": "days"}, 3]})
    ("days" > 3)
    """
    return Reader().expression(data, "expression")


def write_expression(expression: Expression) -> Plain:
    """The plain data that `read_expression` reads as the same expression.

    >>> from mosha.connect.language.expression import col
    >>> write_expression(col("days") > 3)
    {'operator': '>', 'of': [{'column': 'days'}, 3]}
    """
    return _write(expression, Reader(), 0)


def _write(expression: Expression, counted: Reader, depth: int) -> Plain:
    counted.count_part("to_dict", depth)
    if isinstance(expression, Column):
        return {"column": expression.name}
    if isinstance(expression, Literal):
        return _write_constant(expression)
    if isinstance(expression, Case):
        pairs: list[Plain] = [[_write(part, counted, depth + 1) for part in branch] for branch in expression.branches]
        case: dict[str, Plain] = {"case": pairs}
        if expression.rest is not None:
            case["else"] = _write(expression.rest, counted, depth + 1)
        return case
    assert isinstance(expression, Call)
    call: dict[str, Plain] = {
        "operator": str(expression.operator), "of": [_write(part, counted, depth + 1) for part in expression.arguments],
    }  # fmt: skip
    if expression.options:
        call["options"] = [str(option) if isinstance(option, Type) else option for option in expression.options]
    return call


def _write_constant(constant: Literal) -> Plain:
    value = constant.value
    if value is None:
        return {"null": str(constant.type)}
    if constant.type is Type.INSTANT:
        return {"instant": f"{value.isoformat()}+00:00"}
    if isinstance(value, date):
        return {str(constant.type): value.isoformat()}
    plain: Plain = value
    return plain
