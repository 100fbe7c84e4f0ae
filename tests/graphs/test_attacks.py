"""The attacker finds no more than was claimed, and finds a fault that was planted.

False alarms: all attacks together 1e-9, split evenly among the entries.
"""

from dataclasses import replace
from typing import Any

import pytest

import mosha
from mosha.audit.own.graphs import own_entries
from mosha.core.measurement import Measurement
from mosha.graphs.statistics.ladder import Rungs
from mosha.graphs.statistics.subgraphs import TriangleCount
from tests.chance import look_for_fault
from tests.graphs.small_graphs import every_graph

ENTRIES = own_entries()
LEAST = 100  # runs of slow ones, on one pair of neighbors: an error in them is found, a small excess is not
RUNS = {
    2000: "edges; components; maximum degree; degree histogram; stars, degrees clamped; edges, node level; "
    "cumulative degrees, node level; degree histogram, node level; stars, node level; vertices, node level",
    500: "adjacency; seeds; communities",
    300: "edges, node level, bound chosen; degree distribution, bound chosen; degrees, local; synthetic, filter; "
    "synthetic, communities",
    150: "triangles, local",
    LEAST: "components, node level; triangles, node level; triangles, degrees bounded; synthetic, clustered",
}
RUNS_OF = {name: runs for runs, names in RUNS.items() for name in names.split("; ")}


def test_every_attack_that_is_named_exists() -> None:
    assert set(RUNS_OF) <= {entry.name.removeprefix("graphs: ") for entry in ENTRIES}


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.name for entry in ENTRIES])
def test_an_attack_finds_no_more_than_the_claim(entry: Any) -> None:
    runs = RUNS_OF.get(entry.name.removeprefix("graphs: "), 800)
    proposals = entry.proposals[1:3] if runs > LEAST else entry.proposals[2:3]
    verdict = replace(entry, proposals=proposals).attack(runs=runs, confidence=1 - 1e-9 / len(ENTRIES))
    assert verdict.outcome is not mosha.audit.Outcome.BROKEN, verdict


def complete(n: Any) -> tuple[Any, ...]:
    graphs = every_graph(n)
    full = max(graphs)
    return graphs[full], graphs[full ^ 1]


def test_a_ladder_whose_noise_ignores_epsilon_is_broken() -> None:
    """A fault of a public codebase: the rung is drawn and its distance from the middle forgotten."""
    statistic = TriangleCount(5)
    rungs = Rungs(statistic, 1.0)

    def step(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        widths = statistic.widths(data)
        return statistic.evaluate(data) + rungs._draw_on_rung(widths, 0, rng), state

    faulty = Measurement(unit=mosha.Edge(), event=mosha.events.Pure(1.0), step=step)
    verdict = look_for_fault(lambda: mosha.audit.attack(faulty, neighbors=complete(5), runs=3000, confidence=1 - 1e-9))
    assert verdict.outcome is mosha.audit.Outcome.BROKEN


def test_degree_reports_with_half_the_noise_are_broken() -> None:
    """Another one: an edge is in two reports, and each was charged as if it were alone."""

    def reports(graph: Any, size: Any) -> Any:
        noise = mosha.noise.discrete_laplace(0.25, (size, 2))  # epsilon 4 for each, where 4 was claimed for both
        return graph.degrees[:2] + noise

    first, second = every_graph(3)[1], every_graph(3)[0]
    promise: dict[str, Any] = {"neighbors": (first, second), "claim": mosha.guarantees.Pure(4), "confidence": 1 - 1e-9}
    verdict = look_for_fault(lambda: mosha.audit.attack(reports, runs=20_000, batch=True, **promise))
    assert verdict.outcome is mosha.audit.Outcome.BROKEN
