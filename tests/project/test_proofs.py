"""A proof in a file of its own moves when the code moves; none is lost, none is forgotten by its code."""

import re
from typing import Any

import pytest

from tests.proof_stamps import PACKAGE, PROOFS, STAMP, code, code_of, stamps

EVERY = {
    "accounting": "rules tradeoff",
    "accounting/losses": "contour convolution dominating loss",
    "accounting/measures": "advanced blanket concentrated gaussian pure renyi shuffle subsampling",
    "audit/attacks": "canary",
    "connect/language": "expressions",
    "connect/plan": "paths",
    "connect/sql": "bounding",
    "exact": "clamping neighbor_sums",
    "federated/plans": "correlated_rounds shared_noise shared_noise_of_examples",
    "federated/secure": "secure_aggregation",
    "graphs/data": "projection",
    "graphs/statistics": "forests ladder smooth",
    "learning": "rounding",
    "learning/linear": "linear_descent",
    "ledger/paying": "payment",
    "ledger/terms": "payers",
    "local": "location",
    "local/protocols": "projective",
    "mechanisms": "mean noisy_max partition_selection smooth_sensitivity sparse_vector",
    "models": "regression_noise",
    "noise": "box envelope unbounded",
    "reports": "together",
    "streams": "alarms",
    "streams/noise": "exact_toeplitz",
    "streams/service": "service",
    "tables/parts": "counted_keys correlations keys spreads tail_counts",
    "mechanisms/plans": "buffered correlated",
    "mechanisms/residuals": "residuals",
    "synth/measuring": "selection",
    "tables/mechanisms": "grouping_noise joint_noise quantile_width rank_choice",
}


def label(path: Any) -> Any:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize(("path", "module", "name", "stamp"), stamps(), ids=lambda value: str(value).split("/")[-1])
def test_the_proof_is_about_the_code_there_is(path: Any, module: Any, name: Any, stamp: Any) -> None:
    assert stamp == code_of(module, name), (
        f"{module}:{name} has changed since {path.name} was written. Read the proof again; if it still holds, "
        f"stamp it: python -m tests.proof_stamps {label(path)}"
    )


def test_no_proof_is_lost() -> None:
    assert {label(path) for path in PROOFS} == {
        f"{folder}/{name}.md" for folder, names in EVERY.items() for name in names.split()
    }


@pytest.mark.parametrize("path", PROOFS, ids=label)
def test_every_proof_names_code_that_refers_to_it(path: Any) -> None:
    claims = list(STAMP.finditer(path.read_text(encoding="utf-8")))
    assert claims, f"{path.name} says nothing about which code it proves"
    modules = {PACKAGE.parent.joinpath(*claim["module"].split(".")).with_suffix(".py") for claim in claims}
    assert any(f"{path.name}`" in module.read_text(encoding="utf-8") for module in modules)


def test_every_proof_that_is_referred_to_exists() -> None:
    known = {path.name for path in PROOFS}
    for page in [*PACKAGE.rglob("*.py"), *PROOFS]:
        for named in re.findall(r"`(?:mosha/)?(?:[a-z]+/)?(\w+\.md)`", page.read_text(encoding="utf-8")):
            assert named in known or (PACKAGE.parents[1] / "docs" / named).exists(), f"{page.name} refers to {named}"


def test_a_stamp_changes_with_the_code_and_with_nothing_else() -> None:
    first = 'def f(x):\n    """One."""\n    return x + 1  # why\n'
    same = 'def f(x):\n    """Two, longer."""\n\n    return x + 1\n'
    other = 'def f(x):\n    """One."""\n    return x + 2\n'
    assert code(first, "f") == code(same, "f")
    assert code(first, "f") != code(other, "f")
    inner = "class A:\n    def g(self):\n        return 1\n"
    assert code(inner, "A") == code(inner.replace("return", '"""Said."""\n        return'), "A")
    assert code("X: int = 1\nY = 2\n", "X") != code("X: int = 1\nY = 2\n", "Y")
