"""Whatever form a graph has, the same simple graph is read; bad input is refused without a word about the data."""

import contextlib
import gzip
from pathlib import Path
from typing import Any

import duckdb
import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import coo_matrix

import mosha
from mosha.core.errors import DataError, InvalidParameter, MoshaError, Unbounded, WrongUnit
from mosha.graphs import Graph, protect, read

PAIRS = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 3), (5, 5), (0, 1)]
EDGES = [(0, 1), (0, 2), (1, 2), (3, 4)]
TEXT = "# a comment\n" + "\n".join(f"{a} {b}" for a, b in PAIRS) + "\n"


def networkx_graph() -> Any:
    graph = nx.Graph(PAIRS)
    graph.add_node(6)
    return graph


SOURCES = {
    "pairs": lambda folder: (PAIRS, 7),
    "array": lambda folder: (np.array(PAIRS, np.uint8), 7),
    "networkx": lambda folder: (networkx_graph(), None),
    "igraph": lambda folder: (igraph.Graph(7, PAIRS), None),
    "scipy": lambda folder: (symmetric(), None),
    "pandas": lambda folder: (pd.DataFrame(PAIRS, columns=["a", "b"]), 7),
    "polars": lambda folder: (pl.DataFrame(PAIRS, schema=["a", "b"], orient="row"), 7),
    "arrow": lambda folder: (pa.table({"a": [a for a, _ in PAIRS], "b": [b for _, b in PAIRS]}), 7),
    "duckdb": lambda folder: (duckdb.connect().sql("VALUES " + ", ".join(map(str, PAIRS))), 7),
    "txt": lambda folder: (written(folder / "g.txt", TEXT.encode()), 7),
    "gz": lambda folder: (written(folder / "g.txt.gz", gzip.compress(TEXT.encode())), 7),
    "csv": lambda folder: (written(folder / "g.csv", b"a,b\n" + "\n".join(f"{a},{b}" for a, b in PAIRS).encode()), 7),
    "parquet": lambda folder: (parquet(folder / "g.parquet"), 7),
}


def symmetric() -> Any:
    rows, columns = np.array(PAIRS).T
    return (
        coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(7, 7))
        + coo_matrix((np.ones(len(rows)), (columns, rows)), shape=(7, 7))
    ).tocsr()


def written(path: Any, content: Any) -> Any:
    path.write_bytes(content)
    return path


def parquet(path: Any) -> Any:
    pd.DataFrame(PAIRS, columns=["a", "b"]).to_parquet(path)
    return path


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_every_source_gives_the_same_simple_graph(name: Any, tmp_path: Path) -> None:
    source, vertices = SOURCES[name](tmp_path)
    graph = read(source, vertices=vertices)
    assert graph.vertices == 7
    assert list(graph) == EDGES
    assert graph.components == 4


def test_labels_may_be_words_or_64_bit_numbers_and_their_order_is_kept() -> None:
    large = [(2**62, 5), (5, 2**40), (2**62, 2**40)]
    graph = read(large, vertices="endpoints")
    assert graph.labels.tolist() == [5, 2**40, 2**62]  # type: ignore[union-attr]
    assert graph.triangles == 1
    words = read([("b", "a"), ("c", "b")], vertices=["a", "b", "c", "d"])
    assert words.vertices == 4
    assert list(words) == [(0, 1), (1, 2)]
    assert read([("b", "a"), ("c", "b"), ("x", "a")], vertices=["a", "b", "c", "d"]).edge_count == 2


def test_words_in_a_file_are_labels(tmp_path: Path) -> None:
    path = written(tmp_path / "g.txt", b"ann bob\nbob cy\n12345678901234567890123 ann\n")
    assert read(path, vertices="endpoints").edge_count == 3


