"""DuckDB: files and frames on this machine, and DuckDB databases, read only."""

from __future__ import annotations

import hashlib
import re
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import duckdb
from sqlglot import exp

from mosha.connect.engines.compiled_path import COMPILED_FROM, Compiled
from mosha.connect.engines.duckdb_fields import (
    arrow_array,
    by_code_point,
    by_whole_texts,
    can_read_batches,
    count_rows,
    count_table,
    decode_bytes,
    field_of,
    find_coarse,
    join_columns,
    leave_out,
    list_types,
    list_units,
    listed_array,
    statement_of,
)
from mosha.connect.engines.duckdb_frames import cast_to_text, check_frame, object_columns, settle_frame, tell_state
from mosha.connect.engines.duckdb_plans import (
    OutOfMemory,
    Plans,
    hide_errors,
    in_slices,
    make_config,
    read_memory_limit,
    read_silently,
    slices_for,
)
from mosha.connect.engines.labels import to_array
from mosha.connect.engines.local_source import (
    LocalSource,
    cell_columns,
    files_version,
    have_other_columns,
    number_columns,
    separator_of,
    size_of,
    tell_unchanged,
    watch_columns,
)
from mosha.connect.engines.source import BATCH, Columns, Engine, Use, stopping, too_late
from mosha.connect.engines.tried import warn_if_untried
from mosha.connect.kernels.near_rows import NearRows
from mosha.connect.language.schema import Type
from mosha.connect.plan.aggregation import NearRanks, Norms, Question
from mosha.connect.plan.source import Array, Field, Totals
from mosha.connect.sql.dialect import DUCKDB, Listed, Node, call, column, text
from mosha.connect.sql.rows import subquery
from mosha.connect.sql.statement import FEW, Query, alias, select, span_of
from mosha.core.errors import DataError, InvalidParameter

__all__ = ["DuckDB", "LocalSource"]

T = TypeVar("T")


