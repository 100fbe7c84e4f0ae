"""The command `mosha`.

    0   done
    1   a refusal or an error of Mosha, told in one line
    2   wrong usage
    3   a verification found something wrong

With `--json` standard output holds one JSON document, for a result and for an error alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from mosha.core.names.lazy import keep_public_names

__all__ = ["main"]
keep_public_names(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (those of the process by default) and return its exit code."""
    from mosha.cli.application import run  # noqa: PLC0415  (nothing is loaded before it is needed)

    return run(arguments)
