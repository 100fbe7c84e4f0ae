"""A proof in a file of its own moves when the code moves."""

import re

import pytest

from tests.mechanisms.proof_stamps import STAMP, code_of
from tests.tables.proof_stamps import FOLDER

STAMPS = [
    (path.name, match["module"], match["name"], match["code"])
    for path in sorted(FOLDER.glob("*.md"))
    for match in STAMP.finditer(path.read_text())
]


@pytest.mark.parametrize(("file", "module", "name", "stamp"), STAMPS)
def test_the_proof_is_about_the_code_there_is(file, module, name, stamp):
    assert stamp == code_of(module, name), (
        f"{module}:{name} has changed since {file} was written. Read the proof again; if it still holds, "
        "stamp it: python tests/tables/proof_stamps.py"
    )


def test_every_proof_file_names_code_and_every_named_file_exists():
    for path in FOLDER.glob("*.md"):
        assert STAMP.search(path.read_text()), f"{path.name} says nothing about which code it proves"
    folders = (FOLDER, FOLDER.parent / "mechanisms", FOLDER.parent / "connect")
    for path in [*FOLDER.glob("*.py"), *FOLDER.glob("*.md")]:
        for named in re.findall(r"`(\w+\.md)`", path.read_text()):
            assert any((folder / named).exists() for folder in folders), f"{path.name} refers to {named}"