class DuckDB(Engine):
    """An embedded engine. It spills to `spill` beyond `memory_limit`, reads only, and fetches no extensions.

    Units:
        `memory_limit` is a size such as "2GB"; `threads` a number of processor threads; tables of `compiled_from`
        rows or more are bounded by compiled kernels (None: never), with the same answers.
    """

    dialect = DUCKDB

    def __init__(
        self,
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        spill: str | Path | None = None,
        compiled_from: int | None = COMPILED_FROM,
    ) -> None:
        config = make_config(memory_limit, threads, spill)
        warn_if_untried("DuckDB", duckdb.__version__)
        self._connection = duckdb.connect(":memory:", config=config)
        # The statistics of a Parquet file leave NaN out, and the optimiser would drop the guards that catch it: one
        # person's NaN could then make a question fail.
        self._connection.execute("SET disabled_optimizers = 'statistics_propagation'")
        with suppress(duckdb.InvalidInputException):  # in a notebook without ipywidgets: none to silence
            self._connection.execute("SET enable_progress_bar = false")
        # Barriers between layers keep to one thread where rows must stay in order, which no question asks for.
        self._connection.execute("SET preserve_insertion_order = false")
        self._lock = threading.Lock()
        self._frames = 0
        self._plans = Plans(self._connection)
        self._forgotten: deque[str] = deque()
        self._attached: dict[str, str] = {}
        self._states: dict[str, str] = {}
        self._listings: Counter[str] = Counter()
        self.compiled_from = compiled_from
        self._memory = read_memory_limit(self._connection)
        self._compiled = Compiled(self._columns, self._batches, self._memory)

    def file(self, path: str | Path, *, separator: str | None = None, multiline: bool = False) -> LocalSource:
        """A CSV or Parquet file, a folder of Parquet files, or a glob; `separator` and `multiline` are for CSV."""
        place = str(Path(path) / "**" / "*.parquet") if Path(path).is_dir() else str(path)
        if re.search(r"\.(csv|tsv|txt)(\.gz|\.zst)?$", place, re.IGNORECASE):
            return self._csv(place, separator, multiline=multiline)
        if separator is not None or multiline:
            raise InvalidParameter("connect.option_for_csv", parameter="separator")
        problem, state = DataError("connect.parquet_unreadable", place=str(path), spent="nothing"), files_version(place)
        replaced = exp.EQ(this=exp.Var(this="utf8_validation"), expression=text("replace"))
        origin = partial(call, "READ_PARQUET", text(place), replaced)
        fields, skipped = self._describe(origin(), problem)
        fields = tuple(map(by_whole_texts, fields))
        [(rows,)] = self._ask(count_rows(place), problem)
        ask, described = partial(self._ask, problem=problem), self.dialect.sql(select([exp.Star()], origin()))
        types = partial(list_types, ask, described, place)
        opened = types()
        fields, skipped = leave_out({field.name for field in fields} - set(opened), fields, skipped)
        self._check_moments(origin, find_coarse(self._ask(list_units(place), problem), fields))
        named = self.dialect.sql(call("READ_PARQUET", text(place)))
        changed = watch_columns(place, types, state, {field.name: opened.get(field.name) for field in fields})
        return LocalSource(
            self, fields, skipped, origin, int(rows), partial(files_version, place), named, fixed=False, changed=changed
        )

    def _csv(self, place: str, separator: str | None, *, multiline: bool) -> LocalSource:
        """Comma-separated text (see `comma_separated`)."""
        problem = DataError("connect.csv_unreadable", place=place, spent="nothing")
        separator, state = separator_of(place, separator), files_version(place)
        places = partial(number_columns, place, separator, problem)
        names = list(opened := places())[:-1]
        origin = cell_columns(place, separator, names, multiline=multiline)
        fields = tuple(Field(name, Type.TEXT, loose=True) for name in names)
        self._ask(self.dialect.sql(select([exp.Star()], origin()).limit(0)), problem)
        changed = watch_columns(place, places, state, opened)
        form = partial(files_version, place)
        return LocalSource(self, fields, (), origin, form=form, takes_utf8=True, changed=changed)

    def frame(self, frame: object, *, whole: bool = True) -> LocalSource:
        """A pandas, Polars or Arrow table, read in place; `whole` is said as of a `LocalSource`."""
        problem = DataError("connect.not_a_table", kind=type(frame).__name__, spent="nothing")
        with self._lock:
            self._frames += 1
            name = f"frame_{self._frames}"
        check_frame(frame)
        given = frame
        frame, texts, apart = settle_frame(given)
        self._run_silently(partial(self._connection.register, name, frame), problem)
        origin = partial(exp.Table, this=exp.Identifier(this=name, quoted=True))
        fields, skipped = self._describe(origin(), problem, texts)
        self._check_moments(origin, [f.name for f in fields if f.type in {Type.INSTANT, Type.TIMESTAMP}])
        mixed = apart | {title for title in object_columns(frame) if not self._is_read(origin(), title)}
        fields, skipped = leave_out(mixed, fields, skipped)
        size, frozen, form = tell_state(frame)
        version = lambda: "frozen" if frozen else None
        look = self._is_empty if frozen else None
        whole = whole and frame is given  # what a lazy frame or a reader of text leaves out nobody knows
        source = LocalSource(self, fields, skipped, origin, size, version, form=form, is_empty=look, whole=whole)
        weakref.finalize(source, self._forgotten.append, name)  # takes no lock: it may run amid anything
        return source

    def _check_moments(self, origin: Callable[[], Node], moments: Sequence[str]) -> None:
        """Moments in (milli)seconds are counted in microseconds when they are read, and may be too many."""
        if far := [title for title in moments if not self._is_read(origin(), title)]:
            raise DataError("connect.moments_too_far", column=far[0], spent="nothing")

    def _is_read(self, node: Node, name: str) -> bool:
        """Whether all objects of a column read as its type: one that does not would fail questions after payment."""
        try:
            self._ask(
                self.dialect.sql(select([exp.Count(this=column(name))], node)), DataError("connect.objects_unreadable")
            )
        except DataError:
            return False
        return True

    def _unregister(self) -> None:
        """Let go of frames that nobody holds any more (under the lock)."""
        while self._forgotten:
            with suppress(duckdb.Error):
                self._connection.unregister(self._forgotten.popleft())

    def texts(self, columns: Mapping[str, Array], fields: tuple[Field, ...], place: str) -> LocalSource:
        """Columns of texts in memory, which `fields` read as what they mean; `place` is where they came from."""
        with self._lock:
            self._frames += 1
            name = f"frame_{self._frames}"
        problem = DataError("connect.texts_unreadable", spent="nothing")
        self._run_silently(partial(self._connection.register, name, dict(columns)), problem)
        read = partial(cast_to_text, name, tuple(columns))
        source = LocalSource(self, fields, (), read, place=place, form=lambda: "texts")
        weakref.finalize(source, self._forgotten.append, name)
        return source

    def database(self, path: str | Path, table: str) -> LocalSource:
        """A table of a DuckDB database file, attached read only."""
        place = str(Path(path).resolve())
        if place not in self._attached:
            stem = Path(place).stem  # the name under which the file's own views look for their tables
            taken = {"memory", "system", "temp", *(name.lower() for name in self._attached.values())}
            name = f"{stem}_{len(self._attached) + 1}" if stem.lower() in taken else stem
            quoted = self.dialect.sql(exp.Identifier(this=name, quoted=True))
            attach = f"ATTACH {self.dialect.sql(text(place))} AS {quoted} (READ_ONLY)"
            self._states[place] = files_version(place)
            self._ask(attach, DataError("connect.not_a_duckdb_database", place=str(path), spent="nothing"))
            self._attached[place] = name
        *schema, plain = table.split(".", 1)
        parts = [self._attached[place], *(schema or ["main"]), plain]
        catalog, db, this = (exp.Identifier(this=part, quoted=True) for part in parts)
        origin = exp.Table(this=this, db=db, catalog=catalog).copy
        problem = DataError("connect.no_table_in_database", table=table, place=str(path), spent="nothing")
        fields, skipped = self._describe(origin(), problem)
        named = f"{table} of {place}"  # the name under which a file is attached depends on those before it
        size, fixed = self._count_table(parts)
        version = partial(tell_unchanged, place, self._states[place]) if size is not None else lambda: None
        read = tuple(map(by_code_point, fields))
        look = self._is_empty
        return LocalSource(self, read, skipped, origin, size, version, place=named, is_empty=look, fixed=fixed)

    def _count_table(self, parts: Sequence[str]) -> tuple[int | None, bool]:
        """The rows of a table of an attached file (None for a view), and whether all its values are stored."""
        found = self._ask(self.dialect.sql(count_table(parts)), DataError("connect.texts_unreadable", spent="nothing"))
        return (int(found[0][0]), bool(found[0][1])) if found else (None, False)

    def _is_empty(self, statement: str) -> bool:
        """Whether a statement is known to have no rows."""
        with suppress(DataError):
            return not self._ask(statement, DataError("connect.duckdb_unfit", spent="nothing"))
        return False

    def _run_silently(self, work: Callable[[], T], problem: DataError) -> T:
        with self._lock:
            self._unregister()
            return hide_errors(work, problem)

    def _ask(self, statement: str, problem: DataError) -> list[Any]:
        return self._run_silently(lambda: list(self._connection.execute(statement).fetchall()), problem)

    def _describe(
        self, node: Node, problem: DataError, texts: frozenset[str] = frozenset()
    ) -> tuple[tuple[Field, ...], tuple[str, ...]]:
        """The fields of a table, and what cannot be read; `texts` come as bytes."""
        rows = self._ask(f"DESCRIBE {self.dialect.sql(select([exp.Star()], node))}", problem)
        read = [(row[0], decode_bytes(row[0]) if row[0] in texts else field_of(row[0], row[1])) for row in rows]
        fields = tuple(field for _, field in read if field is not None)
        return fields, tuple(name for name, field in read if field is None)

    def answer(self, question: Question) -> Totals:
        with suppress(OutOfMemory):  # which of its troubles the engine had is nobody's business
            found = None if have_other_columns(question.relation) else self._list_keys(question, self._answer)
            if found is not None and not have_other_columns(question.relation):  # which came meanwhile
                return found
        raise DataError("connect.duckdb_unfinished")

    def look(self, question: Question) -> Totals:
        if have_other_columns(question.relation):
            raise DataError("connect.columns_changed", spent="nothing")
        return self._list_keys(question, super().look)

    def analyze(self, found: list[Query], question: Question) -> None:
        for query in found:
            statement = statement_of(query, _key_kinds(question))
            make = partial(self._plans.make, statement, keep=question.listing is None)
            problem = DataError("connect.duckdb_unfit", spent="nothing")
            self._run_alone(partial(hide_errors, make, problem, statement))

    def _run_alone(self, work: Callable[[], T]) -> T:
        """Do something with the connection, alone, and not beyond the deadline."""
        with self._lock, stopping(self._connection.interrupt) as struck:
            try:
                return work()
            except DataError:
                if not struck():
                    raise
        raise too_late()

    def _list_keys(self, question: Question, answer: Callable[[Question], T]) -> T:
        if question.only is None or len(question.only) <= FEW or span_of(question) is not None:
            return answer(question)
        name = "keys_" + hashlib.sha256(repr(question.only).encode()).hexdigest()[:32]
        with self._lock:
            self._listings[name] += 1
        try:
            return answer(question.list_values(partial(self._list, name)))
        finally:
            with self._lock:
                self._listings[name] -= 1
                if not self._listings[name]:
                    del self._listings[name]
                    self._forgotten.append(name)
                self._unregister()

    def _list(self, name: str, columns: Sequence[Listed], alias_name: str) -> Node:
        """Public keys as a table of arrays: SQL with so many constants would take longer to read than the data."""
        arrays = {f"c{i}": listed_array(listed) for i, listed in enumerate(columns)}
        self._run_silently(
            partial(self._connection.register, name, arrays), DataError("connect.keys_unlisted", spent="nothing")
        )
        typed = [alias(self.dialect.to(c.kind, column(f"c{i}")), c.name) for i, c in enumerate(columns)]
        return subquery(select(typed, exp.Table(this=exp.Identifier(this=name, quoted=True))), alias_name)

    def _find_compiled(self, question: Question) -> Totals | NearRows | None:
        """What the compiled kernels find, where they are quicker and can tell."""
        size = size_of(question.relation)
        if size is None or not self._compiled.pays_off(size, self.compiled_from):
            return None
        versions = [source.version() for source in question.relation.sources if isinstance(source, LocalSource)]
        version = None if None in versions else "\n".join(map(str, versions))
        with suppress(OutOfMemory):
            return self._compiled.answer(question, size, version)
        return None

    def _answer(self, question: Question) -> Totals:
        found = self._find_compiled(question)
        if found is not None:
            return found if isinstance(found, Totals) else found.join()
        count = slices_for(question, size_of(question.relation), self._memory)
        return in_slices(question, count, super().answer)

    def _use_cells(self, use: Use, question: Question) -> bool:
        """Hand the cells near ranks to `use`, some groups at a time."""
        found = self._find_compiled(question)
        if found is None:
            found = super().answer(question)
        for part in [found] if isinstance(found, Totals) else found.list_blocks():
            use(part)
        return True

    def answer_in_batches(self, question: Question, use: Use) -> None:
        """By SQL, which spills what does not fit; by slices where it has too little memory to begin."""
        if isinstance(question, NearRanks):
            with suppress(OutOfMemory):
                is_told = not have_other_columns(question.relation)
                is_told = is_told and self._list_keys(question, partial(self._use_cells, use))
                if is_told and not have_other_columns(question.relation):
                    return
            raise DataError("connect.duckdb_unfinished")
        size, begun = size_of(question.relation), False

        def use_part(totals: Totals) -> None:
            nonlocal begun
            begun = True
            use(totals)

        if can_read_batches() and slices_for(question, size, self._memory) == 1:
            with suppress(OutOfMemory):
                super().answer_in_batches(question, use_part)
                if not have_other_columns(question.relation):
                    return
            if begun:
                raise DataError("connect.duckdb_unfinished")
        use(self.answer(question))

    def run_in_batches(self, query: Query, question: Question, use: Callable[[Columns], None]) -> None:
        kinds = _key_kinds(question)
        statement = statement_of(query, kinds)
        with self._lock:
            for batch in self._plans.read_batches(statement, 2 * BATCH):
                use(join_columns({name: arrow_array(column) for name, column in batch.items()}, query, kinds))

    def run(self, found: list[Query], question: Question) -> list[Columns]:
        return [self._fetch(query, _key_kinds(question)) for query in found]

    def _columns(self, statement: str) -> Mapping[str, Any]:
        """The columns of an answer as arrays."""
        return self._run_alone(lambda: read_silently(lambda: self._plans.run(statement), statement))

    def _batches(self, statement: str) -> Iterator[Mapping[str, Array]]:
        """The columns of an answer in batches, for the compiled kernels, which work in one thread: a second waits."""
        with self._lock:
            [(threads,)] = self._connection.execute("SELECT current_setting('threads')").fetchall()
            self._connection.execute("SET threads = 1")
            try:
                for batch in self._plans.read_batches(statement, 2 * BATCH):
                    yield {name: to_array(batch[name]) for name in batch}
            finally:
                self._connection.execute(f"SET threads = {int(threads)}")

    def _fetch(self, query: Query, kinds: tuple[Type, ...]) -> Columns:
        return join_columns(self._columns(statement_of(query, kinds)), query, kinds)


def _key_kinds(question: Question) -> tuple[Type, ...]:
    return (Type.INTEGER,) if isinstance(question, Norms) else question.key_types
