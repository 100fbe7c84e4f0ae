"""Every measure that an account counts in has its words on the pages, and what is left reads well there."""

from typing import Any

import pytest

from mosha.accounting.rules import rule_for
from mosha.core.language import Language, say
from mosha.server.pages.site import _templates

LIMITS: list[dict[str, Any]] = [
    {"epsilon": 1},
    {"epsilon": 1, "delta": 1e-6},
    *({"epsilon": 1, "delta": 1e-6, "rule": rule} for rule in ("pure", "renyi", "gaussian", "zero-concentrated")),
    {"rho": 0.5},
    {"mu": 1},
]


def parts(language: Language) -> tuple[Any, Any]:
    def t(name: str, **values: object) -> str:
        return say(f"console.{name}", language, **values)

    return _templates().get_template("parts.html").module, t


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_every_measure_has_its_sentence(limits: dict[str, Any], language: Language) -> None:
    module, t = parts(language)
    measure = rule_for(**limits).measure
    shown = str(module.measure(t, measure))
    assert "console." not in shown
    assert "measure_" not in shown
    assert shown
    assert language == "en" or any("\u4e00" <= letter <= "\u9fff" for letter in shown)


def test_a_page_shows_what_is_left_also_where_a_former_version_did_not_say_it_as_epsilon() -> None:
    module, t = parts("en")
    old = {"measure": "epsilon", "spent": 0.5, "limit": 1.0, "left": 0.5}
    assert "0.5 left" in str(module.budget(t, old)).replace("\u00a0", " ")
    assert "epsilon\u00a00.7" in str(module.budget(t, old | {"left_as": {"epsilon": 0.7, "delta": 1e-6}}))
    assert "your" in str(module.problem(t, {"detail": "your", "cost": 2.0, "left": 0.5}))


def test_a_page_that_says_all_is_spent_says_that_nothing_is_left() -> None:
    module, t = parts("en")
    used = {"measure": "epsilon", "spent": 1 - 6.733e-7, "limit": 1.0, "left": 6.733e-7, "left_as": None}
    assert "1 of 1 spent, 0 left" in str(module.budget(t, used)).replace("\u00a0", " ")
