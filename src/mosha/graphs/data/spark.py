"""A graph beyond one machine: edges as a Spark DataFrame, the exact statistics as joins and windows.

Noise is drawn on the driver, by the same measurements as for a graph in memory: `SparkGraph` answers the same questions
about a graph as `Graph` does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.graphs.data.graph import MOST_VERTICES
from mosha.graphs.data.labels import read_label, sort_rank

__all__ = ["SparkGraph"]

HIGH = 2000
"""Vertices of highest degree that are compared first; more are taken where these do not settle the question."""


_WHOLE = r"\A-?0*[0-9]{1,19}\z"
_NUMBERS = {"bigint", "int", "smallint", "tinyint"}


def _vertices(vertices: object) -> tuple[tuple[Any, ...] | None, int]:
    """Labels in their order, if vertices have any, and how many there are."""
    if isinstance(vertices, Iterable) and not isinstance(vertices, str | bytes):
        labels = tuple(sorted({read_label(label) for label in vertices}, key=sort_rank))
        return labels, len(labels)
    if isinstance(vertices, bool) or not isinstance(vertices, int) or not 0 <= vertices <= MOST_VERTICES:
        raise InvalidParameter("graphs.spark_vertices", parameter="vertices")
    return None, vertices


def _read_end(frame: Any, name: str, side: str) -> tuple[Any, Any]:
    """One end of each edge, as `labels.end_of` reads it: the number it names, if any, and its label as text."""
    from pyspark.sql import functions as f  # noqa: PLC0415  (Spark is heavy)

    kind, column = dict(frame.dtypes)[name], f.col("`" + name.replace("`", "``") + "`")
    if kind == "string":
        number = f.when(column.rlike(_WHOLE), column.try_cast("bigint"))
        label = f.coalesce(number.cast("string"), column)
    elif kind in _NUMBERS:
        number, label = column.cast("bigint"), column.cast("string")
    else:
        raise DataError("graphs.spark_ends")
    return number.alias(side), label.alias(f"label_{side}")


@dataclass(frozen=True, eq=False)
class SparkGraph:
    """Edges (a, b), a < b, of a simple graph on the vertices 0, ..., n - 1, as a cached Spark DataFrame.

    The numbers of vertices follow the order of their `labels`, where there are any.

    Guarantee:
        Every method returns the integer that the method of `Graph` with the same name returns.
    """

    frame: Any = field(repr=False)
    vertices: int
    labels: tuple[Any, ...] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, frame: Any, *, vertices: object, columns: tuple[str, str] | None) -> SparkGraph:
        """Cleaned edges: loops dropped, repetitions in either direction merged, ends that are no vertices left out."""
        from pyspark.sql import functions as f  # noqa: PLC0415  (Spark is heavy)

        labels, count = _vertices(vertices)
        names = tuple(columns or frame.columns)
        if len(names) != 2 or any(frame.columns.count(name) != 1 for name in names):
            raise DataError("graphs.two_columns", parameter="columns")
        ends = frame.select(
            *(part for name, side in zip(names, "ab", strict=True) for part in _read_end(frame, name, side))
        )
        if labels is not None:
            places = [(str(label), place) for place, label in enumerate(labels)]
            known = frame.sparkSession.createDataFrame(places, "label string, place bigint")
            for side in "ab":
                ends = ends.drop(side).join(f.broadcast(known.toDF(f"label_{side}", side)), f"label_{side}")
        ends = ends.where("a IS NOT NULL AND b IS NOT NULL")
        pairs = ends.select(f.least("a", "b").alias("a"), f.greatest("a", "b").alias("b"))
        clean = pairs.where((f.col("a") < f.col("b")) & (f.col("a") >= 0) & (f.col("b") < count)).distinct()
        return cls(clean.cache(), count, labels)

    @cached_property
    def _degrees(self) -> Any:
        from pyspark.sql import functions as f  # noqa: PLC0415

        ends = self.frame.select(f.explode(f.array("a", "b")).alias("v"))
        return ends.groupBy("v").agg(f.count("*").alias("d")).cache()

    @cached_property
    def edge_count(self) -> int:
        return int(self.frame.count())

    def degree_counts(self, length: int) -> NDArray[np.int64]:
        """How many vertices have degree 0, 1, ..., length - 1; higher degrees count as the last one."""
        counts = np.zeros(length, np.int64)
        for row in self._degrees.groupBy("d").count().collect():
            counts[min(row["d"], length - 1)] += row["count"]
        counts[0] += self.vertices - counts.sum()
        return counts

    def highest_degrees(self) -> tuple[int, int]:
        top = [row["d"] for row in self._degrees.orderBy("d", ascending=False).limit(2).collect()]
        return (*top, 0, 0)[0], (*top, 0, 0)[1]

    def stars(self, k: int) -> int:
        rows = self._degrees.groupBy("d").count().collect()
        return sum(math.comb(row["d"], k) * row["count"] for row in rows)

    @cached_property
    def triangles(self) -> int:
        """Edges point to the end of higher degree; paths of two from one start that an edge closes are triangles."""
        from pyspark.sql import functions as f  # noqa: PLC0415

        degrees = self._degrees
        ranked = (
            self.frame.join(degrees.toDF("a", "da"), "a")
            .join(degrees.toDF("b", "db"), "b")
            .withColumn("up", (f.col("da") < f.col("db")) | ((f.col("da") == f.col("db")) & (f.col("a") < f.col("b"))))
        )
        low = f.when(f.col("up"), f.col("a")).otherwise(f.col("b")).alias("low")
        high = f.when(f.col("up"), f.col("b")).otherwise(f.col("a")).alias("high")
        arcs = ranked.select(low, high).cache()
        first, second = arcs.toDF("low", "x"), arcs.toDF("low", "y")
        wedges = first.join(second, "low").where("x < y").select("x", "y")
        closed = wedges.join(self.frame.toDF("x", "y"), ["x", "y"]).count()
        arcs.unpersist()
        return int(closed)

    @cached_property
    def most_common_neighbors(self) -> int:
        """The largest number of common neighbors over all pairs: only ends of degree above the best so far matter."""
        best, taken = 0, HIGH
        while True:
            chosen = self._degrees.where(f"d > {best}").orderBy("d", ascending=False).limit(taken)
            best = max(best, self._count_shared(chosen))
            if self._degrees.where(f"d > {best}").count() <= taken:
                return best
            taken *= 4

    def _count_shared(self, chosen: Any) -> int:
        """The most common neighbors of two of the chosen vertices."""
        from pyspark.sql import functions as f  # noqa: PLC0415

        both = self.frame.union(self.frame.select("b", "a"))
        rows = both.join(f.broadcast(chosen.select(f.col("v").alias("a"))), "a").select(f.col("b").alias("x"), "a")
        pairs = rows.toDF("x", "u").join(rows.toDF("x", "w"), "x").where("u < w")
        found = pairs.groupBy("u", "w").count().agg(f.max("count")).collect()[0][0]
        return int(found or 0)

    @cached_property
    def components(self) -> int:
        """Every vertex takes the least number of its neighborhood until nothing changes."""
        from pyspark.sql import functions as f  # noqa: PLC0415

        both = self.frame.union(self.frame.select("b", "a")).toDF("v", "w").cache()
        labels = both.select("v").distinct().withColumn("label", f.col("v"))
        total = None
        while True:
            heard = both.join(labels.toDF("w", "label"), "w").groupBy("v").agg(f.min("label").alias("heard"))
            labels = labels.join(heard, "v").select("v", f.least("label", "heard").alias("label")).localCheckpoint()
            now = labels.agg(f.sum(f.col("label").cast("decimal(38,0)"))).collect()[0][0]
            if now == total:
                break
            total = now
        touched, roots = labels.agg(f.count("*"), f.countDistinct("label")).collect()[0]
        both.unpersist()
        return int(roots + self.vertices - touched)

    def projected_degrees(self, bound: int) -> NDArray[np.int64]:
        """The degrees that edge addition from the last vertex down leaves, found in rounds of window functions.

        Guarantee:
            The same as one edge after the other. A vertex with room for c more marks its first c waiting edges. An edge
            that both ends mark has fewer than c waiting edges before it at each end, so it is kept whatever becomes of
            them. Edges at a full vertex are dropped. The first waiting edge is marked by both its ends: it ends.
        """
        from pyspark.sql import functions as f  # noqa: PLC0415

        degrees = np.zeros(self.vertices, np.int64)
        waiting, room = self.frame, self._degrees.select("v", f.lit(bound).alias("room"))
        while not waiting.isEmpty():
            roomy = self._rank_edges(waiting).join(room.toDF("a", "ra"), "a").join(room.toDF("b", "rb"), "b")
            kept = roomy.where("pa <= ra AND pb <= rb").select("a", "b").localCheckpoint()
            gained = kept.select(f.explode(f.array("a", "b")).alias("v")).groupBy("v").agg(f.count("*").alias("g"))
            for row in gained.collect():
                degrees[row["v"]] += row["g"]
            left = f.col("room") - f.coalesce(f.col("g"), f.lit(0))
            room = room.join(gained, "v", "left").select("v", left.alias("room")).where("room > 0").localCheckpoint()
            rest = waiting.join(kept, ["a", "b"], "left_anti")
            open_ends = room.select("v")
            rest = rest.join(open_ends.toDF("a"), "a", "left_semi").join(open_ends.toDF("b"), "b", "left_semi")
            waiting = rest.select("a", "b").localCheckpoint()
        return degrees

    @staticmethod
    def _rank_edges(edges: Any) -> Any:
        """The place of each edge among all waiting edges of each end, whichever side of them that end is on."""
        from pyspark.sql import Window  # noqa: PLC0415
        from pyspark.sql import functions as f  # noqa: PLC0415

        sides = edges.select(f.col("a").alias("v"), "a", "b").union(edges.select(f.col("b").alias("v"), "a", "b"))
        order = Window.partitionBy("v").orderBy(f.desc("b"), f.desc("a"))
        numbered = sides.withColumn("p", f.row_number().over(order))
        first = numbered.where("v = a").select("a", "b", f.col("p").alias("pa"))
        return first.join(numbered.where("v = b").select("a", "b", f.col("p").alias("pb")), ["a", "b"])