def test_directed_graphs_are_refused_or_declared_symmetric() -> None:
    arcs = nx.DiGraph([(0, 1), (1, 2)])
    arrows = igraph.Graph(3, [(0, 1), (1, 2)], directed=True)
    for source in (arcs, arrows):
        with pytest.raises(DataError, match="symmetrize"):
            read(source)
        assert read(source, directed="symmetrize").edge_count == 2
    with pytest.raises(InvalidParameter):
        read(arcs, directed="perhaps")  # type: ignore[arg-type]


@pytest.mark.parametrize("directed", ["refuse", "symmetrize"])
def test_whether_a_matrix_is_symmetric_is_private(directed: str) -> None:
    """One written cell more or less may make it so: neighbors are read alike and differ by one edge at most."""
    whole = [(0, 1), (1, 0), (1, 2), (2, 1)]
    counts = []
    for cells in (whole, whole[:-1], whole[:-2], whole[1:]):
        rows, columns = np.array(cells).T
        matrix = coo_matrix((np.ones(len(cells)), (rows, columns)), shape=(3, 3))
        counts.append(read(matrix.tocsr(), directed=directed).edge_count)  # type: ignore[arg-type]
        assert read(matrix, directed=directed).edge_count == counts[-1]  # type: ignore[arg-type]
    assert counts == [2, 2, 1, 2]


BAD = {
    "a truncated gz": ("g.txt.gz", gzip.compress(TEXT.encode() * 50)[:-20]),
    "no gz at all": ("g.txt.gz", b"0 1\n"),
    "one column": ("g.csv", b"a\n0\n"),
    "no parquet": ("g.parquet", b"0 1\n"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_damaged_file_is_refused_with_a_sentence_that_holds_no_data(name: Any, tmp_path: Path) -> None:
    file, content = BAD[name]
    with pytest.raises(DataError) as caught:
        read(written(tmp_path / file, content), vertices=7)
    assert not any(character.isdigit() for character in str(caught.value))


def test_a_missing_file_and_things_that_are_no_graph_are_refused(tmp_path: Path) -> None:
    for source in (tmp_path / "no.txt", tmp_path / "no.csv", object(), 3, np.zeros((1, 3)), np.zeros(3)):
        with pytest.raises(DataError):
            read(source, vertices=3)
    with pytest.raises(DataError, match="square"):
        read(coo_matrix(([1.0], ([0], [1])), shape=(2, 3)).tocsr())  # type: ignore[arg-type]
    with pytest.raises(DataError, match="columns"):
        read(pd.DataFrame({"a": [1]}), vertices=3)


def test_the_vertices_are_declared_or_come_with_the_graph() -> None:
    with pytest.raises(InvalidParameter, match="vertices"):
        read(PAIRS)
    with pytest.raises(InvalidParameter, match="brings its own vertices"):
        read(networkx_graph(), vertices=7)
    for wrong in (-1, 2**31, True, 1.5, "all"):
        with pytest.raises(InvalidParameter):
            read(PAIRS, vertices=wrong)


@pytest.mark.parametrize("unit", [mosha.Edge(), mosha.Node()], ids=["edge", "node"])
def test_who_has_an_edge_is_never_made_public(unit: Any) -> None:
    with pytest.raises(InvalidParameter, match="which vertices there are"):
        protect(PAIRS, unit=unit, vertices="endpoints")


@pytest.mark.parametrize("label", ["x", "0", (1, 2), float("nan"), 2.5, 10**30, True, b"b", frozenset()], ids=repr)
def test_no_label_reorders_the_others(label: Any) -> None:
    numbers = [10, 9, 100, -3, 2]
    alone, joined = nx.Graph(), nx.Graph()
    alone.add_nodes_from(numbers)
    joined.add_nodes_from([label, *numbers])
    assert [name for name in read(joined).labels if name in numbers and name is not label] == sorted(numbers)
    assert list(read(alone).labels) == sorted(numbers)
    listed = read([(10, 9), ("10", 100)], vertices=[label, *numbers])
    assert [name for name in listed.labels if name in numbers] == sorted(numbers)
    assert listed.edge_count == 2


def test_unlike_labels_of_a_graph_object_stay_apart() -> None:
    assert read(nx.Graph([(1, "1"), ("1", frozenset())])).edge_count == 2


WORDS = [("0001", "2"), ("2", "3"), ("3", "1")]


@pytest.mark.parametrize("more", ["", "ann", "9" * 30, "1.5", "-", '"'])
def test_one_word_does_not_rename_the_others(more: Any, tmp_path: Path) -> None:
    rows = [*WORDS, (more, "1")] if more else WORDS
    frame = pd.DataFrame(rows, columns=["a", "b"], dtype=object)
    mixed = pd.DataFrame([*([1, 2], [2, 3], [3, 1]), *([[more, 1]] if more else [])], columns=["a", "b"], dtype=object)
    text = written(tmp_path / "g.txt", "".join(f"{a} {b}\n" for a, b in rows).encode())
    csv = written(tmp_path / "g.csv", b"a,b\n" + "".join(f"{a},{b}\n" for a, b in rows).encode())
    zipped = written(tmp_path / "g.csv.gz", gzip.compress(csv.read_bytes()))
    sources = [
        rows,
        np.array(rows),
        frame,
        mixed,
        pl.DataFrame(rows, schema=["a", "b"], orient="row"),
        text,
        csv,
        zipped,
    ]
    sources += [pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]}), duckdb.sql("SELECT * FROM frame")]
    for source in sources:
        for vertices in (4, [1, 2, 3], ["1", 2, "03", "bob"]):
            assert read(source, vertices=vertices).triangles == 1, type(source)


