"""Places: the noise has its law, distances are those of the sphere, nothing is told of a place that is refused."""

import math
from typing import Any

import numpy as np
import pytest

from mosha.core.errors import InvalidParameter
from mosha.local import DeviceRandom, Location, distance, remap
from mosha.local.location import bearing, destination
from mosha.local.protocols.planar import STEPS, _draw_on_ring, _geometric, _is_kept, planar_steps, radius_quantile
from tests.local import golden

PARIS = (48.8566, 2.3522)
DEVIATIONS = 7.0


def test_golden_radius_quantiles() -> None:
    for parameters, expected in golden.rows("geo", "planar Laplace radius quantile"):
        assert radius_quantile(parameters["p"]) == pytest.approx(expected, rel=1e-9)
    for share, expected in ((0.5, 1.678), (0.9, 3.890), (0.95, 4.744), (0.99, 6.638)):
        assert radius_quantile(share) == pytest.approx(expected, abs=5e-4)


@pytest.fixture(scope="module")
def radii() -> Any:
    return np.array([math.hypot(*planar_steps(DeviceRandom())) / STEPS for _ in range(8000)])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_the_noise_has_the_radius_of_planar_laplace(radii: Any, share: float) -> None:
    """Seven deviations of a binomial count: false alarm 3e-12; the grid moves the share by less than 0.004."""
    below = np.count_nonzero(radii <= radius_quantile(share)) / len(radii)
    assert abs(below - share) < DEVIATIONS * math.sqrt(share * (1 - share) / len(radii)) + 0.004


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_the_test_of_radii_can_fail(radii: Any, factor: float) -> None:
    """The share is off by 20 deviations and more, where 7 and the grid are allowed."""
    below = np.count_nonzero(factor * radii <= radius_quantile(0.5)) / len(radii)
    assert abs(below - 0.5) > DEVIATIONS * math.sqrt(0.25 / len(radii)) + 0.004


def test_rings_hold_each_step_once() -> None:
    for ring in (0, 1, 2, 5):

        class Fixed:
            secure = True

        steps = set()
        for place in range(max(1, 8 * ring)):
            from mosha.local.protocols import planar

            original = planar.draw_below  # type: ignore[attr-defined]
            planar.draw_below = lambda bound, rng, place=place: place  # type: ignore[attr-defined, misc]
            try:
                steps.add(_draw_on_ring(ring, Fixed()))  # type: ignore[arg-type]
            finally:
                planar.draw_below = original  # type: ignore[attr-defined]
        assert steps == {
            (i, j) for i in range(-ring, ring + 1) for j in range(-ring, ring + 1) if max(abs(i), abs(j)) == ring
        }


def test_geometric_steps_and_kept_steps_have_their_law() -> None:
    drawn = np.array([_geometric(DeviceRandom()) for _ in range(4000)])
    for point in (50, 256, 700):
        share = math.exp(-point / STEPS)
        assert abs(np.mean(drawn >= point) - share) < DEVIATIONS * math.sqrt(share * (1 - share) / len(drawn))
    kept = np.mean([_is_kept(2 * 300 * 300, 300, DeviceRandom()) for _ in range(3000)])
    share = math.exp(-300 * (math.sqrt(2) - 1) / STEPS)
    assert abs(kept - share) < DEVIATIONS * math.sqrt(share * (1 - share) / 3000)


def test_distances_in_the_plane_stretch_no_more_than_promised() -> None:
    rng = np.random.default_rng()
    for centre, within in ((PARIS, 20_000.0), ((0.0, 179.99), 50_000.0), ((-60.0, 10.0), 300_000.0)):
        place = Location(centre, within, 0.01)
        for _ in range(200):
            one, other = (
                destination(centre, a, r) for a, r in zip(rng.uniform(0, 7, 2), rng.uniform(0, within, 2), strict=True)
            )
            (a, b), (c, d) = place._cell(one), place._cell(other)
            plane = math.hypot(a - c, b - d) * place.step
            assert plane * place.epsilon / place.stretch <= place.epsilon * distance(one, other) + 0.012


def test_reports_are_as_far_away_as_announced() -> None:
    place = Location.with_level(center=PARIS, radius=20_000, distance=200, level=4)
    assert place.epsilon == pytest.approx(math.log(4) / 200)
    away = np.array([distance(PARIS, place.report(PARIS)) for _ in range(600)])
    assert abs(np.mean(away <= place.error_radius(0.9)) - 0.9) < DEVIATIONS * math.sqrt(0.09 / 600) + 0.005
    assert place.error_radius(0.95) == pytest.approx(684, rel=0.01)


