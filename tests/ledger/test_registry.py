"""Entries of the public registry of deployments: whole and of known fields, at every tier, for every promise."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import mosha
from mosha import errors, events
from mosha.cli import main
from mosha.ledger.publishing.registry import FIELDS, find_problems, write_yaml
from tests.core.every_word import every_unit
from tests.ledger.place import asking

BASIC = {
    "data_curators": ["Hospital X"],
    "description": "Stays by ward: counts and means.",
    "intended_use": "Planning of beds",
    "data_product_type": "Summary statistics",
    "data_product_region": "Shanghai",
    "registry_authors": ["Wang"],
}
MODEL = {"data_source_type": "Static", "access_type": "Non-interactive"}
ALL = BASIC | MODEL | {
    "data_domain": "All tables of visits.",
    "actors": "The hospital is trusted with the data; nobody else is.",
    "access_type_details": "Analysts see published tables.",
    "post_processing": "Negative counts are shown as zero.",
    "preprocessing_and_hyperparameter_tuning": "Bounds were taken from the tariff, not from data.",
    "justification": "Decided by the privacy board.",
    "data_product_sector": "Healthcare",
    "sources": "https://example.org/report",
}  # fmt: skip
PROMISES = [
    ({"epsilon": 1}, None, "Pure DP"),
    ({"epsilon": 1, "delta": 1e-6}, None, "Approximate DP"),
    ({"epsilon": 1, "delta": 1e-6}, "pure", "Approximate DP"),
    ({"epsilon": 1, "delta": 1e-6}, "renyi", "Approximate DP"),
    ({"epsilon": 1, "delta": 1e-6}, "gaussian", "Approximate DP"),
    ({"epsilon": 1, "delta": 1e-6}, "zero-concentrated", "Approximate DP"),
    ({"rho": 0.5}, None, "Zero-concentrated DP"),
    ({"mu": 1}, None, "Custom"),
]


@pytest.fixture
def ledger() -> Any:
    return mosha.Ledger.memory()


def entry_of(ledger: Any, details: Any = ALL, **options: Any) -> Any:
    return ledger.statement("visits").registry(details, **options)


@pytest.mark.parametrize("tier", [1, 2, 3])
@pytest.mark.parametrize(("limits", "rule", "variant"), PROMISES)
def test_every_promise_has_an_entry_of_every_tier(ledger: Any, limits: Any, rule: Any, variant: Any, tier: int) -> None:
    account = ledger.account("visits", unit=mosha.Person("pid"), rule=rule, **limits)
    account.open(asking(events.Laplace(100), unit=mosha.Person("pid")))
    found = entry_of(ledger, tier=tier)
    assert find_problems(found) == []
    assert found["tier"] == tier
    deployment = found["deployment"]
    assert deployment["dp_variant"]["variant_name"] == variant
    assert deployment["deployment_model"]["release_type"] == "One release"
    assert deployment["privacy_loss"]["privacy_parameters"] == ({} if "mu" in limits else limits)
    assert ("mu = 1" in deployment["privacy_loss"]["privacy_parameters_details"]) == ("mu" in limits)
    assert yaml.safe_load(write_yaml(found)) == found == json.loads(json.dumps(found))


@pytest.mark.parametrize("unit", [unit for unit in every_unit() if unit.of is None], ids=repr)
def test_every_unit_has_its_level_and_its_model(ledger: Any, unit: Any) -> None:
    ledger.account("visits", unit=unit, epsilon=1)
    found = entry_of(ledger)
    assert find_problems(found) == []
    loss, model = found["deployment"]["privacy_loss"], found["deployment"]["deployment_model"]["model_name"]
    assert loss["privacy_unit"].endswith(("level", "time"))
    assert unit.neighbors.describe() in loss["privacy_unit_details"]
    assert model == {mosha.Own: "Local", mosha.Client: "Federated"}.get(type(unit), "Central")


def test_the_tier_is_the_highest_that_the_details_reach(ledger: Any) -> None:
    ledger.account("visits", unit=mosha.Row(), epsilon=1)
    assert [entry_of(ledger, details)["tier"] for details in (BASIC, BASIC | MODEL, ALL)] == [1, 2, 3]
    with pytest.raises(errors.InvalidParameter, match="actors"):
        entry_of(ledger, BASIC | MODEL, tier=3)


def test_what_no_ledger_knows_is_asked_for_and_never_null(ledger: Any) -> None:
    ledger.account("visits", unit=mosha.Row(), epsilon=1)
    with pytest.raises(errors.InvalidParameter, match="data_curators, description, intended_use"):
        entry_of(ledger, None)
    draft = ledger.statement("visits").to_dict()["registry"]
    assert draft["missing"] == [*list(BASIC)[:-1], "registry_authors"]
    assert "null" not in json.dumps(draft)
    assert "null" not in json.dumps(entry_of(ledger, BASIC))


def test_the_ledger_says_what_it_knows(ledger: Any) -> None:
    account = ledger.account("visits", unit=mosha.Reading(), epsilon=3, disjoint_blocks=True)
    for month in ("10", "11"):
        account.block(month).open(asking(events.Laplace(2), unit=mosha.Reading()))
    found = entry_of(ledger, BASIC | {"access_type": "Interactive"})["deployment"]
    assert found["deployment_model"]["release_type"] == "Many releases"
    assert found["deployment_model"]["data_source_type"] == "Dynamic"
    assert "visits/10" in found["deployment_model"]["access_type_details"]
    assert "parallel" in found["accounting"]["composition"]
    assert "Laplace" in found["implementation"]["mechanisms"]
    assert str(ledger.head) in found["administrative"]["notes"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"colour": "blue"},
        {"data_curators": "Hospital X"},
        {"data_curators": []},
        {"description": ""},
        {"description": None},
        {"description": r"\\epsilon"},
        {"data_product_type": "Statistics"},
        {"data_product_sector": "Health"},
        {"publication_date": "1/1/2026"},
        {"publication_date": 2026},
        {"release_type": "One"},
        {"variant_name": "zCDP"},
        {"privacy_parameters": {"mu": 1}},
        {"status": "Ready"},
        {"url_slug": "Visits 2026"},
        {"registry_authors": [3]},
    ],
)
def test_details_that_the_registry_would_refuse_are_refused(ledger: Any, wrong: Any) -> None:
    ledger.account("visits", unit=mosha.Row(), epsilon=1)
    with pytest.raises(errors.InvalidParameter):
        entry_of(ledger, ALL | wrong)


def test_every_damage_to_an_entry_is_a_problem(ledger: Any) -> None:
    """The validator can fail: whatever required is taken away, whatever unknown is added."""
    ledger.account("visits", unit=mosha.Row(), epsilon=1)
    good = entry_of(ledger)
    assert find_problems(good) == []
    for name in good:
        assert find_problems({key: value for key, value in good.items() if key != name})
    assert find_problems(good | {"surprise": 1})
    for section, fields in FIELDS.items():
        for name, (tier, _) in fields.items():
            for damage in (None, 7):
                bad = copy.deepcopy(good)
                bad["deployment"][section][name] = damage
                assert find_problems(bad), name
            if tier == 1:
                bad = copy.deepcopy(good)
                del bad["deployment"][section][name]
                assert find_problems(bad), name
        bad = copy.deepcopy(good)
        bad["deployment"][section]["surprise"] = "x"
        assert find_problems(bad)


@pytest.mark.parametrize(
    ("name", "curators", "slug"),
    [
        ("visits", ["Hospital X"], "visits-hospital-x-2026"),
        ("Stays (by ward)", ["Hospital X", "City of Y"], "stays-by-ward--hospital-x-city-of-y-2026"),
        ("住院统计", ["某医院"], "住院统计-某医院-2026"),
        ("7", ["8_9"], "7-8-9-2026"),
    ],
)
def test_the_slug_is_the_one_that_the_registry_makes(ledger: Any, name: str, curators: Any, slug: str) -> None:
    """Its check makes the slug anew of name, curators and year, and compares it with the line as it is written."""
    ledger.account("visits", unit=mosha.Row(), epsilon=1)
    details = ALL | {"name": name, "data_curators": curators, "publication_date": "2026-03-31"}
    found = entry_of(ledger, details)
    assert found["url_slug"] == slug
    assert entry_of(ledger, details | {"url_slug": slug}) == found
    written = write_yaml(found)
    assert yaml.safe_load(written) == found
    assert not any(letter.isalpha() for letter in slug) or written.startswith(f"url_slug: {slug}\n")
    with pytest.raises(errors.InvalidParameter, match=slug):
        entry_of(ledger, details | {"url_slug": "visits-2026"})


@pytest.mark.parametrize("shape", [None, 7, "basic", [], {}])
def test_what_has_no_shape_of_an_entry_is_a_problem_and_no_failure(ledger: Any, shape: Any) -> None:
    ledger.account("visits", unit=mosha.Row(), epsilon=1)
    good = entry_of(ledger)
    for name in good:
        assert find_problems(good | {name: shape})
    for section in ("basic", "administrative"):
        assert find_problems(good | {"deployment": good["deployment"] | {section: shape}})


def test_texts_survive_yaml(ledger: Any) -> None:
    ledger.account("visits", unit=mosha.Row(), epsilon=1, delta=1e-20)
    text = "Wards: \"A\", 'B' # not a comment\n- 磨砂 {x: [y]} & *z !t %\t|>"
    found = entry_of(ledger, ALL | {"description": text, "name": "yes", "intended_use": "2026-01-01"})
    assert yaml.safe_load(write_yaml(found)) == found


def test_the_registry_entry_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book, details = str(tmp_path / "privacy.db"), tmp_path / "details.toml"
    with mosha.Ledger(book) as ledger:
        ledger.account("visits", unit=mosha.Row(), rho=1)
    details.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in ALL.items()), encoding="utf-8")
    assert main(["ledger", "statement", book, "visits", "--registry"]) == 1
    assert "data_curators" in capsys.readouterr().err
    registry = ("ledger", "statement", book, "visits", "--registry", "--details", str(details))
    assert main([*registry]) == 0
    found = yaml.safe_load(capsys.readouterr().out)
    assert (found["tier"], find_problems(found)) == (3, [])
    assert main([*registry, "--tier", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tier"] == 2
    assert main([*registry, "--out", str(tmp_path / "visits.yaml")]) == 0
    assert find_problems(yaml.safe_load((tmp_path / "visits.yaml").read_text(encoding="utf-8"))) == []
