"""A proof in a file of its own moves when the code moves."""

from pathlib import Path

import pytest

import mosha.audit
from tests.mechanisms.proof_stamps import STAMP, code_of

FOLDER = Path(mosha.audit.__file__).parent
STAMPS = [
    (path, match["module"], match["name"], match["code"])
    for path in sorted(FOLDER.glob("*.md"))
    for match in STAMP.finditer(path.read_text("utf-8"))
]


@pytest.mark.parametrize(("path", "module", "name", "stamp"), STAMPS, ids=lambda value: str(value).split("/")[-1])
def test_the_proof_is_about_the_code_there_is(path, module, name, stamp):
    now = code_of(module, name)
    assert stamp == now, f"{module}:{name} has changed: read {path.name} again; if it still holds, stamp it with {now}."


def test_every_proof_file_names_its_code():
    assert {path for path, *_ in STAMPS} == set(FOLDER.glob("*.md")) != set()
