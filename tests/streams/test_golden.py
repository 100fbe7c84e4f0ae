"""Predicted errors and derived sensitivities against numbers that were worked out elsewhere."""

import csv
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosha import Person, Reading
from mosha.streams.noise.blt import design
from mosha.streams.noise.blt_error import curve
from mosha.streams.noise.toeplitz import lower_bound, root_coefficients
from mosha.streams.noise.tree import SignedTree, best_tree
from mosha.streams.presence import Presence, presence_of
from mosha.streams.readout import Instant, Readout, Running
from tests.streams.deviations import binary_deviation, honaker_deviation

ROWS = list(csv.DictReader((Path(__file__).parent / "golden.csv").read_text(encoding="utf-8").splitlines()))


def rows(area: Any, start: Any) -> list[Any]:
    return [row for row in ROWS if row["area"] == area and row["name"].startswith(start)]


def horizon_of(row: Any) -> int:
    return int(re.search(r"T=(\d+)", row["params"])[1])


def close(found: Any, row: Any, tolerance: Any) -> None:
    assert found == pytest.approx(float(row["value"]), rel=tolerance), row


def sequence_norms(readout: Readout, presence: Presence, horizon: int) -> tuple[float, float]:
    """How far one unit moves the whole exact sequence, in contributions: its l1 and l2 norm."""
    response = readout.respond(np.ones(horizon))
    total = np.zeros(horizon)
    for i in range(min(presence.most, math.ceil(horizon / presence.apart))):
        first = i * presence.apart
        total[first:] += response[: horizon - first]
    return float(total.sum()) * presence.sides, math.sqrt(float(total @ total)) * presence.sides


def test_the_sensitivity_of_a_sequence_is_derived_from_the_unit() -> None:
    seen = 0
    for row in rows("sens", ""):
        horizon = horizon_of(row)
        if horizon > 4096:
            continue
        readout = Running() if row["name"].startswith("cumulative") else Instant()
        unit = Person("who") if "user-level" in row["name"] else Reading()
        l1, l2 = sequence_norms(readout, presence_of(unit, horizon), horizon)
        close({"l1": l1, "l2": l2}[row["quantity"]], row, 1e-12)
        seen += 1
    assert seen > 20


def test_signed_trees_have_the_known_errors_and_the_planner_finds_the_best_base() -> None:
    for row in rows("cc", "k-ary"):
        base, levels = map(int, re.search(r"k=(\d+) h=(\d+)", row["name"]).groups())
        horizon = horizon_of(row)
        assert best_tree(horizon) == SignedTree(base, levels)
        tree = SignedTree(base, levels)
        weight = tree.mean_weight(horizon) if row["quantity"] == "rmse" else tree.largest_weight(horizon)
        close(levels * math.sqrt(2 * weight), row, 1e-9)


@pytest.mark.parametrize(("start", "deviation"), [("binary", binary_deviation), ("honaker", honaker_deviation)])
def test_binary_trees_are_as_bad_as_they_are_known_to_be(start: str, deviation: Any) -> None:
    for row in rows("cc", start):
        horizon, levels = horizon_of(row), int(re.search(r"L=(\d+)", row["name"])[1])
        if horizon > 1 << 16:
            continue
        each = np.array([deviation(t) for t in range(1, horizon + 1)])
        found = math.sqrt(np.mean(each**2)) if row["quantity"] == "rmse" else each.max()
        close(found * (levels * math.sqrt(2) if "pure" in row["params"] else math.sqrt(levels)), row, 1e-9)


def test_designed_buffers_reach_the_known_optimum() -> None:
    for row in rows("cc", "BLT"):
        buffers, horizon = int(re.search(r"k=(\d)", row["name"])[1]), horizon_of(row)
        if "opt=max" in row["name"] and row["quantity"] == "max_std" and buffers <= 6 and horizon <= 1 << 16:
            made = design(horizon, buffers)
            found = math.sqrt(made.encoder_square(horizon) * made.decoder_square(horizon))
            assert found <= float(row["value"]) * 1.001, row


def test_normalised_buffers_have_the_known_errors_close_to_the_lower_bound() -> None:
    for row in rows("cc", "column-normalised BLT"):
        buffers, horizon = int(re.search(r"k=(\d)", row["name"])[1]), horizon_of(row)
        found = curve(design(horizon, buffers), horizon, normalised=True)
        close(found.root_mean_square if row["quantity"] == "rmse" else found.largest, row, 1e-3)
    for row in rows("cc", "lower bound"):
        close(lower_bound(horizon_of(row)), row, 1e-9)
    assert curve(design(1024, 6), 1024, normalised=True).root_mean_square / lower_bound(1024) <= 1.03


def test_the_square_root_has_the_known_norm() -> None:
    for row in rows("cc", "sqrt-toeplitz"):
        if row["quantity"] == "max_std" and horizon_of(row) <= 1 << 20:
            coefficients = root_coefficients(horizon_of(row))
            close(float(coefficients @ coefficients), row, 1e-9)
