"""Everything that can go wrong, in one tree: see `mosha.core.errors`."""

from mosha.core.errors import *  # noqa: F403
from mosha.core.errors import __all__  # noqa: F401
