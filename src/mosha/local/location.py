"""Where somebody is, to within a circle: geo-indistinguishability on the sphere, meters in and meters out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from mosha.core.canvas import draw_as_asked
from mosha.core.errors import InvalidParameter
from mosha.core.events import Pure
from mosha.core.language import Language, say
from mosha.core.measurement import Measurement, Rng
from mosha.core.names.calls import explain_wrong_calls, renamed_argument
from mosha.core.names.deprecation import warn_of_old_name
from mosha.core.number import positive, positive_integer, real, strict_probability
from mosha.core.unit import Own
from mosha.local.protocols.device import DeviceRandom
from mosha.local.protocols.planar import STEPS, planar_steps, radius_quantile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["EARTH", "Location", "check_place", "distance"]

EARTH = 6_371_008.8  # mean radius in meters
Point = tuple[float, float]
_MOST_REPORTS = 1_000_000


@explain_wrong_calls
def distance(one: Point, other: Point) -> float:
    """How far `one` place (latitude, longitude) is from the `other` on the sphere, in meters.

    >>> round(distance((48.8566, 2.3522), (51.5074, -0.1278)) / 1000)
    344
    """
    (a, b), (c, d) = ((math.radians(x), math.radians(y)) for x, y in (check_place(one), check_place(other)))
    half = math.sin((c - a) / 2) ** 2 + math.cos(a) * math.cos(c) * math.sin((d - b) / 2) ** 2
    return 2 * EARTH * math.asin(min(1.0, math.sqrt(half)))


@renamed_argument(centre="center", within="radius")
@dataclass(frozen=True)
class Location:
    """Reports a place within `radius` meters of a public `center`, with planar Laplace noise.

    Guarantee:
        Two places of the region at distance d (on the sphere) can be told apart by no more than epsilon (d + 0.012 /
        epsilon): any report is at most this many nats likelier under one than under the other. Proof: `location.md`.

    Units:
        `epsilon` is per meter; `Location.with_level` derives it from a distance and a factor. Places are (latitude,
        longitude) in degrees.

    Args:
        center: a public place, the same for everybody; not the person's own.
        radius: how far from it places may lie, in meters; public. A place outside is moved to the edge.
        epsilon: per meter.

    >>> paris = Location(center=(48.8566, 2.3522), radius=20_000, epsilon=math.log(4) / 200)
    >>> round(paris.error_radius(0.95))
    687
    """

    center: Point
    radius: float
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", check_place(self.center))
        object.__setattr__(self, "radius", positive("radius", self.radius))
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        if abs(self.center[0]) + math.degrees(self.radius / EARTH) > 85:
            raise InvalidParameter("local.near_a_pole", parameter="center")
        if not 1e-9 < self.epsilon < 1e3:
            raise InvalidParameter("local.epsilon_per_meter", parameter="epsilon")

    @staticmethod
    def with_level(*, center: Point, radius: float, distance: float, level: float) -> Location:
        """A location whose reports are at most `level` times likelier from one place than from another nearby.

        Args:
            center: a public place, the same for everybody.
            radius: how far from it places may lie, in meters.
            distance: how far apart two places may be for the level to hold, in meters.
            level: the factor (4: "four times likelier").

        >>> Location.with_level(center=(0.0, 0.0), radius=5000, distance=200, level=4).epsilon == math.log(4) / 200
        True
        """
        factor = real("level", level)
        if factor <= 1:
            raise InvalidParameter("local.level_too_low", parameter="level")
        return Location(center, radius, math.log(factor) / positive("distance", distance))

    @staticmethod
    def _with_old_arguments(*, centre: Point, within: float, radius: float, level: float) -> Location:
        """The old `with_level`, whose `centre`, `within`, `radius`, `level` are now center, radius, distance, level."""
        warn_of_old_name("Location.hidden", "Location.with_level(center=..., radius=..., distance=..., level=...)")
        return Location.with_level(center=centre, radius=within, distance=radius, level=level)

    hidden = _with_old_arguments  # the old name of `with_level`

    @property
    def stretch(self) -> float:
        """By how much the plane on which noise is added stretches distances at most."""
        latitude = abs(math.radians(self.center[0]))
        return math.cos(latitude) / math.cos(latitude + self.radius / EARTH) * (1 + 1e-9)

    @property
    def step(self) -> float:
        """The distance of two points of the grid, in meters: 1/256 of one over epsilon."""
        return self.stretch / (self.epsilon * STEPS)

    def error_radius(self, confidence: float = 0.95) -> float:
        """How far a report is from the place at most, with probability `confidence`, in meters."""
        return radius_quantile(strict_probability("confidence", confidence)) * self.stretch / self.epsilon

    @property
    def measurement(self) -> Measurement:
        """One report for the device's account, which hides every place of the region: the price of its diameter."""
        return Measurement(
            unit=Own(),
            event=Pure(self.price(1)),
            step=lambda state, data, ask, rng: (self._report(data, rng), state),  # noqa: ARG005
            error=lambda confidence, answer: self.error_radius(confidence),  # noqa: ARG005
            name="location",
            question=repr((self.center, self.radius, self.epsilon)),
        )

    def price(self, reports: int) -> float:
        """The most that this many reports cost, as epsilon between any two places of the region.

        Args:
            reports: how many reports a device makes.
        """
        each = self.epsilon * 2 * self.radius + 2 * math.sqrt(2) / STEPS
        count = positive_integer("reports", reports)
        if count > _MOST_REPORTS:
            raise InvalidParameter("local.too_many_reports", parameter="reports", most=_MOST_REPORTS)
        return count * each * (1 + 1e-12)

    def report(self, place: Point) -> Point:
        """The `place` with noise, rounded to the grid: this needs the standard library alone.

        A place outside the region is moved to its edge first, on the way to the center.
        """
        return self._report(place, DeviceRandom())

    def _report(self, place: Point, rng: Rng) -> Point:
        x, y = self._cell(self._move_inside(check_place(place)))
        i, j = planar_steps(rng)
        return self._place_of(x + i, y + j)

    def trajectory(self, places: Sequence[Point], *, at_most: int) -> list[Point]:
        """`at_most` reports of one trajectory, at this epsilon for all together: each gets its share of it.

        Reports of one trajectory can be averaged, so their epsilons add up. Its length is private: longer ones are
        cut, shorter ones stay at their last place (an empty one at the center), so there are always `at_most` reports.

        Args:
            places: where the device was, in order.
            at_most: how many reports there are, whatever the length; public.

        >>> len(Location((0.0, 0.0), 5000, 0.05).trajectory([(0.0, 0.0)] * 3, at_most=10))
        10
        """
        count = positive_integer("at_most", at_most)
        if count > _MOST_REPORTS or not isinstance(places, Iterable):
            raise InvalidParameter("local.not_a_way", parameter="places", most=_MOST_REPORTS)
        share = Location(self.center, self.radius, self.epsilon / count)
        way = [check_place(place) for place in places][:count] or [self.center]
        way += [way[-1]] * (count - len(way))
        return [share.report(place) for place in way]

    def plot(
        self, reported: Point, *, ax: object | None = None, title: str | None = None, unit: str | None = None,
        lang: Language | None = None,
    ) -> Figure:  # fmt: skip
        """What is hidden: circles around a report that hold the place with 50, 90 and 99% (needs the extra `plot`).

        Args:
            reported: the place that was reported.
            ax: axes of matplotlib to draw on.
            title: what stands above.
            unit: how both axes are counted, behind their names ("degrees").
            lang: "en" or "zh"; the chosen language where it is left out.
        """
        from mosha.pictures.curves import draw_with
        from mosha.pictures.figure import INK, LINE

        latitude, longitude = check_place(reported)
        turn = [2 * math.pi * k / 120 for k in range(121)]
        up = math.degrees(1 / EARTH)
        across = up / math.cos(math.radians(latitude))

        def paint(axes: Axes) -> None:
            for share, alpha in ((0.99, 0.15), (0.9, 0.25), (0.5, 0.4)):
                r = self.error_radius(share)
                east = [longitude + r * across * math.cos(t) for t in turn]
                north = [latitude + r * up * math.sin(t) for t in turn]
                axes.fill(east, north, color=LINE, alpha=alpha, label=f"{share:.0%}: {r:,.0f} m")
            here = say("local.picture_reported")
            axes.plot([longitude], [latitude], "+", color=INK, markersize=12, label=here)
            axes.set_aspect(across / up if across < up else 1 / math.cos(math.radians(latitude)))
            axes.legend(frameon=False)

        def draw() -> Figure:
            words = {name: say(f"local.picture_{name}") for name in ("somewhere", "longitude", "latitude")}
            counted = "" if unit is None else f" ({unit})"
            names: Any = {"across": words["longitude"] + counted, "up": words["latitude"] + counted}
            return draw_with(paint, title=words["somewhere"], size=(5, 5), **names)

        def describe() -> str:
            meters = (math.log(2) - 0.012) / self.epsilon
            return say("local.picture_place", meters=meters, date=datetime.now(UTC).date().isoformat())

        return cast("Figure", draw_as_asked(draw, ax=ax, title=title, lang=lang, footer=describe))

    def _move_inside(self, place: Point) -> Point:
        """The place itself, or where the way to it from the center leaves the region."""
        away = distance(self.center, place)
        if away <= self.radius:
            return place
        return destination(self.center, bearing(self.center, place), self.radius)

    def _cell(self, place: Point) -> tuple[int, int]:
        """The nearest point of the grid, in the plane of the region."""
        east = (place[1] - self.center[1] + 180) % 360 - 180
        x = EARTH * math.cos(math.radians(self.center[0])) * math.radians(east)
        y = EARTH * math.radians(place[0] - self.center[0])
        return round(x / self.step), round(y / self.step)

    def _place_of(self, i: int, j: int) -> Point:
        latitude = self.center[0] + math.degrees(j * self.step / EARTH)
        east = math.degrees(i * self.step / EARTH) / math.cos(math.radians(self.center[0]))
        return max(-90.0, min(90.0, latitude)), (self.center[1] + east + 180) % 360 - 180


