"""No text of a public object tells anything about rows: the same on neighboring data, for every public class.

The list of classes is walked, not written: a new public class fails here until it says how it is made from private
data, or that it never holds any. Addresses in memory are left out of the comparison; they depend on no row.
"""

import inspect
import pickle
import re
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mosha
import mosha.connect
from mosha import federated, graphs, ledger, sql, streams, synth, tables
from mosha.connect.engines.source import answer
from mosha.core.event import Event
from mosha.core.unit import Unit
from mosha.ledger.publishing.statement import Statement
from mosha.tables.sql.query import statement

PERSON = mosha.Person("who", at_most=2)


def frame(rows: Any) -> Any:
    """Rows of some people; one row more is one person more, with values nobody else has."""
    values = [(i, "A", float(i)) for i in range(rows)] + ([(10**6 + rows, "secret", 98765.4321)] if rows % 2 else [])
    who, ward, days = zip(*values, strict=True)
    return pa.table({"who": who, "ward": ward, "days": days})


def table(rows: Any, _: Any = None) -> Any:
    return tables.protect(frame(rows), unit=PERSON)


def report(rows: Any, _: Any = None) -> Any:
    return mosha.Report("r", epsilon=1).add("all", table(rows).count(), within=50).add("days", table(rows).persons())


def from_csv(rows: Any, folder: Any) -> Any:
    from pyarrow import csv

    csv.write_csv(frame(rows), folder / "t.csv")
    return mosha.connect.source(folder / "t.csv")


def from_parquet(rows: Any, folder: Any) -> Any:
    pq.write_table(frame(rows), folder / "t.parquet")
    return mosha.connect.source(folder / "t.parquet")


def from_database(rows: Any, folder: Any) -> Any:
    import duckdb

    path = folder / f"t{rows % 2}" / "t.duckdb"
    path.parent.mkdir(exist_ok=True)
    with duckdb.connect(str(path)) as connection:
        data = frame(rows)  # noqa: F841  (DuckDB reads it by its name)
        connection.sql("CREATE TABLE t AS SELECT * FROM data")
    return mosha.connect.source(path, table="t")


def question(rows: Any, _: Any = None) -> Any:
    return table(rows).group_by("ward", keys=["A"]).mean("days", between=(0, 9))


def aggregation(rows: Any) -> Any:
    (part,) = question(rows).parts(tables.Budget(epsilon=1))
    return part.question(question(rows).frame, 2, bytes(32))[0]


def link(rows: Any, _: Any = None) -> Any:
    """One table as persons and as their rows."""
    whole = table(rows)
    visits = whole.synthesize(between={"days": (0, 9)}, columns=["days"])
    return whole.synthesize(keys={"ward": ["A", "B"]}, columns=["ward"]).link(visits, at_most=3)


def graph(rows: Any, _: Any = None) -> Any:
    edges = [(i, i + 1) for i in range(rows)]
    return graphs.protect(edges, vertices=50, unit=mosha.Edge())


def training(rows: Any, _: Any = None) -> Any:
    torch = pytest.importorskip("torch")
    account = ledger.Ledger.memory().account("a", unit=mosha.Example(), epsilon=3, delta=1e-5)
    model = torch.nn.Linear(2, 2)
    plan = mosha.learning.DPSGD(steps=2, rate=0.5, clip=1.0, batch=4).calibrate(epsilon=2, delta=1e-6)
    data = torch.arange(2.0 * rows).reshape(rows, 2), torch.zeros(rows, dtype=torch.long)
    descent = torch.optim.SGD(model.parameters(), lr=0.1)
    begun = plan.train(model, data, torch.nn.CrossEntropyLoss(reduction="none"), descent, account=account)
    begun.step()
    return begun


def paid_run(rows: Any) -> Any:
    account = ledger.Ledger.memory().account("a", unit=PERSON, epsilon=10)
    asked = tables.protect(frame(rows), unit=PERSON, account=account).count()
    run = account.open(asked.measurement(tables.Budget(epsilon=1)))
    run.step(None)
    return run


