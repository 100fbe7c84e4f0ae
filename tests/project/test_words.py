"""Laws of words: what is public is shown in an example that runs, and an option is a `Literal`, for editors."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import mosha
from tests.house import public

FEW = 12
"""How many names may be without an example: what needs a network of Flower or a Trainer of Hugging Face, and a rest."""
OPEN = {"mosha.graphs.Question(verb)"}  # made by the verbs of a protected graph, which are methods


def test_almost_every_public_name_is_shown_in_an_example_that_runs() -> None:
    missing = [f"{facade}.{name}" for facade, names in public.without_example().items() for name in names]
    assert len(missing) <= FEW, missing


def test_an_option_with_a_closed_list_of_words_is_no_plain_text() -> None:
    assert set(public.free_options()) <= OPEN


def test_the_law_of_options_finds_the_ways_in_which_words_are_checked() -> None:
    found = public.closed_names(
        'if how not in ("inner", "left"): pass\n'
        "if self.by not in STEPS: pass\n"
        'choose("side", side, SIDES)\n'
        'raise InvalidParameter("core.unknown_option", parameter="rule")'
    )
    assert found == {"how", "by", "side", "rule"}


def test_the_law_of_options_can_fail() -> None:
    def join(how: str) -> None:
        if how not in ("inner", "left"):
            raise ValueError(how)

    assert public._find_closed(join) == {"how"}


BRITISH = re.compile(
    "(?i)(neighbour|colour|behaviour|favour|honour|centre|metre|catalogue|labell|cancell|modell|licence|defence)"
    "|(is|ys)(e|ed|er|ers|es|ation|ing)$"
)
ALIKE = re.compile("(?i)(no|ra|prom|exerc|w|prec|conc|adv|^r)is(e|ed|es|ing)$")  # spelled so on both sides
OLD = {"neighbours", "randomiser"}  # attributes that warn, for one minor version
OLD_ARGUMENTS = {"mosha.local.Location.hidden(centre)"}


def is_british(name: Any) -> bool:
    parts = re.split(r"_|(?<=[a-z])(?=[A-Z])", name)
    return any(BRITISH.search(part) and not ALIKE.search(part) for part in parts)


def find_british() -> Iterator[Any]:
    for facade, module in public.facades().items():
        for name, value in public.objects(module):
            yield from (f"{facade}.{name}" for part in name.split(".") if is_british(part) and part not in OLD)
            if inspect.isclass(value):
                names = {*dir(value), *getattr(value, "__annotations__", ())} - OLD
                yield from (f"{facade}.{name}.{one}" for one in names if one[0] != "_" and is_british(one))
            try:
                arguments = inspect.signature(value).parameters  # type: ignore[arg-type]
            except (TypeError, ValueError):
                continue
            yield from (f"{facade}.{name}({one})" for one in arguments if is_british(one))


def test_public_names_and_arguments_are_spelled_as_in_america() -> None:
    assert set(find_british()) - OLD_ARGUMENTS == set()


def test_the_law_of_spelling_can_fail() -> None:
    assert all(map(is_british, ("neighbours", "randomise", "Randomiser", "generalise", "center_colour", "analyse")))
    assert not any(map(is_british, ("noise", "promises", "raised", "rising", "size", "precise", "neighbors", "this")))


def test_old_spellings_work_and_warn() -> None:
    with pytest.warns(DeprecationWarning, match="neighbors"):
        unit = mosha.Row(neighbours="replace-one")  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning, match="neighbors"):
        assert unit.neighbours is unit.neighbors
    with pytest.warns(DeprecationWarning, match="generalize"):
        assert mosha.audit.generalise is mosha.audit.generalize