def bearing(one: Point, other: Point) -> float:
    """The direction from one place to another, in radians from north."""
    a, c = math.radians(one[0]), math.radians(other[0])
    east = math.radians(other[1] - one[1])
    north = math.cos(a) * math.sin(c) - math.sin(a) * math.cos(c) * math.cos(east)
    return math.atan2(math.sin(east) * math.cos(c), north)


def destination(start: Point, direction: float, meters: float) -> Point:
    """The place this many meters away in this direction."""
    a, way = math.radians(start[0]), meters / EARTH
    c = math.asin(math.sin(a) * math.cos(way) + math.cos(a) * math.sin(way) * math.cos(direction))
    east = math.atan2(math.sin(direction) * math.sin(way) * math.cos(a), math.cos(way) - math.sin(a) * math.sin(c))
    return math.degrees(c), (start[1] + math.degrees(east) + 180) % 360 - 180


def check_place(place: Any) -> Point:
    """A latitude and a longitude, or a refusal that does not tell them."""
    try:
        latitude, longitude = (math.nan if isinstance(x, str | bytes | bool) else float(x) for x in place)
    except (TypeError, ValueError, OverflowError):
        latitude = longitude = math.nan
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        raise InvalidParameter("local.not_a_place", parameter="place")
    return latitude, longitude
