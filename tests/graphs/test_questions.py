"""Questions about graphs follow the protocol of all questions: forecast, plan, explain, release, plain data."""

import json
from typing import Any

import networkx as nx
import pytest

import mosha
from mosha.accounting.measures import concentrated
from mosha.core.question import Answer as AnswerProtocol
from mosha.core.question import Question as QuestionProtocol
from mosha.errors import InvalidParameter
from mosha.graphs.question import VERBS, Question

PAIRS = [(i, (i + 1) % 30) for i in range(30)] + [(0, 2), (1, 3)]


def graph(unit: Any = None, **how: Any) -> Any:
    unit = unit or mosha.Edge()
    account = mosha.Ledger.memory().account("graph", unit=unit, epsilon=10.0, **how)
    return mosha.graphs.protect(PAIRS, unit=unit, account=account, vertices=30)


def every_question(asked: Any) -> dict[Any, Any]:
    options: dict[str, Any] = {
        "stars": {"leaves": 2},
        "seeds": {"k": 3},
        "best_partition": {"partitions": [[0] * 30, [0, 1] * 15], "density": 0.1},
    }
    return {verb: getattr(asked, verb)(**options.get(verb, {})) for verb in sorted(VERBS)}


def test_every_question_follows_the_protocol_and_survives_json() -> None:
    asked = graph()
    prints = set()
    for verb, question in every_question(asked).items():
        assert isinstance(question, QuestionProtocol)
        again = Question.from_dict(asked, json.loads(json.dumps(question.to_dict())))
        assert (again.verb, again.fingerprint) == (verb, question.fingerprint)
        prints.add(question.fingerprint)
    assert len(prints) == len(VERBS)


def test_questions_with_other_options_units_or_vertices_have_other_fingerprints() -> None:
    asked = graph()
    assert asked.stars(2).fingerprint != asked.stars(3).fingerprint
    assert asked.edges().fingerprint != graph(mosha.Node(max_degree=5)).edges().fingerprint
    larger = mosha.graphs.protect(PAIRS, unit=mosha.Edge(), vertices=31)
    assert asked.edges().fingerprint != larger.edges().fingerprint
    with pytest.raises(InvalidParameter) as refused:
        Question.from_dict(larger, asked.edges().to_dict())
    assert refused.value.code == "graphs.question_of_other_graph"


def test_the_fingerprint_of_a_question_at_node_level_knows_nothing_of_the_graph() -> None:
    unit = mosha.Node(max_degree=5)
    few = mosha.graphs.protect([(0, 1)], unit=unit, vertices=2)
    many = mosha.graphs.protect(PAIRS, unit=unit, vertices=30)
    assert few.edges().fingerprint == many.edges().fingerprint
    assert few.edges().to_dict() == many.edges().to_dict()


@pytest.mark.parametrize(
    "data", [None, {}, {"graph": "release", "options": {}, "unit": {}, "vertices": 30}, {"graph": "__init__"}]
)
def test_what_describes_no_question_is_refused(data: Any) -> None:
    with pytest.raises(InvalidParameter) as refused:
        Question.from_dict(graph(), data)
    assert refused.value.code == "graphs.not_a_question"


def test_within_pays_the_least_epsilon_whose_bar_is_narrow_enough() -> None:
    edges = graph().edges()
    budget = edges.plan(within=6.0)
    assert edges.forecast(epsilon=budget.epsilon) <= 6.0 < edges.forecast(epsilon=budget.epsilon * 0.9)
    answer = edges.release(within=6.0)
    assert isinstance(answer, AnswerProtocol)
    assert answer.error() <= 6.0
    assert answer.receipt.cost <= budget.epsilon * 1.000001
    assert json.loads(json.dumps(answer.to_dict()))["error"] == answer.error()


@pytest.mark.parametrize("verb", ["edges", "degree_histogram", "triangles"])
def test_a_price_in_rho_is_kept_and_used(verb: str) -> None:
    question = getattr(graph(), verb)()
    made = question.measurement_for(rho=0.1)
    assert 0.05 < concentrated.rho(made.event)[0] <= 0.1
    assert question.release(rho=0.1).receipt.cost > 0


def test_the_explanation_names_the_price_and_what_is_hidden() -> None:
    text = graph().triangles().explain(epsilon=1)
    assert text.startswith("-- triangles: ")
    assert mosha.Edge().describe() in text


def test_a_key_finds_its_own_question_only() -> None:
    asked = graph()
    first = asked.stars(2).release(epsilon=1, key="once")
    assert asked.stars(2).release(epsilon=1, key="once").value == first.value
    with pytest.raises(mosha.errors.MoshaError):
        asked.stars(3).release(epsilon=1, key="once")


def test_protect_takes_a_networkx_graph_at_edge_level() -> None:
    ring = mosha.protect(nx.cycle_graph(12), unit=mosha.Edge())
    assert isinstance(ring, mosha.graphs.ProtectedGraph)
    assert ring.edges().forecast(epsilon=1) == 3.0
    with pytest.raises(mosha.errors.DataError):
        mosha.protect(nx.cycle_graph(3), unit=mosha.Person("id"))
