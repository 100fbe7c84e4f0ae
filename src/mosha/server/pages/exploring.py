"""Explore: knobs, pictures and tables without data and without signing in. The numbers are lessons of the API."""

from __future__ import annotations

from starlette.responses import Response

from mosha.server.api.lessons import DELTA, KNOBS, LESSONS
from mosha.server.pages.site import Data, Visit

__all__ = ["ROUTES"]

_SLOW = ("models", "training")  # a plan is searched: that may take a second, and must not keep the others waiting
_PARTS = ("quick", *_SLOW)


def show(visit: Visit) -> Response:
    """All lessons; or one part of them, where the page asks for what is quick first and for the rest afterwards."""
    places = {}
    for name, (values, first) in KNOBS.items():
        said = visit.read_field(name)
        places[name] = min(int(said), len(values) - 1) if said.isdecimal() and len(said) < 5 else first
    chosen = {name: KNOBS[name][0][place] for name, place in places.items()}
    wanted = visit.read_field("part")
    parts = (wanted,) if wanted in _PARTS else _PARTS
    found: Data = {}
    for name, knobs in LESSONS.items():
        if (name if name in _SLOW else "quick") in parts:
            query = {knob: chosen[knob] for knob in knobs}
            found[name] = visit.do("readLesson", path={"lesson": name}, query=query)["numbers"]
    last = {name: len(values) - 1 for name, (values, _) in KNOBS.items()}
    return visit.render("explore.html", places=places, chosen=chosen, last=last, delta=DELTA, parts=parts, **found)


ROUTES = (("GET", "/explore", show),)
