"""What things cost: the events that the ledger stores and the accountants price."""

from mosha.core.events import *  # noqa: F403
from mosha.core.events import __all__  # noqa: F401
