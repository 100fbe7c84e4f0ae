"""Integers that stand for persons and keys, exactly: two of them are equal only where the persons or keys are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlglot import exp

from mosha.connect.engines.duckdb_fields import key_array, read_arrow
from mosha.connect.language.schema import Type
from mosha.connect.plan.aggregation import Question
from mosha.connect.plan.source import Array, object_array
from mosha.connect.sql.dialect import DUCKDB, Kind, Node, binary, call, cast, choose, column, number
from mosha.connect.sql.rows import subquery
from mosha.connect.sql.statement import alias, all_of, copies, key_columns, select

__all__ = [
    "MISSING",
    "UNLISTED",
    "KeyLabels",
    "ListedKeys",
    "key_labels",
    "person_label",
    "persons_are_exact",
    "to_array",
]

Fetch = Callable[[str], Mapping[str, Any]]
MISSING = -(2**63)  # stands for the NULL key among integer keys
UNLISTED = 2**31 - 1  # stands for all keys but a few listed ones


def person_label(question: Question) -> Node:
    """An integer for each person: the person itself, or a 64-bit hash (see `persons_are_exact`); 0 without persons."""
    if question.relation.person is None:
        return cast(number(0), Kind.BIGINT)
    return column("p") if _has_whole_keys(question) else call("HASH", column("p"))


def _has_whole_keys(question: Question) -> bool:
    assert question.relation.person is not None
    return question.relation.schema[question.relation.person] is Type.INTEGER


def persons_are_exact(fetch: Fetch, question: Question, rows: exp.Select) -> bool:
    """Whether no two persons share a label.

    Two persons under one label would be bounded together, and the one without the other could then move the answer by
    twice the bound. So this is looked up, not hoped for.
    """
    if question.relation.person is None or _has_whole_keys(question):
        return True
    people = select([column("p")], subquery(rows.copy(), "rows"), group=[column("p")])
    labels = exp.Count(this=exp.Distinct(expressions=[call("HASH", column("p"))]))
    counted = select([alias(exp.Count(this=exp.Star()), "n"), alias(labels, "h")], subquery(people, "people"))
    found = fetch(DUCKDB.sql(counted))
    return bool(found["n"][0] == found["h"][0])


@dataclass(frozen=True)
class KeyLabels:
    """How keys become integer labels, and labels keys again: one integer key is its own label, others are hashed."""

    width: int
    whole: bool
    listed: Mapping[int, int]
    columns: tuple[Array, ...]
    first = 0

    def label(self) -> Node:
        if self.width == 0:
            return cast(number(0), Kind.BIGINT)
        if self.whole:  # who reads the columns puts MISSING in the place of NULL
            return column("k0")
        return call("HASH", *(column(f"k{i}") for i in range(self.width)))

    def keys(self, labels: Array) -> tuple[Array, ...]:
        """The key columns of these labels."""
        if self.width == 0:
            return ()
        if self.whole:
            if MISSING not in labels:
                return (labels.astype(np.int64),)
            return (object_array([None if label == MISSING else label for label in labels.tolist()]),)
        order = np.array([self.listed[label] for label in labels.tolist()], dtype=np.int64)
        return tuple(key[order] for key in self.columns)

    def ambiguous(self, labels: Array, fetch: Fetch, rows: exp.Select) -> bool:
        """Whether the label of the NULL key is an integer key as well, or one came after the keys were listed."""
        if not self.whole:
            return self.width > 0 and any(label not in self.listed for label in labels.tolist())
        if MISSING not in labels:
            return False
        least = exp.EQ(this=column("k0"), expression=cast(number(MISSING), Kind.BIGINT))
        counted = select([alias(exp.Count(this=exp.Star()), "n")], subquery(rows.copy(), "rows"), where=least)
        return bool(fetch(DUCKDB.sql(counted))["n"][0])


@dataclass(frozen=True)
class ListedKeys:
    """A few public keys as labels, each its place in the list from `first` on; what is not listed has UNLISTED."""

    question: Question

    whole = True
    width = 1

    @property
    def first(self) -> int:
        """One where the engine looks up texts in a list, else zero."""
        texts = self.question.key_types == (Type.TEXT,)
        return int(texts and self.question.only is not None and (None,) not in self.question.only)

    def label(self) -> Node:
        question, places = self.question, []
        assert question.only is not None
        if self.first == 1:
            known = exp.Array(expressions=[DUCKDB.literal(value, Type.TEXT) for (value,) in question.only])
            return call("LIST_POSITION", known, *key_columns(question))  # once for each entry of a dictionary
        for place, values in enumerate(question.only):
            tests = [
                binary(exp.Is, key, exp.Null()) if value is None else binary(exp.EQ, key, DUCKDB.literal(value, kind))
                for key, value, kind in zip(key_columns(question), values, question.key_types, strict=True)
            ]
            places.append((all_of(tests), cast(number(place), Kind.INT)))
        return choose(*places)

    def keys(self, labels: Array) -> tuple[Array, ...]:
        """The key columns of these labels."""
        assert self.question.only is not None
        found = [self.question.only[label - self.first] for label in labels.tolist()]
        return tuple(object_array([key[i] for key in found]) for i in range(len(self.question.keys)))

    def ambiguous(self, labels: Array, fetch: Fetch, rows: exp.Select) -> bool:  # noqa: ARG002
        """No label stands for two keys."""
        return False


def key_labels(fetch: Fetch, question: Question, rows: exp.Select) -> KeyLabels | None:
    """The labels of a question's keys; None if two keys share a hash."""
    kinds = question.key_types
    if not kinds or kinds == (Type.INTEGER,):
        return KeyLabels(len(kinds), bool(kinds), {}, ())
    keys = key_columns(question)
    groups = select(keys, subquery(rows.copy(), "rows"), group=copies(keys))
    label = alias(call("HASH", *copies(keys)), "g")
    found = fetch(DUCKDB.sql(select([*copies(keys), label], subquery(groups, "groups"))))
    labels = np.asarray(found["g"]).view(np.int64).tolist()
    listed = {label: place for place, label in enumerate(labels)}
    if len(listed) < len(labels):
        return None
    return KeyLabels(len(kinds), False, listed, tuple(key_array(found[f"k{i}"], k) for i, k in enumerate(kinds)))


def to_array(found: Any) -> Array:
    """An Arrow column as an array: NaN for a missing double, MISSING for a missing whole number, UNLISTED for a key."""
    if found.null_count and found.type != "double":
        found = found.fill_null(UNLISTED if found.type == "int32" else MISSING)
    return read_arrow(found)
