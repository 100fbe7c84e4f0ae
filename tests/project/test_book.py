"""The book: two languages with the same code, topics that lead somewhere, exercises that are all listed."""

import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mosha.classroom import list_exercises
from tests.project.pages import ROOT, blocks, name

DOCS = ROOT / "docs"
CHINESE = sorted(DOCS.rglob("*.zh.md"))
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \| (?:`(.+?)`)? ?\| (?:`(.+?)`)? ?\|$", re.MULTILINE)


def english(page: Any) -> Any:
    return page.with_name(page.name.replace(".zh.md", ".md"))


def topics(page: str = "topics.md") -> Any:
    return ROW.findall((DOCS / "book" / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", CHINESE, ids=name)
def test_a_chinese_page_has_the_code_of_the_english_one(page: Any) -> None:
    assert [(block.language, block.text) for block in blocks(page)] == [
        (block.language, block.text) for block in blocks(english(page))
    ]


@pytest.mark.parametrize("page", CHINESE, ids=name)
def test_a_chinese_page_has_the_headings_of_the_english_one(page: Any) -> None:
    def depths(path: Any) -> list[Any]:
        text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        return [len(found) for found in re.findall(r"^(#+) ", text, re.MULTILINE)]

    assert depths(page) == depths(english(page))


@pytest.mark.parametrize("page", CHINESE, ids=name)
def test_a_chinese_page_calls_other_pages_by_their_chinese_names(page: Any) -> None:
    links = re.findall(r"(?<!!)\[([^\]\[]+)\]\(([^)#\s]+\.md)", page.read_text(encoding="utf-8"))
    for text, link in links:
        there = (page.parent / link).with_suffix(".zh.md")
        chinese = there.exists() and re.search(r"[\u4e00-\u9fff]", there.read_text(encoding="utf-8").splitlines()[0])
        assert re.search(r"[\u4e00-\u9fff`]", text) or not chinese, (text, link)


@pytest.mark.parametrize("page", CHINESE, ids=name)
def test_a_chinese_page_shows_pictures_with_chinese_words_where_there_are_any(page: Any) -> None:
    for shown in re.findall(r"!\[[^\]]*\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        picture = page.parent / shown
        assert "-en-" not in picture.name
        assert picture.stem.endswith("-zh") or not picture.with_stem(f"{picture.stem}-zh").exists()


@pytest.mark.parametrize("folder", ["book", "gallery"])
def test_every_page_of_the_book_is_there_in_both_languages(folder: str) -> None:
    book = sorted((DOCS / folder).glob("*.md"))
    assert {english(page) for page in book if page.name.endswith(".zh.md")} == {
        page for page in book if not page.name.endswith(".zh.md")
    }


CHAPTERS = ["book/principles", "book/federated", "book/streams", "book/networks", "book/learning"]


@pytest.mark.parametrize("page", [*CHAPTERS, "tutorials/quick-tour"])
@pytest.mark.parametrize(("language", "suffix"), [("en", ".md"), ("zh", ".zh.md")])
def test_chapters_and_the_quick_tour_have_pictures_in_the_language_of_the_reader(
    page: Any, language: str, suffix: str
) -> None:
    text = (DOCS / f"{page}{suffix}").read_text(encoding="utf-8")
    shown = re.findall(r"pictures/book/(\w+)-(\w+)-(light|dark)\.png#only-(light|dark)", text)
    assert {look for _, _, look, _ in shown} == {"light", "dark"}
    for picture, spoken, look, only in shown:
        assert (spoken, look) == (language, only)
        assert (DOCS / "pictures/book" / f"{picture}-{spoken}-{look}.png").exists()


def test_a_picture_of_the_book_is_drawn_by_its_script(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples/book_pictures.py"), str(tmp_path), "tour"]
    subprocess.run(command, check=True, capture_output=True)
    assert len(list(tmp_path.glob("tour-*.png"))) == 4


@pytest.mark.parametrize("page", ["topics.md", "topics.zh.md"])
def test_the_index_has_all_topics_and_names_the_same_places(page: str) -> None:
    found = topics(page)
    assert [int(row[0]) for row in found] == list(range(1, 198))
    assert [row[3:] for row in found] == [row[3:] for row in topics()]


def test_every_topic_is_taught_on_a_page_that_exists() -> None:
    for number, _, taught, *_ in topics():
        link = re.fullmatch(r"\[.+\]\((.+)\)", taught)
        assert link is not None, number
        assert (DOCS / "book" / link[1]).is_file(), link[1]


def test_every_name_of_the_index_is_in_the_library() -> None:
    commands = (DOCS / "reference/cli.md").read_text(encoding="utf-8")
    for number, _, _, place, _ in topics():
        assert place, number
        if " " in place:
            assert f"## {place}\n" in commands, place
        else:
            found = importlib.import_module("mosha")
            for part in place.split(".")[1:]:
                found = getattr(found, part)


def test_exercises_of_the_index_exist_and_all_are_listed() -> None:
    known = {exercise.id for exercise in list_exercises()}
    assert {row[4] for row in topics() if row[4]} <= known
    for page in ("exercises.md", "exercises.zh.md"):
        text = (DOCS / "book" / page).read_text(encoding="utf-8")
        assert list(re.findall(r"^\| \d+ \| `(.+?)` \|", text, re.MULTILINE)) == [
            exercise.id for exercise in list_exercises()
        ]


def load_hooks() -> Any:
    specification = importlib.util.spec_from_file_location("mkdocs_hooks", ROOT / "mkdocs_hooks.py")
    hooks = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(hooks)
    return hooks


def test_lines_of_chinese_are_joined_without_a_blank_and_code_stays() -> None:
    join = load_hooks().on_page_content
    assert join("<p>证明\uff0c\n单凭频率\n就能 Mosha\n认出</p>") == "<p>证明\uff0c单凭频率就能 Mosha\n认出</p>"
    assert join("<pre>一\n二</pre>\n<p>two\nlines</p>") == "<pre>一\n二</pre>\n<p>two\nlines</p>"


def test_the_page_about_the_house_shows_every_layer_and_every_proof() -> None:
    layers = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## Layers")[1].split("```")[1]
    assert layers in (DOCS / "explanation/house.md").read_text(encoding="utf-8")
    shown = load_hooks().on_page_markdown("<!-- every proof -->").splitlines()
    assert len(shown) == len(list((ROOT / "src/mosha").rglob("*.md")))
    assert all(re.fullmatch(r"\| .+ \| `[\w/]+\.md` \| (`\w+`(, )?)+ \|", line) for line in shown)
