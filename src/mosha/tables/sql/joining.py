"""FROM and JOIN: the tables of a query put together in an order in which every step keeps whose a row is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from mosha.connect.language.expression import lit
from mosha.connect.plan.person_steps import Pick, Union
from mosha.connect.plan.relation import Relation
from mosha.core.errors import DataError, InvalidParameter, WrongUnit
from mosha.core.language import phrase
from mosha.core.options import JoinName
from mosha.core.unit import Person
from mosha.tables.functions.missing_values import passes_over
from mosha.tables.sql.aggregate import is_aggregate
from mosha.tables.sql.scalar import Refused, list_conditions, name_of, scalar
from mosha.tables.sql.scope import PERSON, Piece, Scope, check_new
from mosha.tables.table import Table

__all__ = ["join_full", "join_pieces", "join_scopes", "match_people"]


@dataclass
class _Assembly:
    """Tables that wait, and conditions that are still to be used."""

    pieces: list[Piece]
    conditions: list[exp.Expression]
    using: list[tuple[str, str]] = field(default_factory=list)  # (alias of the right table, column)

    def find_alias(self, node: exp.Column) -> str | None:
        """The one table that a column belongs to; None where it belongs to none of FROM."""
        found = [piece.alias for piece in self.pieces if Scope.find(piece.scope, node) is not None]
        return found[0] if len(found) == 1 else None


def join_pieces(pieces: list[Piece], conditions: list[exp.Expression]) -> tuple[Scope, list[exp.Expression]]:
    """All tables of FROM in one scope, and the conditions that are left for WHERE.

    The order of inner joins is free, so the rows of people come first. Comma joins take their condition from WHERE.
    """
    pieces = [piece.name_scope() for piece in pieces]
    using = [(piece.alias, name) for piece in pieces if not piece.outer for name in piece.using]
    assembly = _Assembly(list(pieces), list(conditions), using)
    plain = [piece for piece in pieces if not piece.outer]
    first = next((piece for piece in plain if piece.scope.base is not None), plain[0])
    if first.scope.base is None and any(piece.scope.base is not None for piece in pieces):
        raise Refused("tables.sql_public_first", table=first.alias)
    scope = first.scope
    waiting = [piece for piece in pieces if piece is not first]
    while waiting:
        problem: Exception | None = None
        for piece in _list_candidates(waiting):
            try:
                scope = _join_piece(scope, piece, assembly)
            except (Refused, WrongUnit) as found:
                problem = problem or found
                continue
            waiting.remove(piece)
            break
        else:
            assert problem is not None
            raise problem
    return scope, assembly.conditions


def match_people(pieces: list[Piece], conditions: list[exp.Expression], select: exp.Select) -> list[Piece]:
    """Public rows that lead, LEFT JOIN people's rows, as an inner join: where a row without a match changes no result.

    A public row that meets nobody's row has no value in any column of theirs. Aggregates that read these columns alone
    pass over it; COUNT(*) would not. Its group has a row of its own in the answer where groups are listed.

    Args:
        pieces: the tables of FROM.
        conditions: those of WHERE and of inner joins, to which those of the join are added.
        select: the query, whose items are results.
    """
    pieces = [piece.name_scope() for piece in pieces]
    first = next((place for place, piece in enumerate(pieces) if piece.scope.base is not None), 0)
    if not pieces[first].outer:
        return pieces
    met, absent = {pieces[first].alias}, {pieces[first].alias}
    for piece in pieces[first - 1 : 0 : -1]:  # public tables on the way to those of people
        later = [other for other in pieces if other.alias in met]
        if piece.outer and any(piece.alias in _find_compared(other, pieces) for other in later):
            met.add(piece.alias)
    for piece in pieces[first + 1 :]:  # what is compared with a row that is not there is not there either
        if piece.outer and _find_compared(piece, pieces) & absent:
            absent.add(piece.alias)
    late = [part for name in ("having", "qualify", "order") if (part := select.args.get(name)) is not None]
    found = [part for node in (*select.expressions, *late) for part in node.walk(prune=_is_bare) if _is_bare(part)]
    if not found or not all(passes_over(part, lambda node: _is_among(node, pieces, absent)) for part in found):
        return pieces
    conditions += [part for piece in pieces if piece.alias in met for part in piece.on]
    return [replace(piece, outer=False) if piece.alias in met else piece for piece in pieces]


def _is_bare(node: exp.Expression) -> bool:
    """Whether a node is an aggregate of rows, and no window over results."""
    return is_aggregate(node) and not isinstance(node.parent, exp.Window)


def _find_aliases(node: exp.Expression, pieces: Sequence[Piece]) -> set[str]:
    return {piece.alias for piece in pieces if Scope.find(piece.scope, node) is not None}  # type: ignore[arg-type]


def _is_among(node: exp.Expression, pieces: Sequence[Piece], aliases: set[str]) -> bool:
    """Whether a column belongs to one of these tables alone."""
    found = _find_aliases(node, pieces)
    return bool(found) and found <= aliases


def _find_compared(piece: Piece, pieces: Sequence[Piece]) -> set[str]:
    """The tables before a table with whose columns its own are compared by = in its join."""
    before = pieces[: next(place for place, other in enumerate(pieces) if other.alias == piece.alias)]
    sides = [side for part in piece.on if isinstance(part, exp.EQ) for side in (part.this, part.expression)]
    columns = [side for side in sides if isinstance(side, exp.Column)] + [exp.column(name) for name in piece.using]
    return {alias for column in columns for alias in _find_aliases(column, before)}


def join_full(left: Piece, right: Piece) -> Piece:
    """FULL JOIN of two protected tables: the rows of LEFT JOIN, and those of the right table that match nothing.

    Guarantee:
        Both are relations in which every row belongs to one person (`joining`), put together by `Union`, in which it
        still does. Nobody is bounded before that, so nobody's rows move another one's.
    """
    if left.scope.base is None or right.scope.base is None or right.using:
        raise Refused("tables.sql_join_kind", text=right.text)
    sides = []
    for first, second in (left, right), (right, left):
        scope = second.scope.compute({MATCHED: lit(1)})
        there = replace(scope, names={"": {**scope.visible(), MATCHED: MATCHED}})
        joined, _ = join_pieces([first, replace(right, alias=second.alias, scope=there, outer=True)], [])
        if first is right:
            joined = joined.where(scalar(exp.column(MATCHED, quoted=True), joined).is_null())
        sides.append(joined)
    titles = [(piece.alias, name) for piece in (left, right) for name in piece.scope.visible()]
    new = {title: f"{title[0]}.{title[1]}" for title in titles}
    plans = [{title: side.names[title[0]][title[1]] for title in titles} for side in sides]
    rows = [
        Pick(side.relation, {OWNER: str(side.relation.person), **{new[title]: plan[title] for title in titles}})
        for side, plan in zip(sides, plans, strict=True)
    ]
    renamed = [{plan[title]: new[title] for title in titles} for plan in plans]
    keys = [_rename_keys(side.implied, names) for side, names in zip(sides, renamed, strict=True)]
    scope = Scope(
        Union(*rows),
        {piece.alias: {name: new[piece.alias, name] for name in piece.scope.visible()} for piece in (left, right)},
        left.scope.base,
        sides[0].declared.rename(renamed[0]),
        {**{key: tag for key, tag in keys[0].items() if keys[1].get(key) == tag}, (OWNER,): PERSON},
        frozenset({OWNER}),
    )
    return Piece(left.alias, scope, several=True)


MATCHED = "a row that matches"
OWNER = "who owns the row"


def _rename_keys(implied: Mapping[tuple[str, ...], str], names: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    return {tuple(names[n] for n in key): tag for key, tag in implied.items() if all(n in names for n in key)}


def _list_candidates(waiting: list[Piece]) -> Iterator[Piece]:
    """Inner joins first, then the first outer one: later ones may need its columns."""
    yield from (piece for piece in waiting if not piece.outer)
    yield from [piece for piece in waiting if piece.outer][:1]


def _join_piece(scope: Scope, piece: Piece, assembly: _Assembly) -> Scope:
    check_new(piece.alias, scope.names, "tables.sql_two_tables")
    piece = _filter_outer(piece, assembly)
    other = piece.scope
    pairs, used = _find_pairs(scope, piece, other, assembly)
    if not pairs and piece.cross and other.base is None and (scope.base is None or scope.relation.person is not None):
        name = f"beside {piece.alias}"  # every row meets every public one; the person's rows are bounded afterwards
        scope, other = scope.compute({name: lit(1)}), other.compute({name: lit(1)})
        other = replace(other, names={**other.names, name: {name: name}})
        pairs = {name: name}
    if not pairs:
        if other.base is not None:
            _check_persons(scope, other, pairs)
        raise (
            Refused("tables.sql_join_condition")
            if not piece.on
            else Refused("tables.sql_join_compares", text=piece.text)
        )
    how: JoinName = "left" if piece.outer else "inner"
    shared = frozenset(_list_using(scope, piece, assembly))
    joined = join_scopes(scope, other, pairs, how, keep_left=shared, alias=piece.alias)
    assembly.conditions = [part for part in assembly.conditions if part not in used]
    return joined


def _filter_outer(piece: Piece, assembly: _Assembly) -> Piece:
    """An outer table whose ON also says which of its own rows may match: these alone are joined."""
    if not piece.outer:
        return piece
    own = [part for part in piece.on if _names_alone(part, piece, assembly)]
    scope = piece.scope
    for part in own:
        scope = scope.where(scalar(part, scope))
    return replace(piece, scope=scope, on=tuple(part for part in piece.on if part not in own))


def _names_alone(node: exp.Expression, piece: Piece, assembly: _Assembly) -> bool:
    """Whether a condition names columns of one table and nothing else."""
    if any(isinstance(part, exp.Select) for part in node.walk()):
        return False
    columns = list(node.find_all(exp.Column))
    return bool(columns) and all(assembly.find_alias(column) == piece.alias for column in columns)


def join_scopes(
    scope: Scope, other: Scope, pairs: Mapping[str, str], how: JoinName, *, keep_left: frozenset[str], alias: str
) -> Scope:
    """Two scopes side by side, where the pairs of columns (by their names in the plan) are equal.

    Args:
        scope: rows of people, or public rows.
        other: what is joined to them.
        pairs: {column of the left: column of the right}.
        how: "inner" or "left".
        keep_left: columns of USING, which stand once.
        alias: what the right side is called.
    """
    left_person, right_person = scope.relation.person, other.relation.person
    if other.base is not None:
        _check_persons(scope, other, pairs)
    same = {a for a, b in pairs.items() if a == b and how == "inner"}
    if how == "inner" and other.base is not None and left_person is not None and left_person == right_person:
        same.add(left_person)
    if (set(scope.schema) & set(other.schema)) - same:
        other, renamed = _rename(scope, other, alias)
        pairs = {a: renamed[b] for a, b in pairs.items()}
    table = _join_rows(scope, other, pairs, how)
    shown = {name: plan for name, plan in next(iter(other.names.values())).items() if plan in table.schema}
    own = {name: shown[name] for name in keep_left if how == "left" and name in shown}
    for name in keep_left:
        shown[name] = scope(exp.column(name))
    inner = how == "inner" and other.base is not None
    return replace(
        scope,
        relation=table,
        names={**scope.names, alias: shown},
        declared=scope.declared.beside(other.declared),
        implied={**other.implied, **scope.implied},
        persons=scope.persons | (other.persons if inner else frozenset()),
        own={**scope.own, alias: own} if own else scope.own,
    )


def _rename(scope: Scope, other: Scope, alias: str) -> tuple[Scope, dict[str, str]]:
    renamed = other.rename(scope.schema, alias)
    assert hasattr(renamed.relation, "columns")
    return renamed, {old: new for new, old in renamed.relation.columns.items()}


def _check_persons(scope: Scope, other: Scope, pairs: Mapping[str, str]) -> None:
    """Refuse a join of people's rows that does not imply that they are the same person's."""
    left, right = scope.base, other.base
    if left is None or right is None:
        raise Refused("tables.sql_public_first", table=next(iter(scope.names)))
    if scope.relation.person is not None and other.relation.person is not None:
        if not left.unit.protects_same(right.unit):
            raise WrongUnit(
                "tables.sql_join_two_kinds", left=next(iter(scope.names)), right=next(iter(other.names)),
                one=_name_kind(left), other=_name_kind(right), spent="nothing",
            )  # fmt: skip
        if left.account is not right.account:
            raise InvalidParameter("tables.join_two_accounts", spent="nothing")
        keys = [(a, b) for a, tag in scope.implied.items() for b, found in other.implied.items() if tag == found]
        if any(all(pairs.get(a) == b for a, b in zip(*key, strict=True)) for key in keys):
            return
        wanted = next(filter(None, (_write_key(scope, a, other, b) for a, b in reversed(keys))), None)
        if wanted is not None:
            refusal = Refused("tables.sql_join_person", wanted=f"ON {wanted}")
            refusal.__dict__["join"] = (next(iter(other.names)), wanted)
            raise refusal
        if paths := [table.links.path for table in (left, right) if table.links.path]:
            names = next(iter(scope.names)), next(iter(other.names))
            raise Refused(
                "tables.sql_join_path", left=names[0], right=names[1], paths=", ".join(paths), spent="nothing"
            )
    raise Refused("tables.sql_join_person", wanted=phrase("tables.same_person"))


def _name_kind(table: Table) -> str:
    return table.unit.column if isinstance(table.unit, Person) else table.unit.describe()


def _write_key(scope: Scope, left: Sequence[str], other: Scope, right: Sequence[str]) -> str | None:
    """Columns that are equal for the same person, as a query names them; None where it cannot name them."""
    sides = []
    for side, columns in (scope, left), (other, right):
        named = {plan: f"{alias}.{name}" for alias, place in side.names.items() for name, plan in place.items()}
        sides.append([named.get(column) for column in columns])
    if None in (*sides[0], *sides[1]):
        return None
    return " AND ".join(f"{a} = {b}" for a, b in zip(*sides, strict=True))


def _join_rows(scope: Scope, other: Scope, pairs: Mapping[str, str], how: JoinName) -> Relation:
    if other.base is None:
        by_person = scope.relation.person is not None or scope.base is None
        return scope.relation.join_public(other.relation, dict(pairs), at_most=None if by_person else 1, how=how)
    person = scope.relation.person
    also = {a: b for a, b in pairs.items() if (a, b) != (person, other.relation.person)}
    return scope.relation.join_person(other.relation, also=also, how=how)


def _find_pairs(
    scope: Scope, piece: Piece, other: Scope, assembly: _Assembly
) -> tuple[dict[str, str], list[exp.Expression]]:
    """The columns that must be equal, {left: right}, and the conditions that are said by them."""
    pairs: dict[str, str] = {}
    used: list[exp.Expression] = []
    for name in _list_using(scope, piece, assembly):
        if name not in next(iter(other.names.values())):
            columns = [repr(column) for column in next(iter(other.names.values()))]
            raise DataError("tables.sql_no_join_column", column=name, columns=columns)
        pairs[scope(exp.column(name))] = other(exp.column(name))
    for condition in piece.on if piece.outer else assembly.conditions:
        pair = _find_pair(condition, scope, other, assembly)
        if pair is None:
            if piece.outer:
                raise Refused("tables.sql_join_compares", text=name_of(condition))
            for part in _list_common(condition):
                found = _find_pair(part, scope, other, assembly)
                if found is not None:
                    pairs.setdefault(*found)
            continue
        if pairs.setdefault(*pair) == pair[1]:
            used.append(condition)
        elif piece.outer:
            raise Refused("tables.sql_join_compares", text=name_of(condition))
    return pairs, used


def _list_using(scope: Scope, piece: Piece, assembly: _Assembly) -> list[str]:
    """Columns of USING that this table and the others share, whichever of them stands first."""
    names = list(piece.using)
    if not piece.outer:
        known = piece.scope.names[piece.alias]
        names += [name for alias, name in assembly.using if alias in scope.names and name in known]
    return [name for name in dict.fromkeys(names) if piece.outer or scope.find(exp.column(name)) is not None]


def _find_pair(node: exp.Expression, scope: Scope, other: Scope, assembly: _Assembly) -> tuple[str, str] | None:
    """A column of the tables so far and one of the new table, where the condition says that they are equal."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.EQ) or not all(isinstance(s, exp.Column) for s in (node.this, node.expression)):
        return None
    alias = next(iter(other.names))
    sides = {assembly.find_alias(side): side for side in (node.this, node.expression)}
    if len(sides) != 2 or alias not in sides:
        return None
    left = next(place for place in sides if place != alias)
    if left is None or left not in scope.names:
        return None
    return scope(sides[left]), other(sides[alias])


def _list_common(node: exp.Expression) -> list[exp.Expression]:
    """The conditions that stand in every branch of an OR."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Or):
        return []
    branches = [list_conditions(branch) for branch in node.flatten()]
    return [part for part in branches[0] if all(part in branch for branch in branches[1:])]