MAKERS = {
    tables.Table: [table],
    tables.Grouped: [lambda n, _: table(n).group_by("ward"), lambda n, _: table(n).group_by("ward", keys=["A"])],
    tables.Question: [question, lambda n, _: table(n).where(mosha.col("days") > 3).count()],
    mosha.connect.Source: [lambda n, _: mosha.connect.source(frame(n)), from_csv, from_parquet, from_database,
                           lambda n, _: mosha.connect.source(frame(n).to_pandas())],
    mosha.connect.Engine: [lambda n, _: table(n).relation.source.engine],
    mosha.connect.Relation: [lambda n, _: table(n).relation,
                             lambda n, _: table(n).compute(x=mosha.col("days") + 1).where(mosha.col("x") > 3).relation],
    mosha.connect.Question: [lambda n, _: aggregation(n)],
    mosha.connect.Aggregation: [lambda n, _: aggregation(n)],
    mosha.connect.Norms: [lambda n, _: mosha.connect.Norms(
        table(n).relation, value=mosha.connect.Rows(), order=1, thresholds=(1, 2))],
    mosha.connect.Distinct: [lambda n, _: mosha.connect.Distinct(
        table(n).relation, of=mosha.col("days"), at_most=1, key=bytes(32))],
    mosha.connect.Totals: [lambda n, _: answer(aggregation(n))],
    mosha.Measurement: [lambda n, _: question(n).measurement(tables.Budget(epsilon=1))],
    mosha.Run: [lambda n, _: paid_run(n)],
    sql.Statement: [lambda n, _: statement("SELECT COUNT(*) FROM t", {"t": table(n)})],
    graphs.ProtectedGraph: [graph],
    graphs.ProtectedArcs: [lambda n, _: graphs.protect_arcs([(i, i + 1) for i in range(n)], vertices=50)],
    graphs.Graph: [lambda n, _: graph(n).graph],
    graphs.Question: [lambda n, _: graph(n).edges(), lambda n, _: graph(n).triangles()],
    synth.MarginalsQuestion: [lambda n, _: table(n).marginals(ways=1, keys={"ward": ["A", "B"]})],
    synth.LinkedQuestion: [link],
    synth.SynthesisQuestion: [lambda n, _: table(n).synthesize(keys={"ward": ["A", "B"]}, columns=["ward"])],
    federated.Block: [lambda n, _: federated.Block(list(range(3)), np.full((3, 2), 1000.0 + n))],
    streams.Batches: [lambda n, _: streams.Batches([frame(n).to_pylist()])],
    streams.ProtectedSteps: [lambda n, _: streams.protect([[1] * n, [2]], unit=mosha.Reading())],
    streams.Question: [lambda n, _: streams.protect([[1] * n, [2]], unit=mosha.Reading()).counter()],
    tables.Database: [lambda n, _: tables.Database({"visits": table(n)})],
    mosha.learning.Training: [training],
    mosha.Report: [report],
    mosha.reports.Forecast: [lambda n, _: report(n).forecast()],
    mosha.reports.Split: [lambda n, _: report(n).plan()],
}  # fmt: skip

NO_ROWS = (BaseException, Event, Unit, Enum, mosha.guarantees.Guarantee)
"""Kinds of classes that are made of public numbers."""

PUBLIC = {
    "accounting": "prices, from events",
    "audit": "verdicts on mechanisms, from data that the auditor makes up",
    "mechanisms": "statistics and plans: data are arguments of a step and stay in no field",
    "noise": "randomness",
    "ledger": "what was paid, by events",
    "local": "what devices send is private by itself; a survey is public",
    "client": "what a server has published, on a machine without any data",
}
"""Packages none of whose classes holds anything about rows, and why."""

RELEASED = {
    "mosha": "Account Receipt Release",
    "connect": (
        "Bound Case Clamped Column Expression Literal NormBound Persons Product Rows Schema "
        "Stability Truncate Unbounded Value"
    ),
    "federated": (
        "AdaptiveClip Analytics Ask Checkpoint ClientSide Distributed DistributedExamples ExampleLevel "
        "FedAdagrad FedAdam FedAvg FedYogi Federation History Round ServerSide Session Weights"
    ),
    "graphs": "Answer NoisyAdjacency",
    "learning": (
        "Adam AdamW Aggregation Calibration Categories Columns Correct Cuts DPFTRL DPSGD Descent "
        "FixedSize GaussianClasses LinearRegression LogisticRegression Poisson Range Scattering SearchResult Shuffled "
        "SoftmaxRegression Step"
    ),
    "streams": "Band Clock Decayed Epochs Estimate Instant Running Sliding Stream",
    "reports": "Edition Period Section Wish",
    "models": (
        "Anova BinCounts CategoricalNB CategoryCounts ChiSquareTest ClusterSums CoxRegression DecisionTreeClassifier "
        "GaussianNB GradientBoostingClassifier GradientBoostingRegressor GroupCells HistogramDensity KMeans "
        "KolmogorovSmirnovTest Lasso LeafCounts LinearRegression MomentSums Moments PCA PoissonRegressor "
        "RandomForestClassifier Ranges ResidualSums Ridge StandardScaler SurvivalDescent TTest TestResult"
    ),
    "synth": "Comparison Estimate LinkedTables Marginals Report Synthetic",
    "tables": "Aggregate Answer Budget DatabaseDeclaration Declaration SurvivalCurve",
}
"""Classes that hold plans, or what was released: nothing else about rows."""


def public_classes() -> Any:
    """Every class that can be reached by public names, with the package it is found in."""
    found, seen = {}, set()  # type: ignore[var-annotated]

    def walk(module: Any) -> None:
        seen.add(module.__name__)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.ismodule(value) and value.__name__.startswith("mosha.") and value.__name__ not in seen:
                walk(value)
            elif inspect.isclass(value) and value.__module__.startswith("mosha."):
                package = [*module.__name__.split("."), "mosha"][1] if module is not mosha else "mosha"
                found.setdefault(value, (package, name))

    walk(mosha)
    walk(mosha.connect)
    return found


