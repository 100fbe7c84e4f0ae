"""Laws of the private descent: an example adds the same whole matrix wherever it stands, and never a longer one."""

import math
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mosha import Example, Person, Row, accounting, noise
from mosha.core.errors import DataError, InvalidParameter, Unbounded
from mosha.core.event import from_json
from mosha.learning.linear.descent import Descent, gaussian_budget, logits_of
from mosha.learning.linear.losses import LOSSES, SCALE, clip_residuals
from mosha.learning.linear.rows import RADIUS, BoundedRows, label_codes

WIDTH, OUTPUTS = 5, 3
FLOATS = st.floats(width=64, allow_nan=True, allow_infinity=True)
ANY_ROWS = arrays(np.float64, st.tuples(st.integers(0, 12), st.just(WIDTH)), elements=FLOATS)
WHOLE = arrays(np.float64, (WIDTH, OUTPUTS), elements=st.integers(-(2**30), 2**30)).map(lambda w: w * 2.0**-20)


def plan(**changed: Any) -> Any:
    return Descent(**{"width": WIDTH, "outputs": OUTPUTS, "loss": "softmax", "examples": 100, "steps": 4} | changed)  # type: ignore[arg-type]


def whole_rows(count: Any, width: Any = WIDTH) -> Any:
    random = np.random.default_rng()
    return BoundedRows(width, norm=1.0, intercept=False).steps(random.normal(size=(count, width)))


def targets(count: Any, outputs: Any = OUTPUTS) -> Any:
    return np.eye(outputs)[np.random.default_rng().integers(0, outputs, count)]


@given(ANY_ROWS, st.booleans(), st.floats(1e-3, 1e3))
def test_every_row_is_whole_and_within_the_ball(raw: Any, intercept: Any, norm: Any) -> None:
    steps = BoundedRows(WIDTH, norm=norm, intercept=intercept).steps(raw).astype(object)
    assert all(sum(int(v) ** 2 for v in row) <= RADIUS**2 for row in steps)


@given(ANY_ROWS)
def test_a_row_is_bounded_by_itself(raw: Any) -> None:
    rows = BoundedRows(WIDTH, between=(-3, 5))
    alone = [rows.steps(row[None])[0] for row in raw]
    assert np.array_equal(rows.steps(raw), np.array(alone, np.int16).reshape(len(raw), WIDTH + 1))


@given(arrays(np.float64, (7, OUTPUTS), elements=st.integers(-(2**20), 2**20)), st.integers(1, 2**20))
def test_clipped_residuals_are_whole_and_no_longer_than_the_clip(residuals: Any, clip: Any) -> None:
    for row in clip_residuals(residuals, clip):
        assert sum(int(v) ** 2 for v in row) <= clip**2
        assert np.array_equal(row, np.rint(row))


@pytest.mark.parametrize("loss", LOSSES)
@given(WHOLE)
def test_one_example_moves_the_sum_by_its_own_gradient_wherever_it_stands(loss: Any, weights: Any) -> None:
    outputs = OUTPUTS if loss == "softmax" else 1
    descent = plan(loss=loss, outputs=outputs, clip=0.7)
    random = np.random.default_rng()
    count = int(random.integers(1, 40))
    rows = whole_rows(count)
    goals = targets(count) if loss == "softmax" else random.integers(0, 2, (count, 1)).astype(float)
    weights = weights[:, :outputs]
    total = descent.gradient(rows, goals, weights)
    leaver = int(random.integers(count))
    others = np.delete(np.arange(count), leaver)
    random.shuffle(others)
    left = descent.gradient(rows[others], goals[others], weights)
    own = descent.gradient(rows[leaver : leaver + 1], goals[leaver : leaver + 1], weights)
    assert np.array_equal(total - left, own)
    assert sum(int(v) ** 2 for v in own.ravel()) <= descent.sensitivity(Example()) ** 2


@given(WHOLE)
def test_logits_are_the_exact_products_in_any_company(weights: Any) -> None:
    rows = whole_rows(9)
    exact = [
        [sum(int(a) * int(b) for a, b in zip(row, col, strict=True)) for col in (weights * 2**20).T] for row in rows
    ]
    assert logits_of(rows, weights).tolist() == exact
    assert np.array_equal(logits_of(rows[4:5], weights), logits_of(rows, weights)[4:5])