@pytest.mark.parametrize("line", ["5", "x 1", "", "0 1 2", "\xff\xfe", '"0', "0\t", "# 5", "9" * 5000 + " 1"])
def test_a_line_that_cannot_be_read_is_left_out_alone(line: Any, tmp_path: Path) -> None:
    for name, first in (("g.txt", ""), ("g.csv", "a,b\n")):
        comma = line.replace(" ", ",") if first else line
        content = first + "0,1\n" + comma + "\n1,2\n2,0"
        graph = read(written(tmp_path / name, content.encode("latin-1")), vertices=7)
        assert list(graph) == [(0, 1), (0, 2), (1, 2)]


def test_rows_that_are_no_pairs_are_left_out_alone() -> None:
    odd = [[1, 2, 3], [4], None, (None, 1), (float("nan"), 2), [[1], 2], (2**70, 1), (0.5, 1)]
    assert list(read([(0, 1), *odd, (1, 2.0), ("2", 0)], vertices=7)) == [(0, 1), (0, 2), (1, 2)]
    missing = pd.DataFrame({"a": [0.0, 1.0, np.nan], "b": [1.0, np.nan, 2.0]})
    assert list(read(missing, vertices=7)) == [(0, 1)]
    assert list(read(pl.DataFrame({"a": [0, 1, None], "b": [1, None, 2]}), vertices=7)) == [(0, 1)]


WRONG_TYPES = {
    "a triple": [(0, 1), (1, 2, 3)],
    "a text": ["01", "12"],
    "numbers": [0, 1, 2],
    "a dict of lists": {0: [1, 2]},
    "dicts": [{"a": 0, "b": 1}],
    "bytes": b"0 1",
}


@pytest.mark.parametrize("name", sorted(WRONG_TYPES))
def test_what_is_no_list_of_pairs_by_its_type_is_refused_whatever_edges_are_in_it(name: Any) -> None:
    wrong = WRONG_TYPES[name]
    with pytest.raises(DataError):
        read(wrong, vertices=7)
    if isinstance(wrong, list):
        with pytest.raises(DataError):
            read([(3, 4), *wrong, (4, 5)], vertices=7)