def _silent(kind: Any) -> Any:
    """Whether every text of a class is Python's own: a name and an address."""
    own = [getattr(kind, name) is getattr(object, name) for name in ("__repr__", "__str__")]
    return all(own) and not hasattr(kind, "_repr_html_")


def _needs_maker(kind: Any, package: Any, name: Any) -> bool:
    if issubclass(kind, NO_ROWS) or package in PUBLIC or name in RELEASED.get(package, "").split() or _silent(kind):
        return False
    return kind not in MAKERS


def test_every_public_class_says_how_it_is_made_from_private_data() -> None:
    unknown = [
        f"{package}.{name}" for kind, (package, name) in public_classes().items() if _needs_maker(kind, package, name)
    ]
    assert not unknown, (
        f"{', '.join(unknown)}: add a maker to MAKERS that builds one from `rows` private rows, so that its texts are "
        "compared on neighboring data. Only if it can hold nothing but plans or released values, add it to RELEASED."
    )


def test_a_new_class_with_a_text_of_its_own_is_noticed() -> None:
    class Fresh:
        def __repr__(self) -> str:
            return "rows"

    assert _needs_maker(Fresh, "tables", "Fresh")
    assert not _needs_maker(type("Plain", (), {}), "tables", "Plain")


def texts(value: Any) -> dict[Any, Any]:
    """Everything an object says of itself, without addresses."""
    said = {"repr": repr(value), "str": str(value), "format": f"{value}"}
    for name in ("_repr_html_", "_repr_markdown_", "_repr_png_", "_repr_mimebundle_"):
        if hasattr(value, name):
            said[name] = str(getattr(value, name)())
    try:
        pickle.dumps(value)
    except Exception as error:  # noqa: BLE001  (what is said of it is compared, whatever it is)
        said["pickle"] = str(error)
    try:
        value.no_such_thing  # noqa: B018
    except AttributeError as error:
        said["attribute"] = str(error)
    return {name: re.sub(r"0x[0-9a-f]+", "0x", text) for name, text in said.items()}


@pytest.mark.parametrize(("kind", "place"), [(k, i) for k, makers in MAKERS.items() for i in range(len(makers))])  # type: ignore[arg-type]
def test_texts_are_equal_on_neighboring_data(kind: Any, place: Any, tmp_path: Path) -> None:
    make = MAKERS[kind][place]  # type: ignore[index]
    said = []
    for rows in (6, 7):
        made = make(rows, tmp_path)
        assert isinstance(made, kind)
        assert len(repr(made)) < SHORT
        said.append(texts(made))
    for name in {**said[0], **said[1]}:
        first, second = (
            "" if name not in part else part[name].replace("/t0/", "/t/").replace("/t1/", "/t/") for part in said
        )
        assert first == second, name
        assert "98765" not in first + second
        assert "secret" not in first + second


SHORT = 500
"""A text that fits into a line or two of a log."""

SHOWN = [
    tables.Table, tables.Grouped, tables.Question, tables.Answer, graphs.Answer,
    mosha.Release, mosha.Receipt, ledger.Ledger, ledger.LedgerAccount, Statement, tables.Database,
    mosha.learning.Training, mosha.learning.DPSGD, federated.History, graphs.ProtectedGraph, graphs.Question,
    streams.Stream, synth.MarginalsQuestion, synth.SynthesisQuestion, synth.Marginals, synth.Synthetic,
    synth.LinkedQuestion, synth.LinkedTables,
    mosha.Report, mosha.reports.Forecast, mosha.reports.Edition, mosha.local.Shares, mosha.local.Hitters,
    tables.SurvivalCurve, mosha.models.TestResult,
]  # fmt: skip


@pytest.mark.parametrize("kind", SHOWN, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_what_people_look_at_has_a_text_and_html_of_its_own(kind: Any) -> None:
    assert kind.__str__ is not object.__str__
    assert kind.__repr__ is not object.__repr__
    assert callable(kind._repr_html_)


def test_a_text_with_the_number_of_rows_is_caught() -> None:
    assert texts(frame(6)) != texts(frame(7))


REFUSED = {
    "column": lambda t: t.count("nothing"),
    "type": lambda t: t.mean("ward", between=(0, 1)),
    "range": lambda t: t.sum("days"),
    "person": lambda t: t.group_by("who").count(),
    "keys": lambda t: t.group_by("days", keys=["a"]).count(),
    "account": lambda t: t.count().release(epsilon=1),
    "budget": lambda t: t.group_by("ward").count().measurement(tables.Budget(epsilon=1)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_equal_on_neighboring_data(name: Any) -> None:
    said = []
    for rows in (6, 7):
        with pytest.raises(mosha.errors.MoshaError) as caught:
            REFUSED[name](table(rows))
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "secret" not in said[0]


def test_the_repr_of_a_protected_frame_is_short_and_has_no_number_of_rows() -> None:
    protected = tables.protect(pa.table({"p": range(20190)}), unit=mosha.Person("p"))
    for shown in (protected, protected.count(), protected.relation, protected.relation.source):  # type: ignore[attr-defined]
        assert "20190" not in repr(shown)
        assert len(repr(shown)) < 250