def test_the_largest_weights_still_give_exact_logits() -> None:
    weights = np.full((WIDTH, 1), 2.0**18 / math.sqrt(WIDTH) - 2.0**-20)
    weights = np.rint(weights * 2**20) / 2**20
    rows = whole_rows(50)
    exact = [sum(int(a) * int(b) for a, b in zip(row, weights[:, 0] * 2**20, strict=True)) for row in rows]
    assert logits_of(rows, weights)[:, 0].tolist() == exact


def test_blocks_leave_no_trace() -> None:
    descent, rows, goals = plan(), whole_rows(5000), targets(5000)
    weights = np.rint(np.random.default_rng().normal(size=(WIDTH, OUTPUTS)) * 2**20) / 2**20
    parts = sum(descent.gradient(rows[k::7], goals[k::7], weights) for k in range(7))
    assert np.array_equal(descent.gradient(rows, goals, weights), parts)


def test_the_gradient_is_that_of_the_loss_within_its_steps() -> None:
    descent, rows, goals = plan(clip=1.5), whole_rows(300), targets(300)
    weights = np.rint(np.random.default_rng().normal(size=(WIDTH, OUTPUTS)) * 2**20) / 2**20
    x = rows / RADIUS
    z = x @ weights
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    expected = x.T @ (p - goals)
    assert np.abs(descent.gradient(rows, goals, weights) / SCALE / RADIUS - expected).max() < 300 * 3e-3


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.1, 1e-5), (2.93, 1e-9), (8.0, 1e-3)])
def test_the_price_is_what_was_asked_for_and_no_less(epsilon: float, delta: float) -> None:
    event = plan(steps=60).measurement(unit=Example(), epsilon=epsilon, delta=delta).event
    assert 0.999 * epsilon <= accounting.epsilon(event, delta) <= epsilon


def test_an_account_of_the_same_promise_pays_for_it() -> None:
    from mosha import Ledger

    account = Ledger.memory().account(
        "a", unit=Example(), epsilon=1, delta=1e-5, rule="gaussian", delta_for_events=1e-12
    )
    with account.open(plan(steps=60).measurement(unit=Example(), epsilon=1, delta=1e-5)) as run:
        run.step((whole_rows(10), targets(10), None))
    assert account.spent_as.epsilon <= 1  # type: ignore[attr-defined]


def test_rho_and_mu_are_priced_in_their_own_measure() -> None:
    from mosha.accounting.measures import concentrated, gaussian

    event = plan(steps=7).measurement(unit=Example(), rho=0.3).event
    assert concentrated.cost_of(event).amount <= 0.3 * (1 + 1e-12)
    event = plan(steps=7).measurement(unit=Example(), mu=0.3).event
    assert gaussian.mu(event)[0] <= 0.3 * (1 + 1e-12)
    assert gaussian_budget(mu=0.3) == 0.3


def test_events_survive_json_and_more_noise_costs_less() -> None:
    small, large = (plan().measurement(unit=Example(), mu=mu).event for mu in (0.1, 0.2))
    assert from_json(small.to_json()) == small
    assert accounting.epsilon(small, 1e-6) < accounting.epsilon(large, 1e-6)


def test_units_with_more_rows_or_replaced_ones_get_more_noise() -> None:
    descent = plan()
    one = descent.sensitivity(Example())
    assert descent.sensitivity(Row(at_most=3)) == 3 * one
    assert descent.sensitivity(Example(neighbors="replace-one")) == 2 * one  # type: ignore[arg-type]
    assert descent.sensitivity(Person("who", at_most=5)) == 5 * one


def test_a_person_with_many_examples_keeps_few() -> None:
    descent, unit = plan(steps=1), Person("who", at_most=2)
    run = descent.measurement(unit=unit, mu=0.5)
    assert run.event.parts()[0][0].sensitivity == 2 * descent.sensitivity(Example())
    rows, goals = whole_rows(50), targets(50)
    kept, _ = descent._admit_rows((rows, goals, ["ann"] * 50), unit)
    assert kept.shape[0] == 2
    with pytest.raises(DataError, match="persons"):
        descent._admit_rows((rows, goals, None), unit)


def one_step(noise_share: float = 1.0) -> Any:
    """The noise of one step on no data, in units of its standard deviation; a planted share of it, for power."""
    descent = plan(width=400, outputs=5, steps=1, learning_rate=1.0, examples=1)
    run = descent.measurement(unit=Example(), mu=0.25)
    nothing = (np.zeros((0, 400), np.int16), np.zeros((0, 5)), None)
    weights, _ = run.step(None, nothing, None, noise.SecureRandom())
    sigma = 4.0 * descent.clip_steps / SCALE
    return weights.ravel() / sigma * noise_share


