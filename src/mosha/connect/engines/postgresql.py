"""PostgreSQL: questions run on the server, in one read-only transaction each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sqlglot import exp

from mosha.connect.engines.source import BATCH, Columns, Server, ServerTable, plain_columns, seconds_left, too_late
from mosha.connect.engines.tried import warn_if_untried
from mosha.connect.language.schema import LARGEST_INTEGER, Type
from mosha.connect.plan.aggregation import Question
from mosha.connect.plan.source import Field
from mosha.connect.sql.dialect import POSTGRES, Kind, Node, Read, binary, call, cast, choose, number, read_within, text
from mosha.connect.sql.statement import Query
from mosha.core.errors import DataError, Interrupted, MissingExtra, SourceUnavailable
from mosha.core.language import phrase
from mosha.core.private_log import note_privately

__all__ = ["PostgreSQL"]

OLDEST = 140000
CANCELLED = "57014"
BROKEN = frozenset({"57P01", "57P02", "57P03", "57P05"})  # the server shuts down or ends the session
COLUMNS = """
SELECT n.nspname, c.relname, a.attname, b.typname, b.typtype,
       CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END, CASE c.relkind
         WHEN 'p' THEN NOT EXISTS (
           SELECT FROM pg_catalog.pg_partition_tree(c.oid) p JOIN pg_catalog.pg_class f ON f.oid = p.relid
           WHERE f.relkind = 'f')
         ELSE c.relkind IN ('r', 'm') AND NOT c.relhassubclass END
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
WHERE c.oid = pg_catalog.to_regclass(%s) AND c.relkind IN ('r', 'v', 'm', 'p', 'f')
ORDER BY a.attnum
"""


T = TypeVar("T")


class PostgreSQL(Server):
    """A PostgreSQL server, 14 or newer, with a UTF-8 database."""

    dialect = POSTGRES

    def __init__(self, url: str) -> None:
        self._url = url

    def _in_snapshot(self, work: Callable[[Any], T], *, rows: bool = False, statement: str | None = None) -> T:
        """What `work` makes of a cursor in a read-only snapshot; what the server says when it fails is not passed on.

        Where `rows` are read, whatever goes wrong once the question is sent may be the fault of a row, a connection
        that breaks too (a server that was killed for its memory), and counts as a failure.
        """
        try:
            import psycopg  # noqa: PLC0415  (an extra)
        except ImportError:
            raise MissingExtra("postgres", needed_for=phrase("connect.reading_from", kind="PostgreSQL")) from None
        sent = lost = cancelled = False
        try:
            with psycopg.connect(self._url, autocommit=False) as connection:
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.read_only = True
                with connection.cursor() as cursor:
                    cursor.execute("SET LOCAL standard_conforming_strings = on")
                    cursor.execute("SET LOCAL DateStyle = 'ISO, YMD'")
                    _limit_time(cursor)
                    sent = True
                    return work(cursor)
        except (psycopg.OperationalError, OSError) as error:
            note_privately("PostgreSQL", error, statement=statement)
            state = getattr(error, "sqlstate", None) or "08000"
            lost = not sent or state.startswith("08") or state in BROKEN
            cancelled = state == CANCELLED and seconds_left() is not None
        except psycopg.Error as error:
            note_privately("PostgreSQL", error, statement=statement)
        if cancelled:
            raise too_late()
        if lost and not (sent and rows):
            raise SourceUnavailable("connect.postgresql_no_answer", spent=None if rows else "nothing")
        if lost:
            raise Interrupted("connect.postgresql_lost")
        if not rows:
            raise DataError("connect.postgresql_unfit", spent="nothing")
        raise DataError("connect.postgresql_failed")

    def table(self, name: str) -> ServerTable:
        """A table of the server by its name, `table` or `schema.table`."""
        quoted = ".".join('"' + part.replace('"', '""') + '"' for part in name.split(".", 1))

        def look(cursor: Any) -> tuple[int, str, list[Any], str]:
            about = cursor.connection.info
            rows = cursor.execute(COLUMNS, [quoted]).fetchall()
            return about.server_version, about.parameter_status("server_encoding"), rows, _identify_database(cursor)

        version, encoding, rows, database = self._in_snapshot(look)
        if version < OLDEST:
            raise DataError("connect.postgresql_too_old")
        warn_if_untried("PostgreSQL", str(version // 10000))
        if encoding != "UTF8":
            raise DataError("connect.postgresql_not_utf8")
        if not rows:
            raise DataError("connect.no_table_on_server", table=name, spent="nothing")
        read = [(row[2], _field(*row[2:6])) for row in rows]
        fields = tuple(field for _, field in read if field is not None)
        skipped = tuple(column for column, field in read if field is None)
        return ServerTable(self, fields, skipped, (rows[0][0], rows[0][1]), database, rows[0][6])

    def read_catalogue(self, *statements: str) -> list[list[Any]]:
        """What the server's catalogue answers, all in one state: no row of a table is read."""
        return self._in_snapshot(lambda cursor: [cursor.execute(text).fetchall() for text in statements])

    def run(self, found: list[Query], question: Question) -> list[Columns]:
        statements = [self.dialect.sql(query.statement).encode() for query in found]

        def ask(cursor: Any) -> list[list[Any]]:
            cursor.execute("SET LOCAL search_path TO pg_catalog")
            if question.relation.person is not None:  # each worker would count the rows of all people anew
                cursor.execute("SET LOCAL max_parallel_workers_per_gather = 0")
            return [_limit_time(cursor).execute(statement).fetchall() for statement in statements]

        answers = self._in_snapshot(ask, rows=True, statement=";\n".join(map(bytes.decode, statements)))
        return [plain_columns(rows, question, query) for rows, query in zip(answers, found, strict=True)]

    def run_in_batches(self, query: Query, question: Question, use: Callable[[Columns], None]) -> None:
        """By a cursor of the server, which holds the groups until they are asked for."""
        statement = self.dialect.sql(query.statement)

        def follow(cursor: Any) -> None:
            cursor.execute("SET LOCAL search_path TO pg_catalog")
            cursor.execute("SET LOCAL cursor_tuple_fraction = 1")  # planned as for all rows, which will be fetched
            _limit_time(cursor).execute(f"DECLARE mosha_groups NO SCROLL CURSOR FOR {statement}".encode())
            while rows := _limit_time(cursor).execute(f"FETCH {BATCH} FROM mosha_groups".encode()).fetchall():
                use(plain_columns(rows, question, query))

        self._in_snapshot(follow, rows=True, statement=statement)

    def analyze(self, found: list[Query], question: Question) -> None:  # noqa: ARG002
        statements = [b"EXPLAIN " + self.dialect.sql(query.statement).encode() for query in found]

        def explain(cursor: Any) -> None:
            cursor.execute("SET LOCAL search_path TO pg_catalog")
            for statement in statements:
                _limit_time(cursor).execute(statement)

        self._in_snapshot(explain, statement=";\n".join(map(bytes.decode, statements)))


