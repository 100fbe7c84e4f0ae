"""Graphs, their questions and streams show themselves in public words: neighboring data give equal text."""

from typing import Any

import pytest

import mosha


def show(thing: Any) -> tuple[Any, ...]:
    return repr(thing), str(thing), thing._repr_html_()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_neighboring_graphs_look_the_same(lang: str) -> None:
    mosha.set_language(lang)
    try:
        edges = [(0, 1), (1, 2), (2, 3)]
        near = [mosha.graphs.protect(e, unit=mosha.Edge(), vertices=10) for e in (edges, edges[:-1])]
        assert show(near[0]) == show(near[1])
        assert show(near[0].triangles()) == show(near[1].triangles())
        node = mosha.Node(max_degree=3)
        far = [mosha.graphs.protect(e, unit=node, vertices=v) for e, v in ((edges, range(10)), (edges[:2], range(3)))]
        assert show(far[0]) == show(far[1])
        assert "10" not in repr(far[0])
    finally:
        mosha.set_language(None)


def test_a_stream_shows_what_it_hides_and_how_long() -> None:
    stream = mosha.streams.counter(unit=mosha.Person("who", at_most=3), horizon=365, epsilon=1)
    assert repr(stream) == "Stream(counter(Count), 365 steps, unit=Person('who', at_most=3))"
    assert "365" in str(stream)
    assert "mosha-card" in stream._repr_html_()
