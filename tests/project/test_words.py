"""Laws of words: what is public is shown in an example that runs, and an option is a `Literal`, for editors."""

from tests.house import public

FEW = 12
"""How many names may be without an example: what needs a network of Flower or a Trainer of Hugging Face, and a rest."""
OPEN = {"mosha.graphs.Question(verb)"}  # made by the verbs of a protected graph, which are methods


def test_almost_every_public_name_is_shown_in_an_example_that_runs():
    missing = [f"{facade}.{name}" for facade, names in public.without_example().items() for name in names]
    assert len(missing) <= FEW, missing


def test_an_option_with_a_closed_list_of_words_is_no_plain_text():
    assert set(public.free_options()) <= OPEN


def test_the_law_of_options_finds_the_ways_in_which_words_are_checked():
    found = public.closed_names(
        'if how not in ("inner", "left"): pass\n'
        "if self.by not in STEPS: pass\n"
        'choose("side", side, SIDES)\n'
        'raise InvalidParameter("core.unknown_option", parameter="rule")'
    )
    assert found == {"how", "by", "side", "rule"}


def test_the_law_of_options_can_fail():
    def join(how: str) -> None:
        if how not in ("inner", "left"):
            raise ValueError(how)

    assert public._find_closed(join) == {"how"}
