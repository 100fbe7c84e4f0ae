"""MariaDB: questions run on the server, in one read-only transaction each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from sqlglot import exp

from mosha.connect.engines.source import BATCH, Columns, Server, ServerTable, plain_columns, seconds_left, too_late
from mosha.connect.engines.tried import warn_if_untried
from mosha.connect.language.schema import LARGEST_INTEGER, LONGEST_TEXT, Type
from mosha.connect.plan.aggregation import Norms, Question
from mosha.connect.plan.source import Field
from mosha.connect.sql.dialect import Kind, Node, Read, binary, call, cast, choose, number, read_within, text
from mosha.connect.sql.mariadb_dialect import COLLATION, MARIADB, collate
from mosha.connect.sql.statement import Query
from mosha.core.errors import DataError, Interrupted, InvalidParameter, MissingExtra, SourceUnavailable
from mosha.core.language import phrase
from mosha.core.private_log import note_privately

__all__ = ["MariaDB"]

OLDEST = (10, 6)
TOO_LATE = 1969
LEAST_ROOM = 2**21
LOST = frozenset({1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 2003, 2006, 2013, 2055})
OPTIONS = frozenset({"ssl_ca", "ssl_cert", "ssl_key", "unix_socket"})
CHARACTER_SETS = frozenset({"utf8mb4", "utf8mb3", "utf8", "latin1", "ascii"})
"""Those whose every text is another one in UTF-8: converted from others, two persons might become one."""
UNCHECKED = frozenset({"ascii", "utf8mb3", "utf8"})
"""Those of which the server keeps bytes that are no text, each of which it reads as a question mark."""
WRITING_LAYERS_TOGETHER = (
    "derived_merge",
    "condition_pushdown_for_derived",
    "condition_pushdown_from_having",
    "condition_pushdown_for_subquery",
    "split_materialized",
)
"""What the optimizer may not do: each layer would write the one below twice, a thousandfold after ten."""
SETTINGS = {
    "sql_mode": "'NO_BACKSLASH_ESCAPES'",  # and no more: what else a mode does to casts, dates and blanks is off
    "old_mode": "''",
    "time_zone": "'+00:00'",
    "lc_time_names": "'en_US'",
    "default_regex_flags": "''",
    "max_sort_length": str(4 * LONGEST_TEXT),  # beyond it, two texts are sorted as if they were one
    "optimizer_switch": "'" + ",".join(f"{name}=off" for name in WRITING_LAYERS_TOGETHER) + "'",
    "join_cache_level": "4",
    "sql_select_limit": "18446744073709551615",
    "sql_big_selects": "1",
    "in_predicate_conversion_threshold": "0",
}
COLUMNS = """
SELECT c.TABLE_SCHEMA, c.TABLE_NAME, c.COLUMN_NAME, c.DATA_TYPE, c.COLUMN_TYPE, c.NUMERIC_SCALE, c.CHARACTER_SET_NAME,
       c.CHARACTER_MAXIMUM_LENGTH, t.TABLE_TYPE, e.TRANSACTIONS
FROM information_schema.COLUMNS c
JOIN information_schema.TABLES t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME
LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE
WHERE CONVERT(c.TABLE_SCHEMA USING utf8mb4) COLLATE utf8mb4_nopad_bin = COALESCE(%s, DATABASE())
  AND CONVERT(c.TABLE_NAME USING utf8mb4) COLLATE utf8mb4_nopad_bin = %s
  AND CONVERT(t.TABLE_NAME USING utf8mb4) COLLATE utf8mb4_nopad_bin = %s
