"""Freed memory stays with the process between steps, instead of going back to the system and being asked for again.

A private step makes and frees more large tensors than a plain one. The C library's allocator hands the top of its
heap back as soon as enough of it is free, and every page is then cleared and mapped anew in the next step: on
small convolutional networks this costs more than all of clipping and noise.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import lru_cache

__all__ = ["keep_freed_memory"]

TRIM, MAPPED = -1, -3  # what `mallopt` of the GNU C library calls M_TRIM_THRESHOLD and M_MMAP_THRESHOLD
KEPT = 1 << 29
LARGEST = 1 << 26


@lru_cache(maxsize=1)
def keep_freed_memory() -> bool:
    """Ask the GNU C library to keep up to 512 MiB of freed memory; says whether it was asked. Once for a process.

    Whoever has set the allocator's own variables is left alone, and so is every other C library.
    """
    own = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)
    if own or not sys.platform.startswith("linux"):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    return bool(set_option(TRIM, KEPT)) and bool(set_option(MAPPED, LARGEST))
