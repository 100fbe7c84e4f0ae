"""One question, one fingerprint: equal where a question is built again, different where any public field is."""

import copy
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, timedelta
from enum import Enum
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import mosha
from fuzz import _random_plans as plans
from mosha.connect.language.schema import Schema
from mosha.connect.plan.source import Source
from mosha.core.account import Account
from mosha.core.fingerprint import describe, fingerprint_plan
from mosha.errors import MoshaError
from mosha.tables import protect, public_table
from tests.searches import draw_seeds


def table(**columns: Any) -> Any:
    return protect(pa.table(columns or {"who": [1, 2], "x": ["a", "b"]}), unit=mosha.Person("who", at_most=2))


def test_a_constant_that_looks_like_the_name_of_a_frame_is_a_constant() -> None:
    # Both were once one question, so that the second was given the answer of the first.
    first, second = (table().where(mosha.col("x") == f"frame_{n}").count() for n in (1, 2))
    assert first.fingerprint != second.fingerprint


def test_another_question_under_a_key_is_refused_even_if_it_differs_in_one_constant() -> None:
    account = mosha.Ledger.memory().account("a", unit=mosha.Person("who"), epsilon=10)
    rows = pa.table({"who": range(4), "x": ["frame_1", "frame_2"] * 2})
    kept = protect(rows, unit=mosha.Person("who", at_most=1), account=account)
    kept.where(mosha.col("x") == "frame_1").count().release(epsilon=1, key="monday")
    with pytest.raises(MoshaError, match="monday"):
        kept.where(mosha.col("x") == "frame_2").count().release(epsilon=1, key="monday")


@pytest.mark.parametrize("readable", [True, False])
def test_one_key_over_two_databases_pays_for_one_of_them(postgres_server: Any, readable: bool) -> None:
    """Schema and table have the same names in both: once, the second question was given the answer of the first."""
    import psycopg

    account = mosha.Ledger.memory().account("a", unit=mosha.Person("who"), epsilon=10)
    kept = []
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as main:
        for statement in ("DATABASE IF EXISTS fingerprints_first", "DATABASE IF EXISTS fingerprints_second"):
            main.execute(f"DROP {statement}")
        main.execute("DROP ROLE IF EXISTS reader")
        main.execute("CREATE ROLE reader LOGIN")
        for name in ("first", "second"):
            main.execute(f"CREATE DATABASE fingerprints_{name}")
            url = postgres_server.url(f"fingerprints_{name}")
            with psycopg.connect(url, autocommit=True) as made:
                made.execute("CREATE TABLE stays (who bigint, x bigint)")
                made.execute("GRANT SELECT ON stays TO reader")
                if not readable:
                    made.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
            place = url.replace("mosha@", "reader@")
            unit = mosha.Person("who", at_most=1)
            kept.append(protect(place, table="stays", unit=unit, account=account))
            again = protect(place, table="stays", unit=unit, account=account)
            assert again.count().fingerprint == kept[-1].count().fingerprint
    assert kept[0].count().fingerprint != kept[1].count().fingerprint
    kept[0].count().release(epsilon=1, key="monday")
    with pytest.raises(MoshaError, match="monday"):
        kept[1].count().release(epsilon=1, key="monday")


def random_question(seed: Any) -> Any:
    rows, more = plans.neighbors(random.Random(seed), mosha.Row())[0]
    generator = random.Random(seed)
    unit = generator.choice(plans.UNITS)
    tables = [protect(plans.arrow(c, r), unit=unit) for c, r in ((plans.COLUMNS, rows), (plans.BESIDE, more))]
    public = public_table(plans.arrow(plans.PUBLIC, plans.PUBLIC_ROWS))
    beside = tables[1] if isinstance(unit, mosha.Person) else None
    return plans.Planner(seed).question(tables[0], beside, public)


def random_questions(count: Any) -> Iterator[tuple[Any, ...]]:
    for seed in draw_seeds("fingerprints"):
        try:
            yield seed, random_question(seed)
        except MoshaError:
            continue  # a question that is refused
        count -= 1
        if not count:
            return


def other(leaf: Any) -> Any:
    """Another value in place of a public one."""
    if isinstance(leaf, Enum):
        return next(member for member in type(leaf) if member is not leaf)
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, str):
        return leaf + "_"
    if isinstance(leaf, bytes):
        return leaf + b"_"
    if isinstance(leaf, date):
        return leaf + (timedelta(1) if leaf.year < 9000 else -timedelta(1))
    return 0 if leaf is None else leaf + Fraction(1, 7) if isinstance(leaf, Fraction) else leaf + max(1, abs(leaf))