ORDER BY c.ORDINAL_POSITION
"""

T = TypeVar("T")


class Cursor(Protocol):
    """What is asked of the driver."""

    def execute(self, query: str, args: Sequence[str | None] = ..., /) -> object:
        """Send a statement."""

    def fetchall(self) -> Sequence[Sequence[Any]]:
        """The rows of its answer."""

    def fetchmany(self, size: int, /) -> Sequence[Sequence[Any]]:
        """The next rows of its answer."""


class MariaDBTable(ServerTable):
    """A table or view of MariaDB: its fingerprint says so."""


class MariaDB(Server):
    """A MariaDB server, 10.6 or newer."""

    dialect = MARIADB

    def __init__(self, url: str) -> None:
        self._address = _read_url(url)

    def _in_snapshot(
        self, work: Callable[[Cursor], T], *, rows: bool = False, statement: str | None = None, whole: bool = True
    ) -> T:
        """What `work` makes of a cursor in a read-only snapshot; what the server says when it fails is not passed on.

        Where `rows` are read, whatever goes wrong once the question is sent may be the fault of a row, a connection
        that breaks too, and counts as a failure. Answers come `whole`, or row by row as they are asked for.
        """
        try:
            import pymysql  # noqa: PLC0415  (an extra)
            from pymysql.cursors import Cursor as WholeAnswers  # noqa: PLC0415
            from pymysql.cursors import SSCursor as RowByRow  # noqa: PLC0415
        except ImportError:
            raise MissingExtra("mysql", needed_for=phrase("connect.reading_from", kind="MariaDB")) from None
        sent = lost = cancelled = False
        try:
            opened = pymysql.connect(**self._address, charset="utf8mb4", autocommit=True)
            with opened as connection, connection.cursor(WholeAnswers if whole else RowByRow) as cursor:
                _begin(cursor)
                _limit_time(cursor)
                sent = True
                return work(cursor)
        except (pymysql.Error, OSError, RuntimeError) as error:  # no cryptography for a password: a RuntimeError
            note_privately("MariaDB", error, statement=statement)
            code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
            lost = not sent or code in LOST or isinstance(error, (OSError, pymysql.InterfaceError))
            cancelled = code == TOO_LATE and seconds_left() is not None
        if cancelled:
            raise too_late()
        if lost and not (sent and rows):
            raise SourceUnavailable("connect.mariadb_no_answer", spent=None if rows else "nothing")
        if lost:
            raise Interrupted("connect.mariadb_lost")
        if not rows:
            raise DataError("connect.mariadb_refused", spent="nothing")
        raise DataError("connect.mariadb_failed")

    def table(self, name: str) -> MariaDBTable:
        """A table of the server by its name, `table` or `database.table`."""
        *schema, table = name.split(".", 1)

        def look(cursor: Cursor) -> tuple[str, Sequence[Any], str]:
            cursor.execute("SELECT VERSION()")
            ((version,),) = cursor.fetchall()
            cursor.execute(COLUMNS, [schema[0] if schema else None, table, table])
            return version, cursor.fetchall(), _identify_server(cursor)

        version, rows, server = self._in_snapshot(look)
        _check_version(version)
        if not rows:
            raise DataError("connect.no_table_on_server", table=name, spent="nothing")
        if rows[0][8] == "BASE TABLE" and rows[0][9] != "YES":
            raise DataError("connect.mariadb_no_snapshot", table=name, spent="nothing")
        read = [(row[2], _field(*row[2:8])) for row in rows]
        fields = tuple(field for _, field in read if field is not None)
        skipped = tuple(column for column, field in read if field is None)
        return MariaDBTable(self, fields, skipped, (rows[0][0], rows[0][1]), f"{server}/{rows[0][0]}")

    def read_catalogue(self, *statements: str) -> list[list[Any]]:
        """What the server's catalogue answers: no row of a table is read."""

        def ask(cursor: Cursor) -> list[list[Any]]:
            answers = []
            for statement in statements:
                cursor.execute(statement)
                answers.append(list(cursor.fetchall()))
            return answers

        return self._in_snapshot(ask)

    def run(self, found: list[Query], question: Question) -> list[Columns]:
        statements = [self.dialect.sql(query.statement) for query in found]

        def ask(cursor: Cursor) -> list[Sequence[Any]]:
            cursor.execute(f"SET SESSION sort_buffer_size = {_room_for_sorting(question)}")
            answers = []
            for statement in statements:
                _limit_time(cursor).execute(statement)
                answers.append(cursor.fetchall())
            return answers

        answers = self._in_snapshot(ask, rows=True, statement=";\n".join(statements))
        read = (_read_booleans(rows, question) for rows in answers)
        return [plain_columns(rows, question, query) for rows, query in zip(read, found, strict=True)]

    def run_in_batches(self, query: Query, question: Question, use: Callable[[Columns], None]) -> None:
        statement = self.dialect.sql(query.statement)

        def follow(cursor: Cursor) -> None:
            cursor.execute(f"SET SESSION sort_buffer_size = {_room_for_sorting(question)}")
            _limit_time(cursor).execute(statement)
            while rows := cursor.fetchmany(BATCH):
                use(plain_columns(_read_booleans(rows, question), question, query))

        self._in_snapshot(follow, rows=True, statement=statement, whole=False)

    def analyze(self, found: list[Query], question: Question) -> None:  # noqa: ARG002
        """By PREPARE: EXPLAIN would read tables of which the server knows that they have one row."""
        statements = [self.dialect.sql(query.statement) for query in found]

        def prepare(cursor: Cursor) -> None:
            for statement in statements:
                _limit_time(cursor).execute(f"PREPARE mosha FROM _utf8mb4 x'{statement.encode().hex()}'")

        self._in_snapshot(prepare, statement=";\n".join(statements))


