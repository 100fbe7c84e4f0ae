"""`mosha explain`: its numbers are those of the worst mechanism, its words say the same."""

import itertools
import json
import math
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from mosha.cli import main

NORMAL = NormalDist()


@pytest.fixture
def explained(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: Any) -> Any:
        assert main(["explain", *map(str, arguments), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 5, 30])
@pytest.mark.parametrize("prior", [0.001, 0.01, 0.5, 0.9])
def test_pure_is_randomized_response(explained: Any, epsilon: float, prior: float) -> None:
    found = explained("--epsilon", epsilon, "--prior", prior)
    factor = math.exp(epsilon)
    assert found["odds_factor"] == pytest.approx(factor)
    assert found["posterior"]["highest"] == pytest.approx(prior * factor / (1 - prior + prior * factor))
    assert found["posterior"]["lowest"] == pytest.approx(prior / (prior + (1 - prior) * factor))
    assert found["posterior"]["except_with_probability"] == 0
    assert found["advantage"] == pytest.approx(math.tanh(epsilon / 2), rel=1e-9)
    for row in found["true_positive_rates"]:
        rate = row["false_positive_rate"]
        assert row["true_positive_rate"] == pytest.approx(min(1, factor * rate, 1 - (1 - rate) / factor), rel=1e-9)
        assert row["posterior"] <= found["posterior"]["highest"] * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.2])
def test_approximate_is_randomized_response_that_sometimes_tells_all(
    explained: Any, epsilon: float, delta: float
) -> None:
    found = explained("--epsilon", epsilon, "--delta", delta)
    told = delta + (1 - delta) * math.tanh(epsilon / 2)
    assert found["advantage"] == pytest.approx(told, rel=1e-9)
    assert found["posterior"]["except_with_probability"] == delta
    for row in found["true_positive_rates"]:
        rate = row["false_positive_rate"]
        most = min(1, delta + math.exp(epsilon) * rate, 1 - math.exp(-epsilon) * (1 - delta - rate))
        assert row["true_positive_rate"] == pytest.approx(most, rel=1e-9)


@pytest.mark.parametrize("mu", [0.1, 1, 3])
def test_gaussian_is_telling_two_normal_laws_apart(explained: Any, mu: float) -> None:
    found = explained("--mu", mu)
    assert found["advantage"] == pytest.approx(2 * NORMAL.cdf(mu / 2) - 1, rel=1e-9)
    for row in found["true_positive_rates"]:
        most = NORMAL.cdf(NORMAL.inv_cdf(row["false_positive_rate"]) + mu)
        assert row["true_positive_rate"] == pytest.approx(most, rel=1e-6)
    assert found["bound"] is None
    assert found["odds_factor"] is None


@pytest.mark.parametrize("rho", [0.01, 0.5, 2])
def test_concentrated_is_no_stronger_than_gaussian_noise_that_keeps_it(explained: Any, rho: float) -> None:
    """Gaussian noise with mu = sqrt(2 rho) keeps rho, so what is said of rho covers it."""
    found, worst = explained("--rho", rho), explained("--mu", math.sqrt(2 * rho))
    assert found["advantage"] >= worst["advantage"] * (1 - 1e-9)
    for row, covered in zip(found["true_positive_rates"], worst["true_positive_rates"], strict=True):
        assert row["true_positive_rate"] >= covered["true_positive_rate"] * (1 - 1e-9)


@pytest.mark.parametrize("kind", ["--rho", "--mu"])
def test_a_delta_bounds_the_odds_outside_of_it(explained: Any, kind: str) -> None:
    loose, tight = (explained(kind, 0.5, "--delta", delta) for delta in (1e-9, 1e-3))
    assert loose["bound"]["guarantee"] == "Approx"
    assert loose["odds_factor"] > tight["odds_factor"] > 1
    assert tight["posterior"]["except_with_probability"] == 1e-3


