"""The figures of the house get no worse: types, names, errors, imports."""

import pytest

from tests.house import figures, imports, public, source


def test_no_folder_gets_worse():
    """Any in at most 5% of the argument annotations, no participle for a name, no error without a code.

    A folder that is not there yet has its bar in tests/house/bars.json, which goes down only
    (`python -m tests.house --save`).
    """
    assert figures.worse(figures.by_folder(), figures.bars()) == []


def test_a_folder_that_gets_worse_is_found():
    found = {figure: {"tables": goal + 7} for figure, goal in figures.GOALS.items()}
    before = {figure: {"tables": goal + 6} for figure, goal in figures.GOALS.items()}
    assert len(figures.worse(found, before)) == len(figures.GOALS)
    assert figures.worse(found, found) == []
    assert figures.worse(found, {figure: {} for figure in figures.GOALS}) != []


def test_bars_go_down_only():
    old = {figure: {"tables": 20} for figure in figures.GOALS}
    for today, expected in ((30, {"tables": 20}), (10, {"tables": 10}), (0, {})):
        found = {figure: {"tables": today} for figure in figures.GOALS}
        assert all(bar == expected for bar in figures.lower(found, old).values())


def test_nothing_is_imported_in_a_circle_when_a_file_is_loaded():
    loaded, _ = imports.graphs()
    assert imports.knots(loaded) == []


def test_imports_inside_functions_close_no_new_circle():
    _, every = imports.graphs()
    assert len(imports.knots(every)) <= 13


def test_public_names_are_described():
    found = public.describe().values()
    assert sum(d.with_docstring for d in found) / sum(d.names for d in found) >= 0.88
    assert sum(d.with_example for d in found) / sum(d.names for d in found) >= 0.38


@pytest.mark.parametrize(("word", "expected"), [("_told", True), ("embed", False), ("read_rows", False)])
def test_participles_are_told_from_verbs(word, expected):
    assert source.is_participle(word) is expected