def accepted(samples: Any) -> Any:
    """Whether the samples look like standard normal ones: false alarms below 1e-9 (6.2 standard errors, twice)."""
    n = samples.size
    mean, variance = samples.mean() * math.sqrt(n), (samples.var() - 1) * math.sqrt(n / 2)
    return abs(mean) < 6.2 and abs(variance) < 6.8


def test_the_noise_of_a_step_is_as_wide_as_it_is_priced() -> None:
    assert accepted(one_step())
    assert not accepted(one_step(0.7))  # 2,000 samples: a variance of 0.49 is 16 standard errors away
    assert not accepted(one_step(1.4))


def test_the_same_randomness_gives_the_same_weights() -> None:
    run = plan().measurement(unit=Example(), mu=1)
    data = (whole_rows(30), targets(30), None)
    first, second = (run.step(None, data, None, noise.SeededRandom(5))[0] for _ in range(2))
    assert np.array_equal(first, second)


def test_no_examples_are_answered() -> None:
    weights, _ = (
        plan()
        .measurement(unit=Example(), mu=1)
        .step(None, (np.zeros((0, WIDTH), np.int16), np.zeros((0, OUTPUTS)), None), None, noise.SecureRandom())
    )
    assert weights.shape == (WIDTH, OUTPUTS)
    assert np.isfinite(weights).all()


def test_a_wild_learning_rate_ends_in_finite_weights() -> None:
    run = plan(learning_rate=1e300, steps=8).measurement(unit=Example(), mu=1)
    weights, _ = run.step(None, (whole_rows(30), targets(30), None), None, noise.SecureRandom())
    assert np.isfinite(weights).all()


@pytest.mark.parametrize(
    "changed",
    [
        {"steps": 0}, {"steps": 2.5}, {"examples": 0}, {"clip": 0}, {"clip": math.nan}, {"clip": 9},
        {"momentum": 1}, {"momentum": -0.1}, {"learning_rate": math.inf}, {"loss": "hinge"}, {"average": 2},
        {"penalty": -1}, {"steps": 1 << 21}, {"width": True},
    ],
)  # fmt: skip
def test_wrong_plans_are_refused(changed: Any) -> None:
    with pytest.raises(InvalidParameter):
        plan(**changed)


@pytest.mark.parametrize(
    "budget",
    [
        {}, {"epsilon": 1}, {"delta": 1e-5}, {"epsilon": 0, "delta": 1e-5}, {"epsilon": 1, "delta": 0}, {"mu": -1},
        {"epsilon": 1, "delta": 1e-5, "mu": 1}, {"rho": math.nan}, {"mu": 1, "delta": 0.1}, {"mu": 1e-12}, {"mu": 1e12},
        {"epsilon": 1, "delta": 1e-30}, {"epsilon": math.inf, "delta": 1e-5},
    ],
)  # fmt: skip
def test_wrong_budgets_are_refused(budget: Any) -> None:
    with pytest.raises(InvalidParameter):
        plan().measurement(unit=Example(), **budget)


@pytest.mark.parametrize(
    "bounds",
    [
        {"between": (1, 0)}, {"between": (0, math.nan)}, {"between": 3}, {"between": ([0, 0], [1, 1])}, {"norm": 0},
        {"norm": math.inf}, {"between": (0, 1), "norm": -1},
    ],
)  # fmt: skip
def test_wrong_bounds_are_refused(bounds: Any) -> None:
    with pytest.raises(InvalidParameter):
        BoundedRows(WIDTH, **bounds)


def test_rows_without_bounds_are_refused() -> None:
    with pytest.raises(Unbounded, match="without a bound"):
        BoundedRows(WIDTH)


def test_labels_that_are_unknown_or_strange_count_for_nothing() -> None:
    class Strange:
        def __hash__(self) -> NoReturn:
            raise RuntimeError

    assert label_codes([1, Strange(), "1", None, 2.0, [1]], (1, 2)).tolist() == [0, -1, -1, -1, 1, -1]
    assert label_codes(np.array([2.0, math.nan, 1.0]), (1, 2)).tolist() == [1, -1, 0]
