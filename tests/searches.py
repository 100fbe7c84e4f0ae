"""Where the searches of the tests begin: at the same places in every `make test`, anywhere in `python -m fuzz laws`.

A search finds faults, not chances: what it finds in one run was there in the run before. So the test command looks at
the same places each time, and the hours of looking elsewhere belong to `make fuzz`.
"""

import os
import random
from collections.abc import Iterator

AFRESH = os.environ.get("MOSHA_SEARCH") == "afresh"


def draw_seeds(name: str) -> Iterator[int]:
    """Seeds below 2**40 for the search of this name."""
    generator = random.Random(None if AFRESH else name)
    while True:
        yield generator.randrange(2**40)