@pytest.mark.parametrize(
    "arguments", [("--epsilon", 1), ("--epsilon", 1, "--delta", 0.01), ("--mu", 1), ("--rho", 0.5)]
)
def test_the_curve_falls_is_convex_and_no_better_than_guessing(explained: Any, arguments: Any) -> None:
    found = explained(*arguments)
    misses = [missed for _, missed in found["trade_off"]]
    assert all(later <= earlier for earlier, later in itertools.pairwise(misses))
    assert all(a + c >= 2 * b - 1e-6 for a, b, c in zip(misses, misses[1:], misses[2:], strict=False))
    assert all(missed <= 1 - rate + 1e-12 for rate, missed in found["trade_off"])
    assert misses[-1] == pytest.approx(0, abs=1e-12)


def test_more_epsilon_never_means_more_privacy(explained: Any) -> None:
    found = [explained("--epsilon", epsilon) for epsilon in (0.1, 0.2, 1, 3)]
    assert [f["advantage"] for f in found] == sorted(f["advantage"] for f in found)
    assert [f["posterior"]["highest"] for f in found] == sorted(f["posterior"]["highest"] for f in found)


def test_the_words_hold_the_numbers(explained: Any) -> None:
    words = " ".join(explained("--epsilon", 1, "--prior", 0.01)["words"])
    assert "a factor of at most 2.718" in words
    assert "Someone who thought it 1% likely before can think it at most 2.67% likely afterwards." in words
    assert "at most 73.1 out of 100 possible answers" in words
    assert "if you did not, 26.9 out of 100 wrongly do" in words


def test_delta_is_explained_exactly(explained: Any) -> None:
    words = " ".join(explained("--epsilon", 1, "--delta", 1e-6)["words"])
    assert "learns everything with probability 1e-06" in words


def test_people_see_sentences_a_table_and_a_curve(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--epsilon", "1"]) == 0
    shown = capsys.readouterr().out
    for part in ("epsilon 1", "membership advantage", "46.2%", "false alarms", "an accusation is right at most"):
        assert part in shown
    assert any(0x2801 <= ord(letter) <= 0x28FF for letter in shown) or "***" in shown


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_curve_becomes_a_picture(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / f"curve.{ending}"
    assert main(["explain", "--epsilon", "1", "--plot", str(picture), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plot"] == str(picture)
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize(
    "arguments",
    [
        ("--epsilon", "-1"),
        ("--epsilon", "nan"),
        ("--epsilon", "inf"),
        ("--epsilon", "1", "--delta", "1"),
        ("--epsilon", "1", "--delta", "-0.1"),
        ("--epsilon", "1", "--prior", "0"),
        ("--epsilon", "1", "--prior", "1.5"),
        ("--rho", "-1"),
        ("--mu", "nan"),
        ("--rho", "1", "--delta", "0"),
        ("--epsilon", "1", "--plot", "curve.bmp"),
        ("--epsilon", "1", "--plot", "no-such-folder/curve.png"),
    ],
    ids=" ".join,
)
def test_a_number_that_makes_no_sense_is_refused_in_one_line(
    arguments: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["explain", *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("mosha: InvalidParameter: ")
    assert err.count("\n") == 1
    assert main(["explain", *arguments, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"] == "InvalidParameter"


@pytest.mark.parametrize(
    "arguments", [(), ("--epsilon", "one"), ("--epsilon", "1", "--rho", "1"), ("--delta", "1e-6"), ("--epsilon",)]
)
def test_wrong_usage_has_exit_code_two(arguments: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_huge_numbers_are_told_as_no_bound(explained: Any) -> None:
    assert explained("--epsilon", 1e6)["odds_factor"] is None
    assert explained("--epsilon", 1e6)["posterior"]["highest"] == 1


def test_a_bound_that_hides_nothing_is_not_told_as_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--epsilon", "1000000"]) == 0
    out = capsys.readouterr().out
    assert "hides nothing" in out
    assert "at most no bound" not in out
