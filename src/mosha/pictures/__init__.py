"""Pictures of answers: one look for all of them (the extra `plot`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.pictures.curves import draw_band as draw_band
    from mosha.pictures.curves import draw_degrees as draw_degrees
    from mosha.pictures.curves import draw_intervals as draw_intervals
    from mosha.pictures.curves import draw_steps as draw_steps
    from mosha.pictures.curves import draw_tradeoff as draw_tradeoff
    from mosha.pictures.curves import draw_training as draw_training
    from mosha.pictures.curves import draw_tree as draw_tree
    from mosha.pictures.dark import darken as darken
    from mosha.pictures.figure import begin_figure as begin_figure
    from mosha.pictures.figure import write_footer as write_footer
    from mosha.pictures.grouped import draw_groups as draw_groups

_NAMES = {
    "begin_figure": "figure",
    "darken": "dark",
    "draw_band": "curves",
    "draw_degrees": "curves",
    "draw_groups": "grouped",
    "draw_intervals": "curves",
    "draw_steps": "curves",
    "draw_tradeoff": "curves",
    "draw_training": "curves",
    "draw_tree": "curves",
    "write_footer": "figure",
}
__all__ = [
    "begin_figure",
    "darken",
    "draw_band",
    "draw_degrees",
    "draw_groups",
    "draw_intervals",
    "draw_steps",
    "draw_tradeoff",
    "draw_training",
    "draw_tree",
    "write_footer",
]
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES)
