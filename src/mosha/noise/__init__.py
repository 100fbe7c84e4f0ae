"""Exact noise on the integers, from secure randomness.

Samplers: `discrete_laplace`, `geometric`, `discrete_gaussian`, `add_discrete_gaussian`, `scaled_discrete_gaussian`,
`box_noise`, `box_radius`; coins `bernoulli`, `bernoulli_exp`, `flips`; `uniform`, `uniform_each`; choices
`exponential_choice`, `permute_and_flip_choice`.
Each follows the distribution it names for the rational number that its parameter is, within `gap`.

Generators: `SecureRandom` (one per process: `secure()`), `KeyedRandom` for a replay, `SeededRandom` for tests.

Sharp edge: how long a call takes depends a little on what was drawn (a few samples in a hundred
need a second look). Do not let an attacker time single samples.
"""

from mosha.core.lazy import keep_public_names
from mosha.noise.box import box_noise, box_radius
from mosha.noise.coins import bernoulli, bernoulli_exp, flips
from mosha.noise.distance import GAP_PER_SAMPLE, gap
from mosha.noise.gaussian import add_discrete_gaussian, discrete_gaussian, scaled_discrete_gaussian
from mosha.noise.integers import uniform, uniform_each
from mosha.noise.laplace import discrete_laplace, geometric
from mosha.noise.parameters import LARGEST_SCALE
from mosha.noise.replay import KeyedRandom, SeededRandom
from mosha.noise.secure_random import SecureRandom, secure
from mosha.noise.selection import exponential_choice, permute_and_flip_choice

__all__ = [
    "GAP_PER_SAMPLE",
    "LARGEST_SCALE",
    "KeyedRandom",
    "SecureRandom",
    "SeededRandom",
    "add_discrete_gaussian",
    "bernoulli",
    "bernoulli_exp",
    "box_noise",
    "box_radius",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_choice",
    "flips",
    "gap",
    "geometric",
    "permute_and_flip_choice",
    "scaled_discrete_gaussian",
    "secure",
    "uniform",
    "uniform_each",
]
keep_public_names(__name__)
