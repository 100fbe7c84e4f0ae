"""A proof in a file of its own moves when the code moves."""

import re

import pytest

from tests.streams.proof_stamps import FOLDER, STAMP, code_of, stamps


@pytest.mark.parametrize(("path", "module", "name", "stamp"), stamps(), ids=lambda value: str(value).split("/")[-1])
def test_the_proof_is_about_the_code_there_is(path, module, name, stamp):
    assert stamp == code_of(module, name), f"read {path.name} again; if it holds: python tests/streams/proof_stamps.py"


def test_every_proof_file_names_code_and_every_named_file_exists():
    for path in FOLDER.glob("*.md"):
        assert STAMP.search(path.read_text()), f"{path.name} says nothing about which code it proves"
    for path in FOLDER.glob("*.py"):
        for named in re.findall(r"(?<!/)`(\w+\.md)`", path.read_text()):
            assert (FOLDER / named).exists(), f"{path.name} refers to {named}"