@pytest.mark.parametrize("name", ["g.json", "g.JSON", "g.json.gz", "g.graphml"])
def test_a_file_that_is_no_edge_list_by_its_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="csv"):
        read(written(tmp_path / name, b"0 1\n"), vertices=7)


def test_a_table_of_more_than_two_columns_needs_their_names(tmp_path: Path) -> None:
    wide = pd.DataFrame({"id": [5, 6], "a": [0, 1], "b": [1, 2]})
    wide.to_csv(tmp_path / "g.csv", index=False)
    wide.to_parquet(tmp_path / "g.parquet")
    for source in (wide, pl.from_pandas(wide), pa.table(wide), tmp_path / "g.csv", tmp_path / "g.parquet"):
        with pytest.raises(DataError, match="columns"):
            read(source, vertices=7)
        assert list(read(source, vertices=7, columns=("a", "b"))) == [(0, 1), (1, 2)]


def test_an_empty_graph_is_answered() -> None:
    for n in (0, 1, 2, 5):
        behind = protect([], unit=mosha.Edge(), vertices=n)
        for question in (behind.edges(), behind.maximum_degree(), behind.components(), behind.density()):
            answer, _ = question.measurement(epsilon=1).step(None, behind.graph, None, mosha.noise.secure())
            assert np.isfinite(answer)
    behind = protect([], unit=mosha.Edge(), vertices=5)
    for question in (behind.triangles(), behind.stars(2), behind.clustering(), behind.degree_sequence()):
        question.measurement(epsilon=1).step(None, behind.graph, None, mosha.noise.secure())
    node = protect([], unit=mosha.Node(max_degree=3), vertices=0)
    for question in (node.edges(), node.degree_distribution(), node.triangles(), node.clustering(), node.density()):
        question.measurement(epsilon=1).step(None, node.graph, None, mosha.noise.secure())


def bad_questions() -> dict[str, Any]:
    edge, node = protect(PAIRS, unit=mosha.Edge(), vertices=7), protect(PAIRS, unit=mosha.Node(), vertices=7)
    tiny = protect([], unit=mosha.Edge(), vertices=2)
    return {
        "no epsilon": lambda: edge.edges().measurement(epsilon=0),
        "negative": lambda: edge.triangles().measurement(epsilon=-1),
        "not a number": lambda: edge.triangles().measurement(epsilon=float("nan")),
        "infinite": lambda: edge.stars(2).measurement(epsilon=float("inf")),
        "delta of one": lambda: edge.triangles().measurement(epsilon=1, delta=1.0),
        "one leaf": lambda: edge.stars(1).measurement(epsilon=1),
        "half a leaf": lambda: edge.stars(2.5).measurement(epsilon=1),  # type: ignore[arg-type]
        "no such method": lambda: edge.triangles(method="guess").measurement(epsilon=1),  # type: ignore[arg-type]
        "no such kind": lambda: edge.synthetic("copy").measurement(epsilon=1),  # type: ignore[arg-type]
        "too many seeds": lambda: edge.seeds(7).measurement(epsilon=1),
        "no seeds": lambda: edge.seeds(0).measurement(epsilon=1),
        "seeds at node level": lambda: node.seeds(1).measurement(epsilon=1),
        "adjacency at node level": lambda: node.adjacency().measurement(epsilon=1),
        "synthetic at node level": lambda: node.synthetic().measurement(epsilon=1),
        "highest degree without a bound": lambda: node.maximum_degree().measurement(epsilon=1),
        "vertices at edge level": lambda: edge.vertices().measurement(epsilon=1),
        "triangles of two": lambda: tiny.triangles().measurement(epsilon=1),
        "an account of nobody": lambda: protect(PAIRS, unit=mosha.Edge(), vertices=7, account=3),  # type: ignore[arg-type]
        "another unit": lambda: protect(PAIRS, unit=mosha.Row(), vertices=7),
        "replaced edges": lambda: protect(PAIRS, unit=mosha.Edge(neighbors="replace-one"), vertices=7),  # type: ignore[arg-type]
        "a bound of zero": lambda: mosha.Node(max_degree=0),
        "no account": lambda: edge.edges().release(epsilon=1),
        "a partition that is too short": lambda: edge.best_partition([[0, 1]], density=0.1).measurement(epsilon=1),
    }


