"""Private before it leaves the device: surveys, their reports and their collector; shuffling; places.

    Frequency, Mean, Distribution, Several     what is asked: one declaration for device and collector
    HeavyHitters                               which texts are popular, where nobody can list them
    best                                       which way of reporting has the least error
    Collector, Batch                           counting reports, on many machines
    Repeated, Device                           the same question again and again, from the device's own account
    Shuffler, compare                          reports without senders; what trust is worth
    Location, remap                            where somebody is, to within a circle
    DeviceRandom                               the device's randomness

The device's path, from the declaration to the report, needs the standard library alone.

>>> survey = Frequency(["tea", "coffee", "water"], epsilon=2)
>>> reports = [survey.report("tea") for _ in range(200)]
>>> shares = survey.estimate(reports)
>>> shares.share("tea") > shares.share("water")
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.local.collect.consistency import consistent as consistent
    from mosha.local.collect.hitters import Hitters as Hitters
    from mosha.local.collector import Collector as Collector
    from mosha.local.comparison import Comparison as Comparison
    from mosha.local.comparison import compare as compare
    from mosha.local.distribution import Density as Density
    from mosha.local.distribution import Distribution as Distribution
    from mosha.local.estimate import Interval as Interval
    from mosha.local.estimate import Shares as Shares
    from mosha.local.estimate import poisoning as poisoning
    from mosha.local.frequency import Frequency as Frequency
    from mosha.local.heavy_hitters import HeavyHitters as HeavyHitters
    from mosha.local.location import Location as Location
    from mosha.local.location import distance as distance
    from mosha.local.mean import Average as Average
    from mosha.local.mean import Mean as Mean
    from mosha.local.protocols.choice import Choice as Choice
    from mosha.local.protocols.choice import best as best
    from mosha.local.protocols.device import DeviceRandom as DeviceRandom
    from mosha.local.remapping import remap as remap
    from mosha.local.repeated import Device as Device
    from mosha.local.repeated import Repeated as Repeated
    from mosha.local.several import Several as Several
    from mosha.local.shuffler import Shuffler as Shuffler
    from mosha.local.shuffler import shuffled_event as shuffled_event
    from mosha.local.survey import Survey as Survey
    from mosha.local.wire import Batch as Batch

_NAMES = {
    "Average": "mean",
    "Batch": "wire",
    "Choice": "protocols.choice",
    "Collector": "collector",
    "Comparison": "comparison",
    "Density": "distribution",
    "Device": "repeated",
    "DeviceRandom": "protocols.device",
    "Distribution": "distribution",
    "Frequency": "frequency",
    "HeavyHitters": "heavy_hitters",
    "Hitters": "collect.hitters",
    "Interval": "estimate",
    "Location": "location",
    "Mean": "mean",
    "Repeated": "repeated",
    "Several": "several",
    "Shares": "estimate",
    "Shuffler": "shuffler",
    "Survey": "survey",
    "best": "protocols.choice",
    "compare": "comparison",
    "consistent": "collect.consistency",
    "distance": "location",
    "poisoning": "estimate",
    "remap": "remapping",
    "shuffled_event": "shuffler",
}
__all__ = sorted(_NAMES)  # noqa: PLE0605
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES)