def test_a_place_outside_is_moved_to_the_edge() -> None:
    place = Location(PARIS, 1000.0, 10.0)
    edge = place._move_inside((48.0, 3.0))
    assert distance(PARIS, edge) == pytest.approx(1000, rel=1e-6)
    assert bearing(PARIS, edge) == pytest.approx(bearing(PARIS, (48.0, 3.0)), abs=1e-6)
    assert distance(edge, place.report((48.0, 3.0))) < 10


def test_reports_cross_the_date_line() -> None:
    place = Location((0.0, 179.999), 10_000.0, 0.001)
    for _ in range(20):
        latitude, longitude = place.report((0.0, -179.999))
        assert -180 <= longitude <= 180
        assert distance((latitude, longitude), (0.0, 180.0)) < 60_000


def test_a_trajectory_shares_its_epsilon() -> None:
    place = Location(PARIS, 20_000.0, 0.05)
    assert len(place.trajectory([PARIS] * 5, at_most=3)) == 3
    away = np.mean([distance(PARIS, p) for p in place.trajectory([PARIS] * 60, at_most=60)])
    assert away == pytest.approx(2 * 60 / 0.05, rel=0.75)
    assert place.price(10) == pytest.approx(10 * place.price(1))
    assert place.measurement.event.epsilon >= 0.05 * 40_000  # type: ignore[attr-defined]


def test_a_prior_brings_reports_closer_to_the_truth() -> None:
    """Two towns: with the map, nearly every report is put back into the right one."""
    place = Location((0.0, 0.0), 10_000.0, 0.002)
    cells = [(0.0, x / 100) for x in range(-9, 10)]
    prior = [1.0 if x in (-4, 4) else 0.0 for x in range(-9, 10)]
    truth, plain, mapped = (0.0, 0.04), [], []
    for _ in range(60):
        reported = place.report(truth)
        plain.append(distance(truth, reported))
        mapped.append(distance(truth, remap(place, reported, cells=cells, prior=prior)))
    assert np.mean(mapped) < np.mean(plain)
    with pytest.raises(InvalidParameter):
        remap(place, truth, cells=cells, prior=[0.0] * 19)
    with pytest.raises(InvalidParameter):
        remap(place, truth, cells=cells, prior=[1.0])


@pytest.mark.parametrize("place", [(91, 0), (0, 181), (math.nan, 0), "here", None, (1, 2, 3), ("a", "b")])
def test_what_is_no_place_is_refused_without_telling_it(place: Any) -> None:
    city = Location(PARIS, 1000.0, 0.01)
    with pytest.raises(InvalidParameter, match="nothing was drawn"):
        city.report(place)


@pytest.mark.parametrize(
    "arguments",
    [
        (PARIS, 0, 1),
        (PARIS, -5, 1),
        (PARIS, 100, 0),
        (PARIS, 100, math.nan),
        ((89.0, 0), 100, 1),
        (PARIS, 9e6, 1),
        (PARIS, 10, 1e9),
    ],
)
def test_regions_that_mean_nothing_are_refused(arguments: Any) -> None:
    with pytest.raises(InvalidParameter):
        Location(*arguments)


def test_what_is_hidden_can_be_drawn() -> None:
    pytest.importorskip("matplotlib")
    Location(PARIS, 1000.0, 0.01).plot(PARIS)


@pytest.mark.parametrize("ring", [1, 300, 5000])
def test_a_step_whose_word_ties_with_its_chance_is_decided_by_more_digits(ring: int) -> None:
    """The first 64 bits are those of the chance itself, or one unit beside it: far inside the margin of floats."""
    from decimal import Decimal, localcontext

    with localcontext(prec=80):
        chance = (-(Decimal(2 * ring * ring).sqrt() - ring) / STEPS).exp()
        word = int(chance * 2**64)

    class Scripted:
        secure = True

        def __init__(self, first: Any, rest: Any) -> None:
            self.words, self.rest = iter([first]), rest

        def bytes(self, n: Any) -> Any:
            return next(self.words, self.rest).to_bytes(n, "little")

    for first, rest, expected in [
        (word - 1, 2**64 - 1, True),
        (word, 0, True),
        (word, 2**64 - 1, False),
        (word + 1, 0, False),
    ]:
        assert _is_kept(2 * ring * ring, ring, Scripted(first, rest)) is expected
