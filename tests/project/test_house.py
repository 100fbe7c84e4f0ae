"""The figures of the house get no worse: types, names, errors, imports."""

from typing import Any

import pytest

from tests.house import figures, imports, public, source


def test_nothing_gets_worse() -> None:
    """Any in at most 5% of the argument annotations, no participle for a name, no error without a code.

    A folder that is not there yet has its bar in tests/house/bars.json, which goes down only
    (`python -m tests.house --save`).
    """
    assert figures.worse(figures.by_folder(), figures.of_the_whole(), figures.bars()) == []


GOOD = {figure: {"tables": goal} for figure, goal in figures.GOALS.items()}
BAD = {figure: {"tables": goal + 1} for figure, goal in figures.GOALS.items()}
WHOLE = dict.fromkeys(figures.GOALS, 10)
NO_BARS: Any = {figure: {} for figure in figures.GOALS} | {"in all": WHOLE}


def test_a_folder_that_leaves_the_goal_is_found() -> None:
    assert figures.worse(GOOD, WHOLE, NO_BARS) == []
    assert len(figures.worse(BAD, WHOLE, NO_BARS)) == len(figures.GOALS)


def test_a_whole_that_gets_worse_is_found() -> None:
    assert figures.worse(BAD, WHOLE, BAD | {"in all": WHOLE}) == []
    assert len(figures.worse(BAD, dict.fromkeys(figures.GOALS, 11), BAD | {"in all": WHOLE})) == len(figures.GOALS)


def test_bars_go_down_only() -> None:
    old = {figure: {"tables": 20} for figure in figures.GOALS} | {"in all": WHOLE}
    for today, expected in ((30, {"tables": 20}), (10, {"tables": 10}), (0, {})):
        found = {figure: {"tables": today, "new": 3} for figure in figures.GOALS}
        bars = figures.lower(found, dict.fromkeys(figures.GOALS, today), old)
        assert all(bars[figure] == expected for figure in figures.GOALS)
        assert bars["in all"] == dict.fromkeys(figures.GOALS, min(today, 10))


def test_nothing_is_imported_in_a_circle_when_a_file_is_loaded() -> None:
    loaded, _ = imports.graphs()
    assert imports.knots(loaded) == []


def test_imports_inside_functions_close_no_new_circle() -> None:
    _, every = imports.graphs()
    assert len(imports.knots(every)) <= figures.bars()["in all"]["knots"]


def test_public_names_are_described() -> None:
    """Every public function, class and argument has a docstring, and an example that runs."""
    assert public.missing() == {}
    assert public.without_example() == {}
    assert public.undescribed() == {}


@pytest.mark.parametrize(("word", "expected"), [("_told", True), ("embed", False), ("read_rows", False)])
def test_participles_are_told_from_verbs(word: str, expected: bool) -> None:
    assert source.is_participle(word) is expected
