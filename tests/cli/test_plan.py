"""`mosha plan`: the least epsilon keeps the accuracy, a smaller one does not; both ways agree."""

import json
import math
from typing import Any

import pytest

from mosha.cli import main
from mosha.guarantees import Approx, Gaussian


@pytest.fixture
def planned(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: Any) -> Any:
        assert main(["plan", *map(str, arguments), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


LAPLACE = ("--mechanism", "laplace")
GAUSSIAN = ("--mechanism", "gaussian", "--delta", "1e-6")
mechanisms = pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])


def outside(epsilon: Any, width: Any) -> Any:
    """P(|noise| > width), summed, for discrete Laplace noise with sensitivity 1."""
    q = math.exp(-epsilon)
    return math.fsum(2 * (1 - q) / (1 + q) * q**k for k in range(math.floor(width) + 1, 100_000))


@pytest.mark.parametrize("width", [1, 10, 100])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_the_epsilon_for_a_width_is_enough_and_least(planned: Any, width: int, confidence: float) -> None:
    epsilon = planned(*LAPLACE, "--sensitivity", 1, "--within", width, "--confidence", confidence)["epsilon"]
    assert outside(epsilon, width) <= 1 - confidence
    assert outside(epsilon * (1 - 1e-6), width) > 1 - confidence


@pytest.mark.parametrize("deviation", [0.5, 10, 1000])
def test_the_epsilon_for_a_deviation_is_enough_and_least(planned: Any, deviation: float) -> None:
    spread = lambda epsilon: math.sqrt(2 * math.exp(-epsilon)) / -math.expm1(-epsilon)
    epsilon = planned(*LAPLACE, "--sensitivity", 1, "--standard-deviation", deviation)["epsilon"]
    assert spread(epsilon) <= deviation
    assert spread(epsilon * (1 - 1e-6)) > deviation


@pytest.mark.parametrize("deviation", [1, 10, 1000])
def test_gaussian_noise_of_the_deviation_keeps_the_promise_and_no_better_one(planned: Any, deviation: int) -> None:
    epsilon = planned(*GAUSSIAN, "--sensitivity", 1, "--standard-deviation", deviation)["epsilon"]
    assert Gaussian(1 / deviation) <= Approx(epsilon, 1e-6)
    assert not Gaussian(1 / deviation) <= Approx(epsilon * (1 - 1e-4), 1e-6)


@mechanisms
def test_both_ways_agree(planned: Any, noise: Any) -> None:
    there = planned(*noise, "--sensitivity", 2, "--within", 50, "--confidence", 0.9)
    back = planned(*noise, "--sensitivity", 2, "--epsilon", there["epsilon"], "--confidence", 0.9)
    assert back["within"] == pytest.approx(50, abs=1)
    assert back["within"] <= 50
    assert back == there


@mechanisms
def test_more_accuracy_costs_more(planned: Any, noise: Any) -> None:
    costs = [planned(*noise, "--sensitivity", 1, "--within", width)["epsilon"] for width in (100, 30, 10, 3)]
    assert costs == sorted(costs)


def test_a_percentage_is_of_something(planned: Any, capsys: pytest.CaptureFixture[str]) -> None:
    share = planned(*LAPLACE, "--sensitivity", 1, "--within", "5%", "--of", 2000)
    assert share == planned(*LAPLACE, "--sensitivity", 1, "--within", 100)


def test_a_fine_grid_is_the_continuous_law(planned: Any) -> None:
    found = planned(*LAPLACE, "--sensitivity", 1, "--standard-deviation", 0.1, "--grid", 2**-20)
    assert found["epsilon"] == pytest.approx(math.sqrt(2) / 0.1, rel=1e-6)


def test_people_see_cost_and_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *LAPLACE, "--sensitivity", "1", "--within", "10"]) == 0
    shown = capsys.readouterr().out
    for part in ("laplace noise", "epsilon 0.2", "standard deviation", "95% of the time"):
        assert part in shown


@pytest.mark.parametrize(
    "arguments",
    [
        (*LAPLACE, "--sensitivity", "0", "--within", "10"),
        (*LAPLACE, "--sensitivity", "-1", "--within", "10"),
        (*LAPLACE, "--sensitivity", "nan", "--within", "10"),
        (*LAPLACE, "--sensitivity", "1", "--within", "0"),
        (*LAPLACE, "--sensitivity", "1", "--within", "inf"),
        (*LAPLACE, "--sensitivity", "1", "--within", "10", "--confidence", "1"),
        (*LAPLACE, "--sensitivity", "1", "--epsilon", "0"),
        (*LAPLACE, "--sensitivity", "1", "--epsilon", "-2"),
        (*LAPLACE, "--sensitivity", "1", "--epsilon", "1", "--confidence", "nan"),
        (*LAPLACE, "--sensitivity", "1", "--standard-deviation", "0"),
        (*LAPLACE, "--sensitivity", "1", "--within", "5%", "--of", "-1"),
        (*LAPLACE, "--sensitivity", "1", "--within", "10", "--grid", "0"),
        ("--mechanism", "gaussian", "--delta", "0", "--sensitivity", "1", "--within", "10"),
        ("--mechanism", "gaussian", "--delta", "1", "--sensitivity", "1", "--within", "10"),
    ],
    ids=" ".join,
)
def test_a_number_that_makes_no_sense_is_refused_in_one_line(
    arguments: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("mosha: InvalidParameter: ")
    assert err.count("\n") == 1
    assert main(["plan", *arguments, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"] == "InvalidParameter"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (*LAPLACE, "--sensitivity", "1"),
        (*LAPLACE, "--within", "10"),
        (*LAPLACE, "--sensitivity", "1", "--within", "10", "--epsilon", "1"),
        (*LAPLACE, "--sensitivity", "1", "--within", "5%"),
        (*LAPLACE, "--sensitivity", "1", "--within", "5", "--of", "10"),
        (*LAPLACE, "--sensitivity", "1", "--within", "ten"),
        (*LAPLACE, "--sensitivity", "1", "--within", "10", "--delta", "1e-6"),
        ("--mechanism", "gaussian", "--sensitivity", "1", "--within", "10"),
        ("--mechanism", "cauchy", "--sensitivity", "1", "--within", "10"),
    ],
    ids=" ".join,
)
def test_wrong_usage_has_exit_code_two(arguments: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1
