"""Pictures of answers: one look for all of them (the extra `plot`)."""

from mosha.core.names.lazy import keep_public_names
from mosha.pictures.curves import (
    draw_band,
    draw_degrees,
    draw_intervals,
    draw_steps,
    draw_tradeoff,
    draw_training,
    draw_tree,
)
from mosha.pictures.dark import darken
from mosha.pictures.figure import begin_figure, write_footer
from mosha.pictures.grouped import draw_groups

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
keep_public_names(__name__)
