"""Pictures of answers: one look for all of them (the extra `plot`)."""

from mosha.core.lazy import keep_public_names
from mosha.pictures.figure import begin_figure, write_footer
from mosha.pictures.grouped import draw_groups

__all__ = ["begin_figure", "draw_groups", "write_footer"]
keep_public_names(__name__)
