"""What is public says what it is."""

import inspect

import mosha.graphs


def test_every_public_name_says_what_it_is() -> None:
    for name in mosha.graphs.__all__:
        assert inspect.getdoc(getattr(mosha.graphs, name)), name
