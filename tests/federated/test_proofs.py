"""A proof names the code it proves; when the code moves, somebody has to read the proof again.

python -m tests.federated.test_proofs     stamps the proofs anew, after reading
"""

from pathlib import Path

import pytest

from tests.mechanisms.proof_stamps import STAMP, code_of

FOLDER = Path(__file__).parents[2] / "src" / "mosha" / "federated"
STAMPS = [(path, match) for path in sorted(FOLDER.glob("*.md")) for match in STAMP.finditer(path.read_text("utf-8"))]


def test_every_proof_is_stamped():
    proofs = {"correlated.md", "distributed.md", "secure_aggregation.md"}
    assert {path.name for path, _ in STAMPS} == {path.name for path in FOLDER.glob("*.md")} == proofs


@pytest.mark.parametrize(("path", "stamp"), STAMPS, ids=[f"{match['module']}:{match['name']}" for _, match in STAMPS])
def test_the_code_is_what_was_proved(path, stamp):
    now = code_of(stamp["module"], stamp["name"])
    assert now == stamp["code"], f"read {path.name} again; if it still holds, stamp {stamp['name']} with {now}"


if __name__ == "__main__":
    for proof in sorted(FOLDER.glob("*.md")):
        text = STAMP.sub(
            lambda m: f"*Proves `{m['module']}:{m['name']}` (code {code_of(m['module'], m['name'])}).*",
            proof.read_text("utf-8"),
        )
        proof.write_text(text, "utf-8")
