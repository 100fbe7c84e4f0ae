"""Windows for learners agree with the mechanisms they look into."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosha
from mosha import classroom, noise
from mosha.cli import main
from mosha.core.errors import InvalidParameter
from mosha.graphs import sensitivities

DRAWS = 40_000


def test_exact_probabilities_are_those_of_the_sampler() -> None:
    """Chi-square with 3 degrees of freedom: above 60 with probability below 1e-12; factors of two are."""
    scores = [5, 3, 2, 0]
    drawn = np.bincount(noise.exponential_choice(scores, 2.0, DRAWS), minlength=4)

    def distance(probabilities: Any) -> float:
        expected = DRAWS * np.array(probabilities)
        return float(((drawn - expected) ** 2 / expected).sum())

    assert distance(classroom.exponential_probabilities(scores, sensitivity=1, epsilon=1)) < 60
    assert distance(classroom.exponential_probabilities(scores, sensitivity=1, epsilon=1, monotone=True)) > 200
    assert distance(classroom.exponential_probabilities(scores, sensitivity=1, epsilon=0.5)) > 200


def test_the_loss_of_an_output_is_a_ratio_of_densities() -> None:
    for output in (-3.0, 10.2, 10.5, 40.0):
        loss = classroom.privacy_loss(output, first=10, second=11, scale=2)
        assert loss == pytest.approx(math.log(math.exp(-abs(output - 10) / 2) / math.exp(-abs(output - 11) / 2)))
        assert abs(loss) <= 0.5 + 1e-12
    assert classroom.privacy_loss(-30, first=10, second=11, scale=2, noise="gaussian") > 5


@pytest.mark.parametrize("length", [1, 2, 7])
def test_sensitivities_of_sequences_are_those_of_all_neighbors(length: int) -> None:
    running = np.cumsum(np.eye(length), axis=1)  # one event at each step, as running counts
    single, total = classroom.sequence_sensitivities(length)
    assert total.event_l1 == running.sum(axis=1).max()
    assert total.event_l2 == pytest.approx(np.linalg.norm(running, axis=1).max())
    assert total.person_l1 == running.sum()
    assert total.person_l2 == pytest.approx(np.linalg.norm(running.sum(axis=0)))
    assert (single.event_l1, single.person_l1) == (1, length)


def test_compositions_are_ordered_and_agree_for_one_question() -> None:
    one, many = classroom.compare_compositions(epsilon=0.1, delta=1e-6, questions=[1, 200])
    assert one.basic == pytest.approx(0.1)
    assert many.tight <= many.renyi <= many.advanced <= many.basic


@pytest.mark.parametrize(
    "ask",
    [
        lambda: classroom.exponential_probabilities([], sensitivity=1, epsilon=1),
        lambda: classroom.exponential_probabilities([1, math.nan], sensitivity=1, epsilon=1),
        lambda: classroom.privacy_loss(1, first=0, second=1, scale=0),
        lambda: classroom.privacy_loss(1, first=0, second=1, scale=1, noise="cauchy"),  # type: ignore[arg-type]
        lambda: classroom.sequence_sensitivities(0),
        lambda: classroom.compare_compositions(epsilon=1, delta=0, questions=[1]),
    ],
)
def test_bad_input_is_refused(ask: Any) -> None:
    with pytest.raises(InvalidParameter):
        ask()


def test_node_level_sensitivities_need_no_degree_where_the_number_of_vertices_is_given() -> None:
    found = sensitivities(mosha.Node(), vertices=10)
    assert (found["edges"], found["triangles"]) == (9, math.comb(9, 2))


def test_the_commands_answer(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["compose", "--epsilon", "0.1", "--delta", "1e-6", "--questions", "3", "--json"]) == 0
    assert main(["compose", "--epsilon", "0.1", "--delta", "1e-6", "--plot", str(tmp_path / "c.svg")]) == 0
    assert (tmp_path / "c.svg").read_text().startswith("<?xml")
    assert main(["explain", "--epsilon", "0"]) == 0
    both = ["plan", "--mechanism", "laplace", "--sensitivity", "1", "--standard-deviation", "10", "--within", "5"]
    assert main([*both, "--json"]) == 0
    assert main([*both, "--epsilon", "1"]) == 2
