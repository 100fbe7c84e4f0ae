"""How every page is made: who looks, in which language, what was typed, and what happens when something is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match

from mosha.core.errors import LedgerUnavailable, MoshaError
from mosha.core.language import Language, phrase, say
from mosha.server.api.operation import Call, perform
from mosha.server.api.table import BY_NAME
from mosha.server.errors import BadRequest, ServerError
from mosha.server.pages import charts
from mosha.server.pages.forms import Form, describe_field, read_form, read_number
from mosha.server.pages.glossary import find_words
from mosha.server.pages.numbers import (
    find_factor,
    percent,
    write_above,
    write_at_least,
    write_at_most,
    write_column,
    write_name,
    write_plainly,
)
from mosha.server.people.permissions import Principal, Thing, may
from mosha.server.problems import problem_of
from mosha.server.service import Service
from mosha.server.store.database import marks
from mosha.server.visitors import check_site, identify, language_of, read_body

__all__ = ["FOLDER", "PAGE", "Data", "Visit", "check_name", "endpoint", "find_page", "find_standing"]

PAGE = 50  # entries of a long list on one page

FOLDER = Path(__file__).resolve().parent
_WORDS_HERE = "<!-- words -->"
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
    found.globals |= {"charts": charts, "exp": find_factor, "visit_menu": _menu}
    found.filters |= {"plain": write_plainly, "percent": percent, "day": lambda text: str(text)[:10], "clock": _clock}
    found.filters |= {"soft": _soften, "column": write_column, "key": write_name, "above": write_above}
    found.filters |= {"most": write_at_most, "least": write_at_least}
    found.filters |= {"standing": find_standing}
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


def _soften(name: object) -> Markup:
    """A name that may be broken after an underscore."""
    return Markup("_<wbr>").join(str(name).split("_"))


def find_page(request: Request) -> str:
    """The page on which one is: what was sent to an address that shows no page was sent from one above it."""
    path: str = request.url.path
    while path != "/":
        asked = {"type": "http", "method": "GET", "path": path, "headers": []}
        if any(route.matches(asked)[0] is Match.FULL for route in request.app.routes):
            return path
        path = path.rpartition("/")[0] or "/"
    return path


def find_standing(grant: Data) -> str:
    """The state of a grant as it is today: one that came to its end is not open any more."""
    is_over = grant["expires"][:10] < datetime.now(UTC).date().isoformat()
    return "expired" if grant["state"] == "open" and is_over else str(grant["state"])


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
        said = self.read_field(name)
        return read_number(said, name) if said.strip() else None

    def read_whole_number(self, name: str) -> int | None:
        """A whole number that was typed; None where the field is empty. Nothing is rounded that somebody pays for."""
        value = self.number(name)
        if value is not None and not value.is_integer():
            raise BadRequest("server.field_wrong", parameter=name, expected=phrase("server.kind_integer"))
        return None if value is None else int(value)

    def read_place(self, name: str = "before") -> Data:
        """Where in a long list the page begins, as an address says it; nothing where it says nothing sensible."""
        said = self.read_field(name)
        return {"before": int(said)} if said.isdecimal() and said.isascii() and len(said) < 19 else {}

    def read_names(self, identities: Iterable[str]) -> dict[str, str]:
        """What people are called whose numbers stand in a list."""
        wanted = sorted(set(identities))
        found = f"SELECT id, name FROM principals WHERE id IN ({marks(wanted)})"  # noqa: S608
        return {row["id"]: row["name"] for row in self.service.database.rows(found, *wanted)} if wanted else {}

    def read_head(self) -> str:
        """The head of the chain; empty while the ledger is out of reach, so that the rest of a page is shown."""
        try:
            return str(self.do("readHead")["head"])
        except LedgerUnavailable:
            return ""

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
            "ledger_gone": say("server.ledger_unavailable", self.language),
            "nothing_spent": say("core.closing_nothing", self.language),
            "demo": self.service.settings.demo,
            "form": self.open_form,
            "problem": self.refused,
            "here": self.request.url.path,
            "room": _find_room(self.request.url.path),
            "address": find_page(self.request) + (f"?{urlencode(self.query)}" if self.query else ""),
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

    def show(request: Request, body: bytes, refused: ServerError | None) -> Response:
        language = language_of(request, service)
        query = [(key[:100], value[:100_000].replace("\x00", "")) for key, value in request.query_params.multi_items()][
            :100
        ]
        visit = Visit(service, request, identify(request, service), language, query)
        if refused is not None:
            return _show_problem(visit, refused)
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
        body, refused = b"", None
        try:
            body = await read_body(request, service.settings.body) if request.method == "POST" else b""
        except ServerError as error:
            refused = error
        try:
            response = await run_in_threadpool(show, request, body, refused)
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