def _read_url(url: str) -> dict[str, Any]:
    """What the driver needs to know: user, password, host, port and database, and a few options."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    database = unquote(parts.path.lstrip("/"))
    if not database or not options.keys() <= OPTIONS:
        raise InvalidParameter("connect.mariadb_url", parameter="source")
    named = {"user": parts.username, "password": parts.password, "host": parts.hostname}
    address: dict[str, Any] = {name: unquote(value) for name, value in named.items() if value}
    return address | {"port": parts.port or 3306, "database": database} | options


def _begin(cursor: Cursor) -> None:
    """A session in which nothing depends on the settings of server and user, and one state of the data."""
    cursor.execute(f"SET NAMES utf8mb4 COLLATE {COLLATION}")
    cursor.execute("SET SESSION " + ", ".join(f"{name} = {value}" for name, value in SETTINGS.items()))
    cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")


def _limit_time(cursor: Cursor) -> Cursor:
    """The cursor, whose next statement has what is left until the deadline: the server counts for each one anew."""
    if (left := seconds_left()) is not None:
        cursor.execute(f"SET SESSION max_statement_time = {max(0.001, left):.3f}")
    return cursor


def _room_for_sorting(question: Question) -> int:
    """Bytes of the largest sort before it goes to disk, by public types alone.

    The server refuses to sort where it has no room for fifteen rows of the longest texts that their columns may hold.
    """
    kinds = [*question.relation.schema.values(), *(() if isinstance(question, Norms) else question.key_types)]
    return LEAST_ROOM + 16 * 4 * LONGEST_TEXT * (1 + kinds.count(Type.TEXT))


def _identify_server(cursor: Cursor) -> str:
    """The number that the server gave itself; where it has none, the name of its machine and its port."""
    cursor.execute("SHOW VARIABLES LIKE 'server_uid'")
    if found := cursor.fetchall():
        return str(found[0][1])
    cursor.execute("SELECT CONCAT(@@hostname, ':', @@port)")
    ((name,),) = cursor.fetchall()
    return str(name)


def _check_version(version: str) -> None:
    numbers = tuple(int(part) for part in version.split("-", maxsplit=1)[0].split(".")[:2])
    if "MariaDB" not in version or numbers < OLDEST:
        raise DataError("connect.mariadb_too_old", spent="nothing")
    warn_if_untried("MariaDB", version)


def _read_booleans(rows: Sequence[Sequence[object]], question: Question) -> Sequence[Sequence[Any]]:
    """Rows whose truth values are no longer numbers."""
    kinds = () if isinstance(question, Norms) else question.key_types
    places = {i for i, kind in enumerate(kinds) if kind is Type.BOOLEAN}
    if not places:
        return rows
    return [[bool(v) if i in places and v is not None else v for i, v in enumerate(row)] for row in rows]


def _as(kind: exp.DType) -> Read:
    return lambda node: cast(node, kind)


def _text(node: Node) -> Node:
    return collate(cast(node, Kind.TEXT))


def _name(node: Node) -> Node:
    """The text of a column that says whose a row is, where it has the bytes of the column; missing where it has not."""
    found = _text(node)
    return choose((binary(exp.EQ, call("HEX", found), call("HEX", node.copy())), found.copy()))


def _flag(node: Node) -> Node:
    return binary(exp.NEQ, node, number(0))


def _day(kind: Type) -> Read:
    """A date that is in the calendar: servers keep 2024-02-31, 2024-00-00 and 0000-00-00 if a mode lets them."""

    def read(node: Node) -> Node:
        month, day = call("MONTH", node.copy()), call("DAYOFMONTH", node.copy())
        first = call("CONCAT", call("DATE_FORMAT", node.copy(), text("%Y-%m-")), text("01"))
        last = call("DAYOFMONTH", call("LAST_DAY", first))
        year = binary(exp.GTE, call("YEAR", node.copy()), number(1))
        exists = binary(exp.And, binary(exp.GTE, day, number(1)), binary(exp.LTE, day.copy(), last))
        whole = binary(exp.And, binary(exp.And, year, binary(exp.GTE, month, number(1))), exists)
        return choose((whole, MARIADB.to(kind, node)))

    return read


_WHOLE = read_within(
    MARIADB.widen(number(-LARGEST_INTEGER - 1)), MARIADB.widen(number(LARGEST_INTEGER)), _as(Kind.BIGINT)
)
_FIELDS: Mapping[str, tuple[Type, Read]] = {
    **dict.fromkeys(["tinyint", "smallint", "mediumint", "int", "year"], (Type.INTEGER, _as(Kind.BIGINT))),
    "bigint": (Type.INTEGER, _WHOLE),
    **dict.fromkeys(["double", "float"], (Type.REAL, _as(Kind.DOUBLE))),
    **dict.fromkeys(["char", "varchar", "tinytext", "text", "mediumtext", "longtext"], (Type.TEXT, _text)),
    **dict.fromkeys(["enum", "set", "uuid"], (Type.TEXT, _text)),
    "date": (Type.DATE, _day(Type.DATE)),
    "datetime": (Type.TIMESTAMP, _day(Type.TIMESTAMP)),
    "timestamp": (Type.INSTANT, _day(Type.INSTANT)),
}


def _field(
    name: str, kind: str, declared: str, scale: int | None, characters: str | None, length: int | None
) -> Field | None:
    """How a column of a MariaDB type is read; None where the type has no meaning here."""
    if kind == "decimal":
        return Field(name, Type.REAL, _as(Kind.DOUBLE), wild=True) if scale else Field(name, Type.INTEGER, _WHOLE)
    if declared == "tinyint(1)":
        return Field(name, Type.BOOLEAN, _flag)
    if kind not in _FIELDS or (characters is not None and characters not in CHARACTER_SETS):
        return None
    found, read = _FIELDS[kind]
    short = found is Type.TEXT and length is not None and 4 * length <= LONGEST_TEXT
    identify = _name if found is Type.TEXT and characters in UNCHECKED else None
    return Field(name, found, read, wild=found is Type.REAL, short=short, identify=identify)
