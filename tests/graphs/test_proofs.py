"""A proof in a file of its own moves when the code moves."""

import inspect
import re

import pytest

import mosha.graphs
from tests.graphs.proof_stamps import FOLDER
from tests.mechanisms.proof_stamps import STAMP, code_of

STAMPS = [
    (path.name, match["module"], match["name"], match["code"])
    for path in sorted(FOLDER.glob("*.md"))
    for match in STAMP.finditer(path.read_text())
]


@pytest.mark.parametrize(("file", "module", "name", "stamp"), STAMPS)
def test_the_proof_is_about_the_code_there_is(file, module, name, stamp):
    assert stamp == code_of(module, name), (
        f"{module}:{name} has changed since {file} was written. Read the proof again; if it still holds, "
        "stamp it: python tests/graphs/proof_stamps.py"
    )


def test_every_proof_file_names_code_and_every_named_file_exists():
    for path in FOLDER.glob("*.md"):
        assert STAMP.search(path.read_text()), f"{path.name} says nothing about which code it proves"
    for path in [*FOLDER.glob("*.py"), *FOLDER.glob("*.md")]:
        for named in re.findall(r"`(\w+\.md)`", path.read_text()):
            assert (FOLDER / named).exists(), f"{path.name} refers to {named}"


def test_every_public_name_says_what_it_is():
    for name in mosha.graphs.__all__:
        assert inspect.getdoc(getattr(mosha.graphs, name)), name
