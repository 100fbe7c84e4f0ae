"""A dialect for SQLAlchemy: `mosha://:TOKEN@privacy.example.org/?epsilon=0.1&window=day`; `mosha+http` on loopback."""

from __future__ import annotations

from typing import Any

from sqlalchemy import types
from sqlalchemy.engine.default import DefaultDialect

from mosha.client import dbapi
from mosha.core.errors import InvalidParameter

__all__ = ["MoshaDialect", "PlainDialect"]

_TYPES: dict[str, Any] = {
    "integer": types.BigInteger,
    "real": types.Float,
    "boolean": types.Boolean,
    "text": types.Text,
    "date": types.Date,
    "timestamp": types.DateTime,
    "instant": types.DateTime,
}


def _read_price(name: str, value: Any) -> float:
    """A price of the address, as a number; what is no price is told, for a dashboard would never know."""
    try:
        return {"epsilon": float, "delta": float, "rho": float}[name](value)
    except (KeyError, TypeError, ValueError):
        raise InvalidParameter("client.address_option", parameter=name, spent="nothing") from None


class MoshaDialect(DefaultDialect):
    """SELECT over a server of Mosha; nothing is ever written."""

    name = "mosha"
    driver = "https"
    scheme = "https"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_sane_rowcount = False
    requires_name_normalize = False

    @classmethod
    def import_dbapi(cls) -> Any:
        return dbapi

    def create_connect_args(self, url: Any) -> Any:
        options = dict(url.query)
        window = {"window": options.pop("window")} if "window" in options else {}
        prices = {name: _read_price(name, value) for name, value in options.items()}
        place = f"{self.scheme}://{url.host}" + (f":{url.port}" if url.port else "")
        return [place], {"token": url.password or "", **prices, **window}

    def initialize(self, connection: object) -> None:  # noqa: ARG002
        """There is nothing to find out by asking."""
        self.default_schema_name = None
        self.server_version_info = (1,)

    def do_ping(self, dbapi_connection: Any) -> bool:
        dbapi_connection.lab.datasets()
        return True

    def _lab(self, connection: Any) -> Any:
        return connection.connection.dbapi_connection.lab

    def get_schema_names(self, connection: object, **_: object) -> list[str]:  # noqa: ARG002
        return []

    def get_table_names(self, connection: object, schema: str | None = None, **_: object) -> list[str]:  # noqa: ARG002
        return [found["name"] for found in self._lab(connection).datasets() if found["kind"] == "table"]

    def get_view_names(self, connection: object, schema: str | None = None, **_: object) -> list[str]:  # noqa: ARG002
        return []

    def has_table(self, connection: object, table_name: str, schema: str | None = None, **_: object) -> bool:  # noqa: ARG002
        return table_name in self.get_table_names(connection)

    def get_columns(self, connection: object, table_name: str, schema: str | None = None, **_: object) -> list[Any]:  # noqa: ARG002
        columns = self._lab(connection).describe(table_name)["declaration"]["columns"]
        return [{"name": c["name"], "type": _TYPES[c["type"]](), "nullable": True, "default": None} for c in columns]

    def get_pk_constraint(self, connection: object, table_name: str, schema: str | None = None, **_: object) -> Any:  # noqa: ARG002
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(self, connection: object, table_name: str, schema: str | None = None, **_: object) -> Any:  # noqa: ARG002
        return []

    def get_indexes(self, connection: object, table_name: str, schema: str | None = None, **_: object) -> Any:  # noqa: ARG002
        return []


class PlainDialect(MoshaDialect):
    """The same without TLS, for a server on this machine."""

    driver = "http"
    scheme = "http"
    supports_statement_cache = True
