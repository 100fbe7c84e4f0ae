"""What is promised: four kinds of guarantee, ordered by what implies what: see `mosha.core.guarantee`."""

from mosha.core.guarantee import *  # noqa: F403
from mosha.core.guarantee import __all__  # noqa: F401
