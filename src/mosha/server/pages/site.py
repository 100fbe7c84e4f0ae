"""How every page is made: who looks, in which language, what was typed, and what happens when something is refused."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from mosha.core.language import Language, say
from mosha.server.api.operation import Call, perform
from mosha.server.api.table import BY_NAME
from mosha.server.errors import BadRequest, ServerError
from mosha.server.pages import charts
from mosha.server.people.permissions import Principal, Thing, may
from mosha.server.problems import problem_of
from mosha.server.service import Service
from mosha.server.visitors import check_site, identify, language_of, read_body

__all__ = ["FOLDER", "Data", "Visit", "endpoint", "plain"]

FOLDER = Path(__file__).resolve().parent
PRIVATE = {"Cache-Control": "no-store"}
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
    found.filters |= {"plain": plain, "percent": percent, "day": lambda text: str(text)[:10], "clock": _clock}
    return found


def _menu(visit: Visit) -> list[tuple[str, str]]:
    """The pages that are of use to whoever looks."""
    if visit.principal.is_public:
        return [("/explore", "explore"), ("/public", "public"), ("/words", "glossary")]
    found = [("/", "home"), ("/datasets", "datasets")]
    if visit.has("analyst"):
        found.append(("/requests", "my_questions"))
    if visit.has("curator"):
        found.append(("/surveys", "surveys"))
    if visit.has("reviewer"):
        found.append(("/review", "review"))
    if visit.has("reviewer") or visit.has("auditor"):
        found.append(("/audit", "audit"))
    if visit.has("administrator") or visit.has("curator"):
        found.append(("/people", "people"))
    return [*found, ("/explore", "explore"), ("/public", "public")]


def plain(value: Any, bar: float | None = None) -> str:
    """A number with as many digits as its error bar supports, or three; other values as they are.

    >>> plain(1234.5678, 20.0), plain(0.100000001), plain(None)
    ('1,235', '0.1', '–')
    """
    if value is None:
        return "–"  # noqa: RUF001
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if not math.isfinite(value):
        return "∞"
    if bar is not None and math.isfinite(bar) and bar > 0:
        digits = max(0, 1 - math.floor(math.log10(bar)))
        return f"{value:,.{min(digits, 12)}f}"
    size = abs(value)
    if size and (size < 1e-3 or size >= 1e9):
        return f"{value:.3g}"
    digits = max(0, 2 - math.floor(math.log10(size))) if size else 0
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    """A share of one as a percentage.

    >>> percent(0.0267), percent(0.99995)
    ('2.67%', '99.995%')
    """
    digits = 3 if share > 0.9995 else 2 if share < 0.1 or share > 0.99 else 1
    text = f"{share * 100:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.')}%"


def _clock(text: Any) -> str:
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

    @property
    def path(self) -> Mapping[str, str]:
        return self.request.path_params

    def say(self, code: str, **fields: Any) -> str:
        return say(f"console.{code}", self.language, **fields)

    def all_of(self, name: str) -> list[str]:
        """What was typed under a name, in a form or in the address."""
        return [value for key, value in (self.form or self.query) if key == name]

    def typed(self, name: str, otherwise: str = "") -> str:
        found = self.all_of(name)
        return found[-1] if found else otherwise

    def number(self, name: str) -> float | None:
        """A number that was typed; None where the field is empty."""
        said = self.typed(name).strip().replace(",", "")
        if not said:
            return None
        try:
            value = float(said)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise BadRequest("server.field_wrong", parameter=name, expected=self.say("a_number"))
        return value

    def may(self, verb: str, dataset: str | None = None) -> bool:
        return may(self.principal, verb, Thing(dataset))

    def has(self, role: str) -> bool:
        return any(found == role for found, _ in self.principal.roles)

    def do(self, operation: str, *, key: str | None = None, **parts: Mapping[str, Any]) -> Any:
        """Perform an operation of the API as this visitor; what it gives."""
        call = Call(self.service, self.principal, key=key, language=self.language, **parts)  # type: ignore[arg-type]
        return perform(BY_NAME[operation], call).body

    def problem(self, error: Exception) -> dict[str, Any]:
        """An error as it may be shown."""
        grants = self.service.database.rows("SELECT account FROM grants WHERE principal = ?", self.principal.id)
        return problem_of(error, self.language, own=[row["account"] for row in grants])

    def render(self, template: str, status: int = 200, **context: Any) -> Response:
        words: dict[str, Any] = {
            "visit": self,
            "who": self.principal,
            "language": self.language,
            "t": self.say,
            "nothing_spent": say("core.closing_nothing", self.language),
            "demo": self.service.settings.demo,
            "here": self.request.url.path,
            "address": self.request.url.path + (f"?{urlencode(self.query)}" if self.query else ""),
        }
        text = _templates().get_template(template).render(words | context)
        return Response(text, status, PRIVATE, "text/html; charset=utf-8")

    def go(self, address: str) -> Response:
        return RedirectResponse(address, 303, PRIVATE)


def endpoint(service: Service, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """A page: the handler runs in a thread; whatever is refused becomes a page that says so."""

    def show(request: Request, body: bytes) -> Response:
        language = language_of(request, service)
        query = [(key[:100], value[:100_000].replace("\x00", "")) for key, value in request.query_params.multi_items()][
            :100
        ]
        visit = Visit(service, request, identify(request, service), language, query)
        try:
            if request.method == "POST":
                visit.form = parse_qsl(
                    body.decode("utf-8").replace("%00", ""), keep_blank_values=True, max_num_fields=200
                )
                check_site(request, visit.principal, visit.typed("csrf"))
            return handler(visit)
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


def _show_problem(visit: Visit, error: Exception) -> Response:
    described = visit.problem(error)
    if described["status"] >= 500:
        visit.service.log.error("a page failed: %s", type(error).__name__, exc_info=error)
    return visit.render("problem.html", described["status"], problem=described)
