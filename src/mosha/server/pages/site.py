"""How every page is made: who looks, in which language, what was typed, and what happens when something is refused."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from mosha.core.errors import MoshaError
from mosha.core.language import Language, phrase, say
from mosha.server.api.operation import Call, perform
from mosha.server.api.table import BY_NAME
from mosha.server.errors import BadRequest, ServerError
from mosha.server.pages import charts
from mosha.server.pages.forms import Form, describe_field, read_form
from mosha.server.pages.glossary import find_words
from mosha.server.people.permissions import Principal, Thing, may
from mosha.server.problems import problem_of
from mosha.server.service import Service
from mosha.server.store.database import marks
from mosha.server.visitors import check_site, identify, language_of, read_body

__all__ = ["FOLDER", "PAGE", "Data", "Visit", "check_name", "endpoint", "write_plainly"]

PAGE = 50  # entries of a long list on one page

FOLDER = Path(__file__).resolve().parent
_WORDS_HERE = "<!-- words -->"
PRIVATE = {"Cache-Control": "no-store"}
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
Data = dict[str, Any]
"""JSON as the API gives and takes it."""
Handler = Callable[["Visit"], Response]


@lru_cache(maxsize=1)
def _templates() -> Environment:
    found = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals |= {"charts": charts, "exp": lambda value: math.exp(min(value, 700.0)), "visit_menu": _menu}
    found.filters |= {"plain": write_plainly, "percent": percent, "day": lambda text: str(text)[:10], "clock": _clock}
    found.filters |= {"soft": _soften, "column": write_column}
    return found


def _menu(visit: Visit) -> list[tuple[str, str]]:
    """The pages that are of use to whoever looks."""
    if visit.principal.is_public:
        return [("/explore", "explore"), ("/public", "public"), ("/words", "glossary")]
    found = [("/", "home"), ("/datasets", "datasets")]
    if visit.has("analyst"):
        found += [("/requests", "my_questions"), ("/agents", "agents")]
    if visit.has("curator"):
        found.append(("/surveys", "surveys"))
    if visit.has("reviewer"):
        found.append(("/review", "review"))
    if visit.has("reviewer") or visit.has("auditor"):
        found.append(("/audit", "audit"))
    if visit.has("administrator") or visit.has("curator"):
        found.append(("/people", "people"))
    return [*found, ("/explore", "explore"), ("/public", "public")]


def _find_room(path: str) -> str:
    """The page of the menu to which a page belongs."""
    first = path.split("/")[1]
    belongs = {"ask": "datasets", "register": "datasets", "survey": "surveys", "series": "public"}
    return "/" + belongs.get(first, first)


def write_plainly(value: object, bar: float | None = None) -> str:
    """A number with as many digits as its error bar supports, or three; other values as they are.

    >>> write_plainly(1234.5678, 20.0), write_plainly(0.100000001), write_plainly(1e-6), write_plainly(-0.3, 20.0)
    ('1,235', '0.1', '10⁻⁶', '0')
    """
    if value is None:
        return "–"  # noqa: RUF001
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    text = _write_size(abs(value), bar)
    return f"−{text}" if value < 0 and text.strip("0.,") else text  # noqa: RUF001  (a minus as wide as the figures)


def _write_size(size: float, bar: float | None) -> str:
    """A number that is not negative."""
    if not math.isfinite(size):
        return "∞"
    if bar is not None and math.isfinite(bar) and bar > 0:
        digits = max(0, 1 - math.floor(math.log10(bar)))
        return f"{size:,.{min(digits, 12)}f}"
    if size and (size < 1e-3 or size >= 1e9):
        return _write_power(size)
    digits = max(0, 2 - math.floor(math.log10(size))) if size else 0
    text = f"{size:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def write_column(values: Sequence[float | None]) -> list[str]:
    """Numbers that stand below each other, with their points below each other too.

    >>> write_column([0.4, 1, 0.55]), write_column([5.99, 138, None]), write_column([1e-5, 2])
    (['0.40', '1.00', '0.55'], ['6.0', '138.0', '–'], ['10⁻⁵', '2'])
    """
    plain = [write_plainly(value) for value in values]
    sizes = [abs(value) for value in values if value]
    if not sizes or not all(math.isfinite(size) and size < 1e9 for size in sizes):
        return plain
    most = 4 if max(sizes) < 1 else max(0, 2 - math.floor(math.log10(max(sizes)) / 2))
    digits = min(most, max(len(text.partition(".")[2]) for text in plain))
    if min(sizes) < 10.0**-digits:
        return plain
    shown = (text if value is None else f"{value:,.{digits}f}" for value, text in zip(values, plain, strict=True))
    return [text.replace("-", "−") for text in shown]  # noqa: RUF001  (a minus as wide as the figures)


def _write_power(value: float) -> str:
    """A very small or very large number, such as 10⁻⁶: it is never broken over two lines."""
    digits, _, power = f"{value:.2e}".partition("e")
    digits = digits.rstrip("0").rstrip(".")
    raised = "10" + str(int(power)).translate(_RAISED)
    return raised if digits == "1" else f"{digits}×{raised}"  # noqa: RUF001


def _soften(name: object) -> Markup:
    """A name that may be broken after an underscore."""
    return Markup("_<wbr>").join(str(name).split("_"))


def percent(share: float) -> str:
    """A share of one as a percentage.

    >>> percent(0.0267), percent(0.99995)
    ('2.67%', '99.995%')
    """
    digits = 3 if share > 0.9995 else 2 if share < 0.1 or share > 0.99 else 1
    text = f"{share * 100:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.')}%"


def _clock(text: object) -> str:
    return str(text)[:16].replace("T", " ")


@dataclass
class Visit:
    """One page that somebody looks at, or one form that they sent."""

    service: Service
    request: Request
    principal: Principal
    language: Language
    query: list[tuple[str, str]] = field(default_factory=list)
    form: list[tuple[str, str]] = field(default_factory=list)
    refused: Data | None = None

    @property
    def path(self) -> Mapping[str, str]:
        return self.request.path_params

    def say(self, code: str, **fields: object) -> str:
        return say(f"console.{code}", self.language, **fields)

    def all_of(self, name: str) -> list[str]:
        """What was typed under a name, in a form or in the address."""
        return [value for key, value in (self.form or self.query) if key == name]

    def read_field(self, name: str, otherwise: str = "") -> str:
        found = self.all_of(name)
        return found[-1] if found else otherwise

    def number(self, name: str) -> float | None:
        """A number that was typed; None where the field is empty."""
        said = self.read_field(name).strip().replace(",", "")
        if not said:
            return None
        try:
            value = float(said)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise BadRequest("server.field_wrong", parameter=name, expected=phrase("server.a_number"))
        return value

    def read_place(self, name: str = "before") -> Data:
        """Where in a long list the page begins, as an address says it; nothing where it says nothing sensible."""
        said = self.read_field(name)
        return {"before": int(said)} if said.isdecimal() and said.isascii() and len(said) < 19 else {}

    def read_names(self, identities: Iterable[str]) -> dict[str, str]:
        """What people are called whose numbers stand in a list."""
        wanted = sorted(set(identities))
        found = f"SELECT id, name FROM principals WHERE id IN ({marks(wanted)})"  # noqa: S608
        return {row["id"]: row["name"] for row in self.service.database.rows(found, *wanted)} if wanted else {}

    def may(self, verb: str, dataset: str | None = None) -> bool:
        return may(self.principal, verb, Thing(dataset))

    def has(self, role: str) -> bool:
        return any(found == role for found, _ in self.principal.roles)

    def do(self, operation: str, *, key: str | None = None, **parts: Mapping[str, object]) -> Any:
        """Perform an operation of the API as this visitor; what it gives."""
        call = Call(self.service, self.principal, key=key, language=self.language, **parts)  # type: ignore[arg-type]
        return perform(BY_NAME[operation], call).body

    def problem(self, error: Exception) -> dict[str, Any]:
        """An error as it may be shown."""
        grants = self.service.database.rows("SELECT account FROM grants WHERE principal = ?", self.principal.id)
        described = problem_of(error, self.language, own=[row["account"] for row in grants])
        if "nearest" in described:  # a page shows it below, one click away
            instead = say("core.ask_instead", self.language, nearest=described["nearest"])
            described["detail"] = described["detail"].removesuffix(instead).rstrip()
        return described | describe_field(error, self.language)

    def open_form(self, ending: str = "", problem: Data | None = None, **fields: str) -> Form:
        """One of the forms of this page: see `Form`."""
        return Form(self, ending, problem, fields)

    def render(self, template: str, status: int = 200, **context: object) -> Response:
        words: dict[str, Any] = {
            "visit": self,
            "who": self.principal,
            "language": self.language,
            "t": self.say,
            "nothing_spent": say("core.closing_nothing", self.language),
            "demo": self.service.settings.demo,
            "form": self.open_form,
            "problem": self.refused,
            "here": self.request.url.path,
            "room": _find_room(self.request.url.path),
            "address": self.request.url.path + (f"?{urlencode(self.query)}" if self.query else ""),
        }
        text = _templates().get_template(template).render(words | context)
        if found := find_words(text):
            helped = _templates().get_template("words.html").render(words | {"words": found})
            text = text.replace(_WORDS_HERE, helped, 1)
        status = 422 if self.refused else status
        return Response(text, status, PRIVATE, "text/html; charset=utf-8")

    def go(self, address: str) -> Response:
        return RedirectResponse(address, 303, PRIVATE)


def check_name(visit: Visit, field_name: str) -> str:
    """The name of somebody, as it was typed; where nobody is called so, the field is wrong.

    Only those who see everybody's names come this far.
    """
    name = visit.read_field(field_name).strip()
    if not name:
        raise BadRequest("server.field_missing", parameter=field_name)
    found = "SELECT 1 AS found FROM principals WHERE name = ? OR id = ?"
    if visit.may("principal.list") and visit.service.database.row(found, name, name) is None:
        raise BadRequest("server.nobody", parameter=field_name, name=name)
    return name


def endpoint(
    service: Service, handler: Handler, again: Handler | None = None
) -> Callable[[Request], Awaitable[Response]]:
    """A page: the handler runs in a thread; whatever is refused becomes a page that says so.

    `again` shows the page on which the form stands: with what was typed, and with what is wrong beside its field.
    """

    def show(request: Request, body: bytes) -> Response:
        language = language_of(request, service)
        query = [(key[:100], value[:100_000].replace("\x00", "")) for key, value in request.query_params.multi_items()][
            :100
        ]
        visit = Visit(service, request, identify(request, service), language, query)
        try:
            if request.method == "POST":
                visit.form = read_form(request.headers.get("content-type", ""), body)
                check_site(request, visit.principal, visit.read_field("csrf"))
            return _handle(visit, handler, again)
        except ValueError as error:
            if isinstance(error, UnicodeDecodeError) or not hasattr(error, "to_dict"):
                return _show_problem(visit, BadRequest("server.field_wrong", parameter="form", expected="UTF-8"))
            return _show_problem(visit, error)
        except Exception as error:  # noqa: BLE001  (every error becomes a page)
            return _show_problem(visit, error)

    async def page(request: Request) -> Response:
        try:
            body = await read_body(request, service.settings.body) if request.method == "POST" else b""
            response = await run_in_threadpool(show, request, body)
        except ServerError as error:
            response = Response(str(error), error.status, PRIVATE, "text/plain; charset=utf-8")
        service.count("http", "page", str(response.status_code))
        return response

    return page


def _handle(visit: Visit, handler: Handler, again: Handler | None) -> Response:
    if again is None:
        return handler(visit)
    try:
        return handler(visit)
    except MoshaError as error:
        described = visit.problem(error)
        if described["status"] not in (404, 409, 422):
            raise
        visit.refused = described
    return again(visit)


def _show_problem(visit: Visit, error: Exception) -> Response:
    described = visit.problem(error)
    if described["status"] >= 500:
        visit.service.log.error("a page failed: %s", type(error).__name__, exc_info=error)
    return visit.render("problem.html", described["status"], problem=described)
