"""Forms of pages: what was typed stays where it was typed, and what is wrong with it is said beside its field."""

from __future__ import annotations

import math
import re
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any, Protocol
from urllib.parse import parse_qsl

from markupsafe import Markup
from starlette.requests import Request

from mosha.core.errors import MoshaError
from mosha.core.language import Language, phrase, say
from mosha.server.errors import BadRequest, ServerError

__all__ = ["Form", "describe_field", "read_form", "read_number"]

_MOST_FIELDS = 200

_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
_BESIDE = Markup('<p class="beside" id="{}">{}</p>')
_MARKS = Markup(' aria-invalid="true" aria-describedby="{}" autofocus')


_LABELS = {
    "approve_above": "approve_above",
    "at_most": "register_at_most",
    "by": "for_each",
    "column": "column",
    "declaration": "register_json",
    "delta": "word_delta",
    "epsilon": "word_epsilon",
    "file": "series_file",
    "from": "blocks_from",
    "expires": "grant_until",
    "head": "head_kept",
    "k": "graph_needs_k",
    "leaves": "graph_needs_leaves",
    "horizon": "series_horizon",
    "limit_per_day": "agents_day",
    "max_degree": "graph_max_degree",
    "most_per_question": "most_per_question",
    "name": "blocks_name",
    "path": "register_source",
    "price": "price",
    "principal": "grant_to",
    "purpose": "purpose",
    "reason": "reason",
    "rows": "synthetic_rows",
    "seed": "synthetic_seed",
    "slug": "publish_slug",
    "title": "publish_title",
    "unit": "register_unit",
    "until": "blocks_until",
    "url": "register_source",
    "values": "value",
    "vertices": "register_vertices",
    "within": "within",
} | {
    part: f"registry_{part}"
    for part in ("data_curators", "description", "intended_use", "data_product_region", "registry_authors")
}


_LABELED = "beside_label"
_BESIDE_BY_CODE = {
    "server.field_missing": "beside_missing",
    "server.field_wrong": "beside_wrong",
    "server.field_unknown": "beside_unknown",
}


def _name_field(parameter: str, language: Language) -> str:
    """What people see above a field: its label, where the API has another name for it."""
    last = parameter.rsplit(".", maxsplit=1)[-1].partition("[")[0]
    code, name = _LABELS.get(last, ""), last
    if parameter == "price.epsilon":
        code = "price_epsilon"
    elif parameter.startswith("where."):
        code, name = "condition_on", parameter.removeprefix("where.")
    elif parameter.startswith("declaration.columns."):
        code, name = "column_named", parameter.split(".")[2]
    return say(f"console.{code}", language, name=name) if code else parameter


def describe_field(error: Exception, language: Language) -> dict[str, str]:
    """What is wrong with a field: `detail` names it as its label does, `beside` stands right below it."""
    if not isinstance(error, MoshaError) or not error.parameter:
        return {}
    public: dict[str, Any] = error.public
    if str(error.code) == "core.below_one":  # the library calls the field as programs do
        beside, public = "beside_wrong", {"expected": phrase("server.at_least", least=1)}
    elif isinstance(error, ServerError) and str(error.code) in _BESIDE_BY_CODE:
        beside = _BESIDE_BY_CODE[str(error.code)]
    else:
        return {}
    said = say(f"console.{beside}", language, **public)
    label = _name_field(error.parameter, language)
    return {"detail": say(f"console.{_LABELED}", language, label=label, said=said), "beside": said}


def read_number(said: str, field: str) -> float:
    """A number as people write it, thousands between commas too. A comma before decimals is none: `0,5` is not 5."""
    typed = said.strip()
    try:
        value = float(typed.replace(",", "") if _THOUSANDS.fullmatch(typed) else typed)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadRequest("server.field_wrong", parameter=field, expected=phrase("server.a_number"))
    return value


def read_form(kind: str, body: bytes) -> list[tuple[str, str]]:
    """The fields of a form as a browser sends them; a file that was chosen is the text in it."""
    try:
        if not kind.startswith("multipart/form-data"):
            text = body.decode("utf-8").replace("%00", "")
            return parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        message = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + body)
        parts = list(message.iter_parts())[:_MOST_FIELDS] if message.is_multipart() else []
        return [
            (str(name), bytes(part.get_payload(decode=True)).decode("utf-8").replace("\x00", ""))
            for part in parts
            if (name := part.get_param("name", header="content-disposition"))
        ]
    except (ValueError, TypeError, AttributeError, LookupError):
        raise BadRequest("server.field_wrong", parameter="form", expected="UTF-8") from None


class _Visit(Protocol):
    """What a form needs of the visit that it is part of."""

    form: list[tuple[str, str]]
    request: Request
    refused: dict[str, Any] | None

    def read_field(self, name: str, otherwise: str = "") -> str: ...


class Form:
    """One form of a page that may have several; `ending` is how the address ends to which it is sent.

    A problem belongs to the field that it names (`promise.epsilon` to `epsilon`), in the form that was sent. `fields`
    says where names differ, such as `{"source": "path"}`.
    """

    def __init__(self, visit: _Visit, ending: str, problem: dict[str, Any] | None, fields: dict[str, str]) -> None:
        self._visit = visit
        self._fields = fields
        self._ending = ending
        self.is_sent = bool(visit.form) and visit.request.url.path.endswith(ending)
        self._problem = problem or (visit.refused if self.is_sent else None)

    def read(self, name: str, otherwise: str = "") -> str:
        """What was typed into a field of this form."""
        return self._visit.read_field(name, otherwise) if self.is_sent else otherwise

    def is_wrong(self, name: str) -> bool:
        parameter = str((self._problem or {}).get("parameter") or "")
        last = parameter.rsplit(".", maxsplit=1)[-1].partition("[")[0]
        return bool(parameter) and name in (parameter, self._fields.get(parameter, last))

    def marks(self, name: str) -> Markup:
        """What a field carries when it is wrong: it is announced, described and has the focus."""
        return _MARKS.format(self._place_beside(name)) if self.is_wrong(name) else Markup("")

    def beside(self, name: str) -> Markup:
        """The sentence beside a field that is wrong; nothing otherwise."""
        if self._problem is None or not self.is_wrong(name):
            return Markup("")
        return _BESIDE.format(self._place_beside(name), self._problem.get("beside") or self._problem["detail"])

    def _place_beside(self, name: str) -> str:
        return re.sub(r"\W", "-", f"wrong{self._ending}/{name}")

    def input(self, name: str, otherwise: str = "", *, id: str = "", **attributes: str | int | bool) -> Markup:  # noqa: A002
        """A field of one line with what was typed, and beside it what is wrong.

        Attributes are those of HTML; True is one without a value, False one that is left out.
        """
        said: dict[str, str | int | bool] = {"id": id or name, "name": name, **attributes}
        said["value"] = self.read(name, otherwise)
        written = Markup("").join(
            Markup(" {}").format(key) if value is True else Markup(' {}="{}"').format(key, value)
            for key, value in said.items()
            if value is not False
        )
        return Markup("<input{}{}>{}").format(written, self.marks(name), self.beside(name))
