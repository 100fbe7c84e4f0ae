"""The book: two languages with the same code, topics that lead somewhere, exercises that are all listed."""

import importlib
import re

import pytest

from mosha.classroom import list_exercises
from tests.project.pages import ROOT, blocks, name

DOCS = ROOT / "docs"
CHINESE = sorted(DOCS.rglob("*.zh.md"))
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \| (?:`(.+?)`)? ?\| (?:`(.+?)`)? ?\|$", re.MULTILINE)
NOT_YET = {58, 70, 149, 192, 193}  # Laplace at a server, homomorphic sums, pathways, genomics, reinforcement learning


def english(page):
    return page.with_name(page.name.replace(".zh.md", ".md"))


def topics(page="topics.md"):
    return ROW.findall((DOCS / "book" / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", CHINESE, ids=name)
def test_a_chinese_page_has_the_code_of_the_english_one(page):
    assert [(block.language, block.text) for block in blocks(page)] == [
        (block.language, block.text) for block in blocks(english(page))
    ]


@pytest.mark.parametrize("page", CHINESE, ids=name)
def test_a_chinese_page_has_the_headings_of_the_english_one(page):
    def depths(path):
        text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        return [len(found) for found in re.findall(r"^(#+) ", text, re.MULTILINE)]

    assert depths(page) == depths(english(page))


def test_every_page_of_the_book_is_there_in_both_languages():
    book = sorted((DOCS / "book").glob("*.md"))
    assert {english(page) for page in book if page.name.endswith(".zh.md")} == {
        page for page in book if not page.name.endswith(".zh.md")
    }


@pytest.mark.parametrize("page", ["topics.md", "topics.zh.md"])
def test_the_index_has_all_topics_and_names_the_same_places(page):
    found = topics(page)
    assert [int(row[0]) for row in found] == list(range(1, 198))
    assert [row[3:] for row in found] == [row[3:] for row in topics()]


def test_every_topic_is_taught_on_a_page_that_exists():
    untaught = set()
    for number, _, taught, *_ in topics():
        link = re.fullmatch(r"\[.+\]\((.+)\)", taught)
        if link is None:
            untaught.add(int(number))
        else:
            assert (DOCS / "book" / link[1]).is_file(), link[1]
    assert untaught == NOT_YET


def test_every_name_of_the_index_is_in_the_library():
    commands = (DOCS / "reference/cli.md").read_text(encoding="utf-8")
    for number, _, _, place, _ in topics():
        if not place:
            assert int(number) in NOT_YET
        elif " " in place:
            assert f"## {place}\n" in commands, place
        else:
            found = importlib.import_module("mosha")
            for part in place.split(".")[1:]:
                found = getattr(found, part)


def test_exercises_of_the_index_exist_and_all_are_listed():
    known = {exercise.id for exercise in list_exercises()}
    assert {row[4] for row in topics() if row[4]} <= known
    for page in ("exercises.md", "exercises.zh.md"):
        text = (DOCS / "book" / page).read_text(encoding="utf-8")
        assert list(re.findall(r"^\| \d+ \| `(.+?)` \|", text, re.MULTILINE)) == [
            exercise.id for exercise in list_exercises()
        ]
