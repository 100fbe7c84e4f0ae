"""The lessons, as plain data for tables and pictures."""

from __future__ import annotations

import math
from typing import Any

from mosha import accounting
from mosha.accounting import advanced, renyi, tradeoff
from mosha.core.events import Gaussian, Laplace
from mosha.core.guarantee import Pure
from mosha.core.number import non_negative, positive, positive_integer, strict_probability
from mosha.local import best, compare

__all__ = ["compare_models", "compare_noise", "compose_questions", "explain_epsilon"]

_RATES = tuple(place / 50 for place in range(51))


def explain_epsilon(*, epsilon: float, prior: float) -> dict[str, Any]:
    """What an attacker can make of all answers at most, whatever they know besides.

    `prior` is how likely the attacker thought it before, as a probability; all answers together cost `epsilon`.

    Guarantee:
        `highest` is prior * e^epsilon / (1 - prior + prior * e^epsilon): epsilon-differential privacy bounds the
        ratio of the likelihoods of any answer with and without a person by e^epsilon, and Bayes' rule multiplies the
        odds by that ratio.

    >>> found = explain_epsilon(epsilon=1.0, prior=0.01)
    >>> round(found["factor"], 3), round(found["highest"], 4)
    (2.718, 0.0267)
    """
    epsilon, prior = non_negative("epsilon", epsilon), strict_probability("prior", prior)
    factor, curve = math.exp(epsilon), tradeoff.tradeoff(Pure(epsilon))
    return {
        "epsilon": epsilon,
        "prior": prior,
        "factor": factor,
        "highest": prior * factor / (1 - prior + prior * factor),
        "lowest": prior / factor / (1 - prior + prior / factor),
        "advantage": curve.advantage(),
        "attacks": [(rate, curve.true_positive_rate(rate)) for rate in _RATES],
    }


def compare_noise(*, epsilon: float, delta: float) -> dict[str, Any]:
    """A count of people with the noise of several mechanisms: the half-width that holds 95 times out of 100.

    Each costs `epsilon`; Gaussian noise has `delta` besides.

    Units:
        People. Randomized response is for 10,000 people who answer yes or no; exponential noise picks one of ten
        candidates, and `gap` is by how many people the best must lead to be picked 95 times out of 100.

    >>> found = compare_noise(epsilon=1.0, delta=1e-6)
    >>> round(found["laplace"]["bar"], 2), round(found["gaussian"]["bar"], 2), round(found["exponential"]["gap"], 1)
    (3.0, 8.28, 10.3)
    """
    epsilon, delta = positive("epsilon", epsilon), strict_probability("delta", delta)
    sigma = accounting.calibrate(Gaussian, epsilon=epsilon, delta=delta)
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    local = math.sqrt(10_000 * best(2, epsilon).protocol.variance)
    return {
        "laplace": {"scale": 1 / epsilon, "deviation": math.sqrt(2) / epsilon, "bar": math.log(20) / epsilon},
        "gaussian": {"scale": sigma, "deviation": sigma, "bar": 1.959963984540054 * sigma},
        "exponential": {"gap": 2 / epsilon * math.log(9 * 19)},
        "response": {"truth": truth, "deviation": local, "bar": 1.959963984540054 * local},
        "curves": {
            "laplace": [(x, epsilon / 2 * math.exp(-epsilon * abs(x))) for x in _span(sigma)],
            "gaussian": [
                (x, math.exp(-x * x / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))) for x in _span(sigma)
            ],
        },
    }


def _span(sigma: float) -> list[float]:
    return [sigma * place / 20 for place in range(-60, 61)]


def compose_questions(*, epsilon: float, delta: float, most: int) -> dict[str, Any]:
    """What a growing number of questions costs together: by addition, by two theorems, and tightly.

    Each question costs `epsilon`; totals are at `delta`, for up to `most` questions.

    >>> found = compose_questions(epsilon=0.1, delta=1e-6, most=100)
    >>> [round(found["lines"][name][-1][1], 2) for name in ("basic", "advanced", "renyi", "tight")]
    [10.0, 5.76, 4.98, 4.69]
    """
    epsilon, delta = positive("epsilon", epsilon), strict_probability("delta", delta)
    most = positive_integer("most", most)
    counts = sorted({max(1, round(most ** (place / 12))) for place in range(13)})
    one = Laplace(1 / epsilon)
    return {
        "epsilon": epsilon,
        "counts": counts,
        "lines": {
            "basic": [(count, epsilon * count) for count in counts],
            "advanced": [(count, advanced.kairouz_oh_viswanath([(epsilon, count)], delta)) for count in counts],
            "renyi": [(count, renyi.epsilon(one * count, delta)) for count in counts],
            "tight": [(count, accounting.epsilon(one * count, delta)) for count in counts],
        },
    }


def compare_models(*, population: int, size: int, epsilon: float, delta: float) -> list[dict[str, Any]]:
    """One histogram where the curator is trusted, where a shuffler is, and where nobody is: the error of one count.

    `population` people answer with one of `size` values each, at `epsilon` and, where there is a shuffler, `delta`.

    >>> len(compare_models(population=1_000, size=4, epsilon=1, delta=1e-6))
    3
    """
    return compare(population, size, epsilon, delta=delta).table()
