"""Every snippet that people can read runs: Python, doctests and commands; state is carried along a page."""

import ast
import doctest
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from mosha.cli import main
from tests.project.pages import blocks, every_page, name

pages = pytest.mark.parametrize("page", every_page(), ids=name)


def run_python(page: Any, block: Any, names: Any) -> None:
    source = "\n" * (block.line - 1) + block.text
    exec(compile(source, name(page), "exec"), names)


def run_doctest(page: Any, block: Any, names: Any) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    example = doctest.DocTestParser().get_doctest(block.text, names, name(page), name(page), block.line)
    said: list[Any] = []
    doctest.DocTestRunner(optionflags=flags).run(example, out=said.append, clear_globs=False)
    assert not said, "".join(said)
    names.update(example.globs)


def run_commands(block: Any) -> None:
    for line in block.text.replace("\\\n", "").splitlines():
        if not line.startswith("$ mosha "):
            continue
        command, _, comment = line[2:].partition("  # ")
        expected = re.fullmatch(r"exit code (\d)", comment.strip())
        assert main(shlex.split(command)[1:]) == (int(expected[1]) if expected else 0), line


@pages
def test_every_snippet_of_the_page_runs(
    page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = {"__name__": "snippet"}
    for block in blocks(page):
        if block.language == "python":
            run_python(page, block, names)
        elif block.language == "pycon":
            run_doctest(page, block, names)
        elif block.language == "console":
            run_commands(block)


@pages
def test_every_block_says_what_language_it_is(page: Any) -> None:
    known = {"python", "pycon", "console", "sh", "text", "json", "toml", "markdown", "html", "py"}  # py: code of a peer
    assert {block.language for block in blocks(page)} <= known


@pages
def test_python_that_is_shown_imports_only_what_exists_for_users(page: Any) -> None:
    for block in blocks(page):
        if block.language != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mosha"):
                assert not any(part.startswith("_") for part in node.module.split("."))


def test_the_runner_of_snippets_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(run_python.__globals__, "name", str)
    wrong = tmp_path / "wrong.md"
    wrong.write_text("```python\nx = 1\n```\n\n```pycon\n>>> x + 1\n3\n```\n\n```console\n$ mosha x\n```\n", "utf-8")
    code, session, command = blocks(wrong)
    names: dict[Any, Any] = {}
    run_python(wrong, code, names)
    with pytest.raises(AssertionError, match="Expected"):
        run_doctest(wrong, session, names)
    with pytest.raises(AssertionError, match="mosha x"):
        run_commands(command)
