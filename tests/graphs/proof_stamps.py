"""The proof files of graphs name the code they prove, as those of mechanisms do. After reading a proof again:

python tests/graphs/proof_stamps.py
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "src" / "mosha" / "graphs"


def restamp():
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.mechanisms.proof_stamps import STAMP, code_of

    for path in sorted(FOLDER.glob("*.md")):
        stamped = STAMP.sub(
            lambda m: f"*Proves `{m['module']}:{m['name']}` (code {code_of(m['module'], m['name'])}).*",
            path.read_text(),
        )
        path.write_text(stamped)


if __name__ == "__main__":
    restamp()
