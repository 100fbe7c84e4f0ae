"""Bounded sums in plain Python: the definition that engines and kernel are compared with."""

import math
from collections import defaultdict
from typing import Any

from mosha.connect import NormBound, Persons, Unbounded
from tests.connect.oracle import evaluate, scanned


def contributions(question: Any, values: Any, schema: Any, rows: Any) -> Any:
    """(person, key, value integers) for each row that counts."""
    found = []
    for cells in rows:
        row = {name: scanned(cell, kind) for (name, kind), cell in zip(schema.items(), cells, strict=True)}
        person = row[question.relation.person] if question.relation.person else 0
        key = tuple(evaluate(expression, row, schema) for _, expression in question.keys)
        if person is None or (question.only is not None and key not in question.only):
            continue
        found.append((person, key, tuple(evaluate(value.expression, row, schema) for value in values)))
    return found


def toward_zero(n: Any, d: Any) -> Any:
    return n // d if n >= 0 else -(-n // d)


def expected(question: Any, schema: Any, rows: Any) -> dict[Any, Any]:
    """The answer to an Aggregation with Unbounded or NormBound, {key: sums}."""
    values = [value for _, value in question.values]
    listed = contributions(question, values, schema, rows)
    answer: Any = defaultdict(lambda: [0] * len(values))
    if question.only is not None:
        for key in question.only:
            answer[key]  # every public key appears
    for _, key, _ in listed:
        answer[key]
    for place, (name, value) in enumerate(question.values):
        if isinstance(question.bound, Unbounded):
            for _, key, integers in listed:
                answer[key][place] += integers[place]
        else:
            for key, total in _norm_bounded(question, name, value, listed).items():
                answer[key][place] = total
    if not question.keys:
        answer[()]
    return {key: tuple(sums) for key, sums in answer.items()}


def _norm_bounded(question: Any, name: Any, value: Any, listed: Any) -> Any:
    bound: NormBound = question.bound
    leader, limit = bound.leaders()[name]
    names = [n for n, _ in question.values]
    by_row = bound.order == 1 and not isinstance(value, Persons)
    parts = _parts(listed, names.index(name), value, by_row)
    weights = _parts(listed, names.index(leader), dict(question.values)[leader], by_row)
    full = limit << bound.fraction
    answer: Any = defaultdict(int)
    for person, pieces in parts.items():
        powers = [abs(v) ** bound.order for _, v in weights[person]]
        norm = sum(powers)
        for key, v in pieces:
            if norm <= limit**bound.order:
                answer[key] += v << bound.fraction
            else:
                root = norm if bound.order == 1 else math.isqrt(norm - 1) + 1
                answer[key] += toward_zero(v * full, root)
    return answer


def _parts(listed: Any, place: Any, value: Any, by_row: Any) -> Any:
    """For each person the (key, v) that are scaled: rows, or sums over groups."""
    parts = defaultdict(list)
    if by_row:
        for person, key, integers in listed:
            parts[person].append((key, integers[place]))
        return parts
    groups: Any = defaultdict(lambda: defaultdict(int))
    for person, key, integers in listed:
        groups[person][key] = 1 if isinstance(value, Persons) else groups[person][key] + integers[place]
    limit = 2**43  # sums of one group stop here, so that squares stay exact
    return {person: [(key, min(max(v, -limit), limit)) for key, v in found.items()] for person, found in groups.items()}