@pytest.mark.parametrize("name", sorted(bad_questions()))
def test_bad_questions_are_refused(name: Any) -> None:
    with pytest.raises((InvalidParameter, Unbounded)):
        bad_questions()[name]()


def test_a_bound_above_all_degrees_is_allowed_and_loses_nothing() -> None:
    behind = protect(PAIRS, unit=mosha.Node(max_degree=1000), vertices=7)
    assert behind.graph.projected_degrees(1000).tolist() == behind.graph.degrees.tolist()  # type: ignore[attr-defined]


def test_an_account_for_another_unit_is_refused_and_nothing_is_spent(tmp_path: Path) -> None:
    ledger = mosha.Ledger(tmp_path / "privacy.db")
    account = ledger.account("friends", unit=mosha.Node(), epsilon=1)
    with pytest.raises(WrongUnit):
        protect(PAIRS, unit=mosha.Edge(), vertices=7, account=account)
    ledger.close()


def test_a_repr_does_not_tell_how_many_edges_there_are() -> None:
    few, many = (protect(pairs, unit=mosha.Edge(), vertices=7) for pairs in ([], PAIRS))
    assert repr(few) == repr(many)
    assert repr(few.graph) == repr(many.graph)


def test_every_error_of_reading_is_one_of_ours(tmp_path: Path) -> None:
    for content in (b"\xff\xfe\x00", b"a,b\n", b"1 2\n3", b""):
        with contextlib.suppress(MoshaError):
            read(written(tmp_path / "g.txt", content), vertices=9)
    assert read(written(tmp_path / "g.txt", b""), vertices=9).edge_count == 0
    assert Graph.of([], vertices=0).vertices == 0


@pytest.mark.parametrize(
    ("partitions", "density"),
    [(None, 0.5), ([], 0.5), ([[0] * 4], 0.5), ([[0], [1]], 0.5), ([3, 4], 0.5), ([[0] * 4] * 2, 1e300)],
)
def test_partitions_that_are_none_are_refused(partitions: Any, density: float) -> None:
    behind = protect([(0, 1)], unit=mosha.Edge(), vertices=4)
    with pytest.raises(InvalidParameter):
        behind.best_partition(partitions, density=density).measurement(epsilon=1)


def test_communities_have_names_of_any_kind() -> None:
    behind = protect([(0, 1), (2, 3)], unit=mosha.Edge(), vertices=4)
    asked = behind.best_partition([["red", "blue"] * 2, ["red"] * 2 + [7.0, 7]], density=0.1).measurement(epsilon=300)
    assert asked.step(None, behind.graph, None, mosha.noise.secure())[0] == 1


@pytest.mark.parametrize("asked", ["degree_histogram", "degree_distribution", "cumulative_degrees", "degree_sequence"])
def test_a_histogram_longer_than_memory_is_refused(asked: str) -> None:
    with pytest.raises(InvalidParameter, match="entries"):
        getattr(protect([], unit=mosha.Node(max_degree=2**31), vertices=4), asked)().measurement(epsilon=1)
    with pytest.raises(InvalidParameter, match="entries"):
        protect([], unit=mosha.Edge(), vertices=4).degree_histogram(up_to=10**12).measurement(epsilon=1)


def test_a_forecast_is_like_any_public_graph_that_can_be_read() -> None:
    behind = protect([], unit=mosha.Node(), vertices=4)
    assert behind.edges().forecast(epsilon=1, like=nx.complete_graph(9)) > 0
    with pytest.raises(DataError):
        behind.edges().forecast(epsilon=1, like=3)