def variants(value: Any) -> Iterator[Any]:
    """The same plan with one public field changed, once for every field."""
    if isinstance(value, (Source, Schema, Account)):
        return
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield {(other(key) if k == key else k): v for k, v in value.items()}
            yield from ({**value, key: changed} for changed in variants(part))
    elif isinstance(value, (tuple, list)):
        for i, part in enumerate(value):
            yield from ((*value[:i], changed, *value[i + 1 :]) for changed in variants(part))
        if value:
            yield value[:-1]
    elif is_dataclass(value) and not isinstance(value, Enum):
        for field in (f for f in fields(value) if f.name != "account"):  # who pays is no part of the question
            for changed in variants(getattr(value, field.name)):
                made = copy.copy(value)
                object.__setattr__(made, field.name, changed)
                yield made
    else:
        yield other(value)


def test_every_public_field_of_every_question_tells() -> None:
    for seed, question in random_questions(12):
        assert question.fingerprint == random_question(seed).fingerprint
        changed = [variant.fingerprint for variant in variants(question)]
        assert len(changed) > 5
        assert question.fingerprint not in changed


def test_random_questions_differ() -> None:
    found = {}
    for _, question in random_questions(40):
        found[question.fingerprint] = question
    assert len(found) == 40


def test_numbers_and_texts_that_look_alike_are_told_apart() -> None:
    alike = [1, 1.0, True, "1", b"1", Fraction(1), None, "None", (1,), [1], ((1,),), ("1", 1), ("1, 1",)]
    assert len({fingerprint_plan(value) for value in alike}) == len(alike)


def test_a_fingerprint_is_the_same_in_another_process() -> None:
    program = (
        "import pyarrow as pa, mosha\n"
        "frames = [mosha.protect(pa.table({'who': [1]}), unit=mosha.Row()) for _ in range(3)]\n"
        "t = mosha.protect(pa.table({'who': [1, 2], 'x': ['a', 'b']}), unit=mosha.Person('who', at_most=2))\n"
        "print(t.where(mosha.col('x') == 'frame_1').group_by('x', keys=['a']).count().weighted(count=2).fingerprint)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": str(random.randrange(1000))}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    here = table().where(mosha.col("x") == "frame_1").group_by("x", keys=["a"]).count().weigh(count=2)
    assert ran.stdout.strip() == here.fingerprint


class _Masked(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "'x'"


class _Ward(str, Enum):  # noqa: UP042  (whose str() is the name of a member)
    FIRST = "a"


def test_a_text_is_told_by_its_letters_whatever_its_class_says_of_itself() -> None:
    """Masked texts shared a fingerprint; a member of an enumeration was sent as its name, and met no row."""
    asked = [table().where(mosha.col("x") == text).count() for text in (_Masked("a"), _Masked("b"), _Ward.FIRST, "a")]
    masked, other, member, plain = (question.fingerprint for question in asked)
    assert masked == member == plain != other
    assert mosha.connect.lit(_Ward.FIRST).value == "a"
    assert type(mosha.connect.lit(_Ward.FIRST).value) is str
    listed = [table().group_by("x", keys=[text]).count().fingerprint for text in (_Masked("a"), _Masked("b"), "a")]
    assert listed[0] == listed[2] != listed[1]
    named = [table().group_by(name, keys=["a"]).count().fingerprint for name in ("x", _Masked("x"))]
    assert named[0] == named[1]


class Whole(int):
    """A number that says something else about itself."""

    def __repr__(self) -> str:
        return "7"


@pytest.mark.parametrize(
    "value",
    [
        (), ((),), (1, -2**70, True, None, 1.5), ("a", 'b"\\', "\n", "é", "\ud800", "岁"), ((1,), (2,)), [1, (2, [3])],
        {"a": (1, "x")}, (Whole(5), b"\xff", date(2020, 1, 2), Fraction(1, 3)),
    ],
    ids=str,
)  # fmt: skip
def test_a_fingerprint_is_the_hash_of_the_description_as_json_letter_for_letter(value: Any) -> None:
    assert fingerprint_plan(value, 3) == hashlib.sha256(json.dumps([describe(value), describe(3)]).encode()).hexdigest()