def _identify_database(cursor: Any) -> str:
    """The name of the database, and the number of its server: replicas have the same one, copies have another.

    Where the number may not be read, the name alone.
    """
    may_read = "SELECT pg_catalog.current_database(), pg_catalog.has_function_privilege(%s, 'EXECUTE')"
    name, readable = cursor.execute(may_read, ["pg_catalog.pg_control_system()"]).fetchone()
    if not readable:
        return str(name)
    (server,) = cursor.execute("SELECT system_identifier FROM pg_catalog.pg_control_system()").fetchone()
    return f"{server}/{name}"


def _limit_time(cursor: Any) -> Any:
    """The cursor, whose next statement has what is left until the deadline: the server counts for each one anew."""
    if (left := seconds_left()) is not None:
        cursor.execute(f"SET LOCAL statement_timeout = {max(1, int(left * 1000))}")
    return cursor


def _read_as_is(node: Node) -> Node:
    return node


def _text(node: Node) -> Node:
    return POSTGRES.collate(cast(node, Kind.TEXT))


def _double(node: Node) -> Node:
    return cast(node, Kind.DOUBLE)


def _decimal(node: Node) -> Node:
    """A numeric as a double: too large is NULL and too small is 0, where a plain cast would fail."""
    tiny = binary(exp.LT, call("ABS", node.copy()), POSTGRES.widen(text("1e-300")))
    near = choose((tiny, POSTGRES.literal(0.0, Type.REAL)), otherwise=_double(node.copy()))
    limits = POSTGRES.widen(text("-1e160")), POSTGRES.widen(text("1e160"))
    return read_within(*limits, lambda _: near)(node)


def _years(kind: Type, then: Read = _read_as_is, zone: str = "") -> Read:
    last = "9999-12-31" if kind is Type.DATE else "9999-12-31 23:59:59.999999"
    target = Kind.TIMESTAMPTZ if zone else POSTGRES.kinds[kind]
    return read_within(cast(text("0001-01-01" + zone), target), cast(text(last + zone), target), then)


def _in_utc(node: Node) -> Node:
    return call("TIMEZONE", text("UTC"), node)


def _bigint(node: Node) -> Node:
    return cast(node, Kind.BIGINT)


_WHOLE = read_within(POSTGRES.widen(number(-LARGEST_INTEGER - 1)), POSTGRES.widen(number(LARGEST_INTEGER)), _bigint)
_FIELDS: Mapping[str, tuple[Type, Read]] = {
    "int8": (Type.INTEGER, _read_as_is),
    **dict.fromkeys(["int2", "int4"], (Type.INTEGER, _bigint)),
    "float8": (Type.REAL, _read_as_is),
    "float4": (Type.REAL, _double),
    "bool": (Type.BOOLEAN, _read_as_is),
    **dict.fromkeys(["text", "varchar", "bpchar", "name", "uuid", "citext"], (Type.TEXT, _text)),
    "date": (Type.DATE, _years(Type.DATE)),
    "timestamp": (Type.TIMESTAMP, _years(Type.TIMESTAMP)),
    "timestamptz": (Type.INSTANT, _years(Type.INSTANT, _in_utc, "+00")),
}


def _field(name: str, kind: str, family: str, modifier: int) -> Field | None:
    """How a column of a PostgreSQL type is read; None where the type has no meaning here."""
    if family == "e":
        return Field(name, Type.TEXT, _text)
    if kind == "numeric":
        whole = modifier >= 4 and (modifier - 4) & 0x7FF == 0
        return Field(name, Type.INTEGER, _WHOLE) if whole else Field(name, Type.REAL, _decimal, wild=True)
    if kind not in _FIELDS:
        return None
    found, read = _FIELDS[kind]
    return Field(name, found, read, wild=found is Type.REAL)
