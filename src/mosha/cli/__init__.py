"""The command `mosha`.

    0   done
    1   a refusal or an error of Mosha, told in one line
    2   wrong usage
    3   a verification found something wrong

With `--json` standard output holds one JSON document, for a result and for an error alike.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence

from mosha.core.names.lazy import keep_public_names

__all__ = ["main"]
keep_public_names(__name__)

_OBJECTS_BEFORE_COLLECTION = 200_000
"""A command makes some 120,000 objects while its modules are loaded, and hardly one of them is garbage: looking through
them again and again took a fifteenth of the time of a first answer."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (those of the process by default) and return its exit code."""
    if arguments is None:  # the process is ours
        gc.set_threshold(_OBJECTS_BEFORE_COLLECTION, *gc.get_threshold()[1:])
    from mosha.cli.application import run  # noqa: PLC0415  (nothing is loaded before it is needed)

    return run(arguments)
