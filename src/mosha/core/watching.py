"""Progress of long work: told where somebody watches, in a terminal or a notebook, and nowhere else."""

from __future__ import annotations

import sys

__all__ = ["is_watched", "tell_progress"]


def is_watched() -> bool:
    """Whether what is written to standard error is read by a person: in a terminal, or in the kernel of a notebook.

    Files, pipes and scheduled jobs are not watched.
    """
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    return sys.stderr.isatty() or type(running).__name__ == "ZMQInteractiveShell"


def tell_progress(text: str, *, last: bool) -> None:
    """Write a line over the one before, where somebody watches; the last one stays.

    Args:
        text: public words and numbers alone.
        last: whether the work is done.
    """
    if is_watched():
        sys.stderr.write(f"\r\x1b[2K{text}" + ("\n" if last else ""))
        sys.stderr.flush()
