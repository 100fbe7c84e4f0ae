"""Random databases of people, neighbors of them, and queries about them."""

from __future__ import annotations

import random

import pyarrow as pa

WHO = 6
KEYS = 9
APART = 100


class World:
    """A chain or tree of tables that lead to the person, with broken and shared keys, and a public table.

    A world has several towns: random rows with keys of their own, so that no row of one hangs on a row of another. One
    person is removed in each, and one query asks about all of them: as many comparisons as there are towns.
    """

    def __init__(self, seed: int, towns: int = 10) -> None:
        g = self.random = random.Random(seed)
        self.seed, self.key = seed, g.randbytes(32)
        self.depth = g.choice([1, 2, 2, 3])
        self.several = {f"t{i}": g.choice(["nobody", "nobody", "each"]) for i in range(2, self.depth + 2)}
        self.unique = g.random() < 0.5
        self.parents = {f"t{i}": f"t{g.randrange(1, i)}" for i in range(2, self.depth + 2)}
        self.rows: dict[str, list[tuple[object, ...]]] = {name: [] for name in ("person", "t1", *self.parents)}
        for first in range(0, towns * APART, APART):
            here = range(first, first + WHO)
            ids = [i for i in here for _ in range(g.choice([0, 1, 1, 1, 1, 1, 1, 2]))]
            self.rows["person"] += [(i, g.choice("xyz"), g.randrange(5)) for i in ids]
            self.rows["t1"] += self._make_rows(first, WHO + 1)
            for name in self.parents:
                self.rows[name] += self._make_rows(first, KEYS)
        self.removed = {first + g.randrange(WHO + 1) for first in range(0, towns * APART, APART)}
        self.public = [(letter, g.randrange(3), g.choice("xyz")) for letter in "xyyz"]
        self.keyed = {name for name in ("person", "t1", *self.parents, "pub") if g.random() < 0.5}

    def _make_rows(self, first: int, keys: int) -> list[tuple[object, ...]]:
        g, size = self.random, self.random.randrange(2, 12)
        own = list(range(size)) if self.unique else [g.randrange(KEYS) for _ in range(size)]
        name = lambda key: None if g.random() < 0.08 else first + key
        return [(name(own[i]), name(g.randrange(keys)), g.choice("xyz"), g.randrange(-3, 9)) for i in range(size)]

    def list_owners(self) -> dict[str, list[set[object]]]:
        """The owners of every row, as `paths.md` defines them."""
        found: dict[str, list[set[object]]] = {"person": [{row[0]} for row in self.rows["person"]]}
        found["t1"] = [set() if row[1] is None else {row[1]} for row in self.rows["t1"]]
        for name, parent in self.parents.items():
            each = self.several.get(parent) == "each"
            passed = [owners if each or len(owners) == 1 else set() for owners in found[parent]]
            found[name] = [
                set().union(*(p for p, s in zip(passed, self.rows[parent], strict=True) if s[0] == row[1]))
                if row[1] is not None
                else set()
                for row in self.rows[name]
            ]
        return found

    def list_rows_left(self) -> dict[str, list[tuple[object, ...]]]:
        """The rows of the neighbor: the removed are gone with everything that hangs on them."""
        left = {}
        for name, owners in self.list_owners().items():
            each = self.several.get(name) == "each"
            gone = [bool(o) and o <= self.removed if each else bool(o & self.removed) for o in owners]
            left[name] = [row for row, away in zip(self.rows[name], gone, strict=True) if not away]
        return left

    def list_tables(self, rows: dict[str, list[tuple[object, ...]]]) -> dict[str, pa.Table]:
        """The tables as Arrow has them."""
        kinds = [pa.int64(), pa.int64(), pa.string(), pa.int64()]
        names = ["k", "up", "letter", "x"]
        found = {"person": _make_table(["id", "letter", "x"], [kinds[0], kinds[2], kinds[3]], rows["person"])}
        for name in ("t1", *self.parents):
            found[name] = _make_table(names, kinds, rows[name])
        found["pub"] = _make_table(["letter", "x", "other"], [kinds[2], kinds[3], kinds[2]], self.public)  # type: ignore[arg-type]
        return found

    def declare(self) -> dict[str, object]:
        """A schema for the tables; primary keys that it declares may repeat in the rows."""
        tables: dict[str, dict[str, object]] = {"person": {"rows_of": "somebody"}, "pub": {"public": True}}
        tables["t1"] = {"rows_of": "somebody", "foreign_keys": {"up": "person.id"}}
        for name, parent in self.parents.items():
            keys = {"up": f"{parent}.k"}
            tables[name] = {"rows_of": "somebody", "foreign_keys": keys, "several": self.several[name]}
        for name in self.keyed:
            tables[name]["primary_key"] = {"person": "id", "pub": "letter"}.get(name, "k")
        return {"persons": {"somebody": {"key": "person.id", "at_most": 3}}, "tables": tables}

    def write_query(self) -> str:
        """A query that reads some of the tables; some are refused."""
        g = self.random
        names = ["t1", *self.parents]
        name = g.choice(names)
        parent = self.parents.get(name)
        inner = f"EXISTS (SELECT 1 FROM {g.choice(names)} s WHERE s.{g.choice(['k', 'up'])} = a.up AND s.x > 1)"
        choices = [
            f"SELECT a.letter, COUNT(*) AS n, SUM(CLAMP(a.x, -3, 8)) AS s FROM {name} a GROUP BY a.letter",
            (
                f"SELECT p.other, COUNT(*) AS n FROM {name} a, pub p WHERE p.letter = a.letter AND a.x > p.x "
                "GROUP BY p.other"
            ),
            f"SELECT COUNT(*) AS n FROM {name} a WHERE {g.choice(['', 'NOT '])}{inner}",
            f"SELECT COUNT(*) AS n FROM {name} a JOIN {name} b ON a.up = b.up WHERE a.x <= b.x",
            f"SELECT COUNT(*) AS n FROM {name} a WHERE a.up IN (SELECT up FROM {name} GROUP BY up HAVING SUM(x) > 4)",
            (
                f"SELECT n, COUNT(*) AS m FROM (SELECT up, COUNT(*) AS n, AVG(x) AS y FROM {name} GROUP BY up) AS t "
                "GROUP BY n"
            ),
            (
                f"SELECT COUNT(*) AS n FROM (SELECT letter, x FROM {name} UNION ALL SELECT letter, x FROM person) AS u "
                "WHERE x > 0"
            ),
            (
                f"SELECT kind, COUNT(*) AS n, SUM(v) AS s FROM (SELECT 'rows' AS kind, CLAMP(x, 0, 5) AS v FROM {name} "
                "UNION ALL SELECT 'people', GREATEST(CLAMP(x, -3, 5), 1) FROM person) AS u GROUP BY kind"
            ),
            f"SELECT COUNT(*) AS n FROM {name} a FULL JOIN {name} b ON a.up = b.up WHERE a.x <= b.x OR a.x IS NULL",
            f"SELECT COUNT(*) AS n FROM {name} a FULL JOIN person b ON b.id = a.up WHERE a.x > 0 OR b.x IS NULL",
            f"SELECT COUNT(*) AS n FROM person a WHERE {g.choice(['', 'NOT '])}{inner.replace('a.up', 'a.id')}",
            "SELECT a.letter, COUNT(*) AS n FROM person a, pub p WHERE p.letter = a.letter GROUP BY a.letter",
            f"SELECT COUNT(*) AS n FROM person a JOIN {name} b ON b.up = a.id WHERE a.x >= b.x",
            f"SELECT COUNT(*) AS n FROM {name} a WHERE a.x >= (SELECT AVG(b.x) FROM {name} b WHERE b.up = a.up)",
        ]
        choices += [
            f"SELECT COUNT(*) AS n FROM {name} a NATURAL JOIN pub p WHERE LN(a.x + 4) > 1",
            (
                f"SELECT COUNT(*) AS n FROM {name} a WHERE {g.choice(['', 'NOT '])}EXISTS "
                f"(SELECT 1 FROM {name} s WHERE s.up = a.up AND s.x + 1 {g.choice(['>', '<=', '<>'])} a.x * 2)"
            ),
            f"SELECT COUNT(*) AS n FROM {name} a {g.choice(['SEMI', 'ANTI'])} JOIN {g.choice(names)} s ON s.k = a.up",
            f"SELECT COUNT(*) AS n FROM {name} a NATURAL JOIN (SELECT up, letter AS other FROM {name}) b WHERE a.x > 0",
            f"SELECT RIGHT(letter, 1) AS k, COUNT(*) AS n FROM {name} a WHERE a.x BETWEEN -2 AND 5 GROUP BY k",
            (
                f"SELECT k, COUNT(*) AS n FROM (SELECT up, SUM(POWER(x, 2)) AS k FROM {name} WHERE x > -2 AND x < 6 "
                "GROUP BY up) AS t WHERE k IS DISTINCT FROM 4 GROUP BY k"
            ),
        ]
        choices += [
            f"SELECT p.other, COUNT(a.k) AS n FROM pub p LEFT JOIN {name} a ON a.letter = p.letter GROUP BY p.other",
            (
                f"SELECT COUNT(*) AS n, COUNT(b.id) AS m FROM person a LEFT JOIN (SELECT up AS id, x FROM {name}) b "
                f"USING (id) WHERE b.id IS {g.choice(['', 'NOT '])}NULL OR b.x > a.x"
            ),
            f"SELECT WIDTH_BUCKET(x, 0, 6, 3) AS w, COUNT(*) AS n FROM {name} GROUP BY w",
            f"SELECT COUNT(*) AS n, SUM(x - 1) AS s FROM {name} WHERE x - 1 BETWEEN 0 AND 4",
        ]
        if parent is not None:
            choices.append(
                f"SELECT b.letter, COUNT(*) AS n FROM {parent} b, {name} a WHERE a.up = b.k GROUP BY b.letter"
            )
            choices.append(
                f"SELECT b.letter, COUNT(*) AS n FROM {parent} b FULL JOIN {name} a ON a.up = b.k GROUP BY b.letter"
            )
            choices.append(f"SELECT COUNT(*) AS n FROM {parent} b LEFT JOIN {name} a ON a.up = b.k WHERE a.x IS NULL")
        return g.choice(choices)


def _make_table(names: list[str], kinds: list[pa.DataType], rows: list[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, names=names)
