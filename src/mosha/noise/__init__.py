"""Exact noise on the integers, from secure randomness.

Samplers: `discrete_laplace`, `geometric`, `discrete_gaussian`, `add_discrete_gaussian`, `scaled_discrete_gaussian`,
`box_noise`, `box_radius`; coins `bernoulli`, `bernoulli_exp`, `flips`; `uniform`, `uniform_each`; samples of units
`bernoulli_places`, `choose_places`; choices `exponential_choice`, `exponential_choices`,
`permute_and_flip_choice`, `permute_and_flip_choices`.
Each follows the distribution it names for the rational number that its parameter is, within `gap`.

Generators: `SecureRandom` (one per process: `secure()`), `KeyedRandom` for a replay, `SeededRandom` for tests.

Sharp edge: how long a call takes depends a little on what was drawn (a few samples in a hundred
need a second look). Do not let an attacker time single samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.noise.box import box_noise as box_noise
    from mosha.noise.box import box_radius as box_radius
    from mosha.noise.coins import bernoulli as bernoulli
    from mosha.noise.coins import bernoulli_exp as bernoulli_exp
    from mosha.noise.coins import flips as flips
    from mosha.noise.distance import GAP_PER_SAMPLE as GAP_PER_SAMPLE
    from mosha.noise.distance import gap as gap
    from mosha.noise.gaussian import add_discrete_gaussian as add_discrete_gaussian
    from mosha.noise.gaussian import discrete_gaussian as discrete_gaussian
    from mosha.noise.gaussian import scaled_discrete_gaussian as scaled_discrete_gaussian
    from mosha.noise.generators.replay import KeyedRandom as KeyedRandom
    from mosha.noise.generators.replay import SeededRandom as SeededRandom
    from mosha.noise.generators.secure_random import SecureRandom as SecureRandom
    from mosha.noise.generators.secure_random import secure as secure
    from mosha.noise.integers import uniform as uniform
    from mosha.noise.integers import uniform_each as uniform_each
    from mosha.noise.laplace import discrete_laplace as discrete_laplace
    from mosha.noise.laplace import geometric as geometric
    from mosha.noise.parameters import LARGEST_SCALE as LARGEST_SCALE
    from mosha.noise.places import bernoulli_places as bernoulli_places
    from mosha.noise.places import choose_places as choose_places
    from mosha.noise.selection import exponential_choice as exponential_choice
    from mosha.noise.selection import exponential_choices as exponential_choices
    from mosha.noise.selection import permute_and_flip_choice as permute_and_flip_choice
    from mosha.noise.selection import permute_and_flip_choices as permute_and_flip_choices

_NAMES = {
    "GAP_PER_SAMPLE": "distance",
    "KeyedRandom": "generators.replay",
    "LARGEST_SCALE": "parameters",
    "SecureRandom": "generators.secure_random",
    "SeededRandom": "generators.replay",
    "add_discrete_gaussian": "gaussian",
    "bernoulli": "coins",
    "bernoulli_exp": "coins",
    "bernoulli_places": "places",
    "box_noise": "box",
    "box_radius": "box",
    "choose_places": "places",
    "discrete_gaussian": "gaussian",
    "discrete_laplace": "laplace",
    "exponential_choice": "selection",
    "exponential_choices": "selection",
    "flips": "coins",
    "gap": "distance",
    "geometric": "laplace",
    "permute_and_flip_choice": "selection",
    "permute_and_flip_choices": "selection",
    "scaled_discrete_gaussian": "gaussian",
    "secure": "generators.secure_random",
    "uniform": "integers",
    "uniform_each": "integers",
}
__all__ = [*sorted(_NAMES)]  # noqa: PLE0604
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES)
