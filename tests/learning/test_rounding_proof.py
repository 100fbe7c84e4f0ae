"""The proof names the code it proves; when the code moves, somebody has to read the proof again.

python -m tests.learning.test_rounding_proof     stamps it anew, after reading
"""

from pathlib import Path

import pytest

from tests.mechanisms.proof_stamps import STAMP, code_of

PROOF = Path(__file__).parents[2] / "src" / "mosha" / "learning" / "rounding.md"
STAMPS = list(STAMP.finditer(PROOF.read_text("utf-8")))


@pytest.mark.parametrize("stamp", STAMPS, ids=[f"{match['module']}:{match['name']}" for match in STAMPS])
def test_the_code_is_what_was_proved(stamp):
    now = code_of(stamp["module"], stamp["name"])
    assert now == stamp["code"], f"read {PROOF.name} again; if it still holds, stamp {stamp['name']} with {now}"


def test_the_proof_is_stamped():
    assert len(STAMPS) == 4


if __name__ == "__main__":
    text = STAMP.sub(
        lambda m: f"*Proves `{m['module']}:{m['name']}` (code {code_of(m['module'], m['name'])}).*",
        PROOF.read_text("utf-8"),
    )
    PROOF.write_text(text, "utf-8")
