"""The proofs of the tight accountant name the code they prove: when the code moves, they must be read again."""

import pytest

from tests.accounting.test_closed_form_proofs import CLAIM, FOLDER, fingerprint

NAMES = ("contour", "convolution", "dominating", "loss")


@pytest.mark.parametrize("name", NAMES)
def test_the_code_has_not_moved_away_from_its_proof(name):
    claims = list(CLAIM.finditer((FOLDER / f"{name}.md").read_text(encoding="utf-8")))
    assert claims, f"{name}.md names nothing that it proves"
    moved = {
        f"{claim['module']}.{claim['name']}": now
        for claim in claims
        if (now := fingerprint(claim["module"], claim["name"])) != claim["fingerprint"]
    }
    assert not moved, f"{name}.md: read the proof against the code, then write the new fingerprints: {moved}"


@pytest.mark.parametrize("name", NAMES)
def test_a_proof_is_referred_to_by_the_code_it_proves(name):
    assert f"`{name}.md`" in (FOLDER / f"{name}.py").read_text(encoding="utf-8")
