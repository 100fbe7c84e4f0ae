"""The reference has every public name."""

import inspect
import os
import re
import subprocess
import sys
import zlib

import pytest

from tests.house import public
from tests.project.pages import ROOT

GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """The names that the built pages have an anchor for."""
    site = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(site)]
    subprocess.run(words, check=True, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    inventory = (site / "objects.inv").read_bytes().split(b"zlib.\n", 1)[1]
    return {line.split(" ")[0] for line in zlib.decompress(inventory).decode().splitlines()}


def places(facade, name, value):
    """What a public name may be called in the reference: by its facade, or by the module that defines it."""
    found = {f"{facade}.{name}"}
    if hasattr(value, "__qualname__"):
        found.add(f"{value.__module__}.{value.__qualname__}")
    return found


def missing_from(names):
    """The public names of all facades that are not among these."""
    return [
        f"{facade}.{name}"
        for facade, module in public.facades().items()
        for name in module.__all__
        if not name.startswith("__")
        and not inspect.ismodule(value := getattr(module, name))
        and places(facade, name, value).isdisjoint(names)
        and not _is_constant_of(value, name, names)
    ]


def _is_constant_of(value, name, names):
    """A constant does not know its module: any anchor that ends with its name is taken for it."""
    return not hasattr(value, "__qualname__") and any(known.endswith(f".{name}") for known in names)


def test_every_public_name_stands_in_the_rendered_reference(rendered):
    assert missing_from(rendered) == []


def test_a_name_that_is_left_out_is_found(rendered):
    both = {"mosha.protect", "mosha.protection.protect"}
    assert set(missing_from(rendered - both)) == both


def rows():
    """Each word of the glossary with its Chinese."""
    words = GLOSSARY.read_text(encoding="utf-8").split("## Words of arguments")[0]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in words.splitlines() if "|" in line]


def test_the_glossary_has_each_word_once_and_in_both_languages():
    entries = [row for row in rows() if row[0] not in {"word", "---"}]
    words = [word for row in entries for word in row[0].split(", ")]
    assert len(entries) > 40
    assert len(set(words)) == len(words)
    chinese = [row[2] for row in entries]
    assert len(set(chinese)) == len(chinese)
    assert all(re.search("[\u4e00-\u9fffε]", word) for word in chinese)
