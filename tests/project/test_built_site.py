"""The built site, as files and in a real browser: names, languages, search, formulas, nothing from outside."""

import inspect
import os
import shutil
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.house import public
from tests.project.pages import ROOT, docs_pages
from tests.server.screens import driven

needs_browser = pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The folder of the built pages."""
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    subprocess.run(words, check=True, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    return folder


@pytest.fixture(scope="module")
def rendered(site: Any) -> set[Any]:
    """The names that the built pages have an anchor for."""
    inventory = (site / "objects.inv").read_bytes().split(b"zlib.\n", 1)[1]
    return {line.split(" ")[0] for line in zlib.decompress(inventory).decode().splitlines()}


def places(facade: Any, name: Any, value: Any) -> Any:
    """What a public name may be called in the reference: by its facade, or by the module that defines it."""
    found = {f"{facade}.{name}"}
    if hasattr(value, "__qualname__"):
        found.add(f"{value.__module__}.{value.__qualname__}")
    return found


def missing_from(names: Any) -> list[Any]:
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


def _is_constant_of(value: Any, name: Any, names: Any) -> Any:
    """A constant does not know its module: any anchor that ends with its name is taken for it."""
    return not hasattr(value, "__qualname__") and any(known.endswith(f".{name}") for known in names)


def test_every_public_name_stands_in_the_rendered_reference(rendered: Any) -> None:
    assert missing_from(rendered) == []


def test_a_name_that_is_left_out_is_found(rendered: Any) -> None:
    both = {"mosha.protect", "mosha.protection.protect"}
    assert set(missing_from(rendered - both)) == both


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Any) -> Iterator[str]:
    """The address of a folder on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def page(site: Any) -> Iterator[Any]:
    with served(site) as address, driven(address) as found:
        yield found


def search(page: Any, word: Any) -> Any:
    """The pages that the search finds, best first."""
    page.run("document.querySelector('#__search').click()")
    typed = f"""(() => {{ const field = document.querySelector('.md-search__input'); field.focus();
        field.value = {word!r}; field.dispatchEvent(new KeyboardEvent('keyup', {{ bubbles: true }})); }})()"""
    page.run(typed)
    page.wait("document.querySelectorAll('.md-search-result__item').length > 0", seconds=60)
    return page.run("[...document.querySelectorAll('.md-search-result__item a')].map((link) => link.href)")


@needs_browser
@pytest.mark.parametrize(
    ("start", "word", "wanted"),
    [
        ("/index.html", "triangles", "/tutorials/graphs.html"),
        ("/zh/index.html", "三角形", "/zh/book/networks.html"),
        ("/zh/index.html", "误差条", "/zh/tutorials/tables.html"),
    ],
)
def test_the_search_finds_words_in_both_languages(page: Any, start: str, word: str, wanted: str) -> None:
    page.open(start)
    assert any(wanted in link for link in search(page, word))


@needs_browser
def test_the_switch_leads_to_the_same_page_in_the_other_language(page: Any) -> None:
    page.open("/promise.html")
    there = page.run("document.querySelector('.md-header a[hreflang=zh]').href")
    page.open(there)
    assert there.endswith("/zh/promise.html")
    assert page.run("document.querySelector('h1').innerText").startswith("承诺")
    assert page.run("document.querySelector('.md-header a[hreflang=en]').href").endswith("/promise.html")


@needs_browser
def test_formulas_are_typeset_and_nothing_comes_from_outside(page: Any) -> None:
    page.addresses.clear()
    for path in ("/book/principles.html", "/zh/book/principles.html"):
        page.open(path)
        assert page.run("document.querySelectorAll('math').length") > 10
        assert page.run("document.querySelector('math').getBoundingClientRect().width") > 5
    assert page.addresses
    assert all(address.startswith((page.base, "data:", "blob:")) for address in page.addresses)


@needs_browser
def test_no_page_is_wider_than_its_window(page: Any) -> None:
    """One page in six, in turn in English and in Chinese."""
    wide = []
    for number, source in enumerate(docs_pages()[::6]):
        path = f"{'/zh' * (number % 2)}/{source.relative_to(ROOT / 'docs').with_suffix('.html')}"
        page.open(path)
        for width in (390, 1400):
            page.resize(width)
            if page.is_cut():
                wide.append((path, width))
    assert not wide


def test_every_page_is_there_in_both_languages() -> None:
    alone = [page for page in docs_pages() if not page.with_name(f"{page.stem}.zh.md").exists()]
    assert not alone
