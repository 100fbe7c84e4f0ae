"""Debian's Chromium, driven by Playwright: pages opened, forms sent, what it reports, pictures of what it shows."""

import queue
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Error, sync_playwright

from tests.browser import FLAGS

PATIENCE = 120.0
MOMENTS = {"timeout": PATIENCE * 1000 / 2}


class Driver:
    """Playwright in a thread of its own, so that loops of other tests are not in its way; every call has a limit."""

    def __init__(self) -> None:
        self.calls, self.users, self.playwright = queue.SimpleQueue(), 0, None  # type: ignore[var-annotated]
        threading.Thread(target=self._serve, name="browser", daemon=True).start()

    def _serve(self) -> None:
        while True:
            future, call = self.calls.get()
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001  (whoever called gets it)
                future.set_exception(error)

    def do(self, call: Any, *words: Any, **options: Any) -> Any:
        future: Any = Future()
        self.calls.put((future, lambda: call(*words, **options)))
        return future.result(PATIENCE)

    def open_browser(self) -> Any:
        if self.playwright is None:
            self.playwright = self.do(sync_playwright().start)
        self.users += 1
        program = shutil.which("chromium")
        return self.do(self.playwright.chromium.launch, executable_path=program, args=FLAGS, **MOMENTS)  # type: ignore[attr-defined]

    def close_browser(self, browser: Any) -> None:
        self.do(browser.close)
        self.users -= 1
        if not self.users:
            self.playwright, ended = None, self.playwright
            self.do(ended.stop)  # type: ignore[attr-defined]


DRIVER = Driver()


class Page:
    """One tab. Everything that it asks of anybody, and everything that its policy refuses, is kept."""

    def __init__(self, tab: Any, base: Any) -> None:
        self.tab, self.base = tab, base
        self.addresses, self.reports = [], []  # type: ignore[var-annotated]
        self.by_keys = False
        self.session = DRIVER.do(tab.context.new_cdp_session, tab)
        DRIVER.do(tab.on, "request", lambda request: self.addresses.append(request.url))
        DRIVER.do(tab.on, "pageerror", lambda error: self.reports.append(str(error)))
        DRIVER.do(tab.on, "console", lambda said: self.reports.append(said.text) if said.type == "error" else None)

    def send(self, method: Any, **parameters: Any) -> Any:
        """Say something in the browser's own protocol."""
        return DRIVER.do(self.session.send, method, parameters)

    def run(self, script: Any) -> Any:
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, (script, found["exceptionDetails"])
        return found["result"].get("value")

    def wait(self, script: Any, seconds: Any = PATIENCE) -> None:
        """Wait until a script is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.run(script):
                    return
            except (AssertionError, Error):
                pass  # the page is just being exchanged
            time.sleep(0.05)
        raise AssertionError(f"never: {script}\n{self.text()[:2000]}")

    def open(self, path: Any) -> None:
        DRIVER.do(self.tab.goto, path if path.startswith(("http", "about:")) else self.base + path, **MOMENTS)

    def find(self, selector: Any) -> Any:
        """What a selector names first, shown: what is in a closed part is opened on the way."""
        closed = f"!!document.querySelector({selector!r})?.closest('details:not([open])')"
        if self.run(closed):
            around = self.tab.locator("details:not([open])").filter(has=self.tab.locator(selector)).first
            DRIVER.do(around.locator("summary").first.click, **MOMENTS)
        return self.tab.locator(selector).first

    def press(self, selector: Any) -> None:
        """Press what a selector names: with the mouse, or by keys alone."""
        self.run("window.stale = true")
        if self.by_keys:
            self.reach(selector)
            self.key("Enter")
        else:
            DRIVER.do(self.find(selector).click, **MOMENTS)

    def key(self, name: Any) -> None:
        """Press and release a key."""
        DRIVER.do(self.tab.keyboard.press, name)

    def reach(self, selector: Any) -> None:
        """Go on with the tabulator until it is there; what is in a closed part is opened on the way."""
        wanted = f"document.querySelector({selector!r})"
        where = f"""(() => {{
          const now = document.activeElement, around = now.parentElement;
          if (now === {wanted}) return getComputedStyle(now).outlineStyle === "none" ? "unseen" : "here";
          return now.matches("summary") && !around.open && around.contains({wanted}) ? "closed" : "";
        }})()"""
        for _ in range(300):
            found = self.run(where)
            assert found != "unseen", f"nobody sees that {selector} has the focus"
            if found == "here":
                return
            if found == "closed":
                self.key("Enter")
            self.key("Tab")
        raise AssertionError(f"keys do not lead to {selector}")

    def fill(self, selector: Any, text: Any) -> None:
        """Type into a field: with the mouse, or by keys alone; then a slider is moved by its arrows."""
        if not self.by_keys:
            DRIVER.do(self.find(selector).fill, text, **MOMENTS)
            return
        self.reach(selector)
        kind = self.run("document.activeElement.type")
        if kind == "range":
            for _ in range(100):
                value = int(self.run("document.activeElement.value"))
                if value == int(text):
                    return
                self.key("ArrowRight" if value < int(text) else "ArrowLeft")
            raise AssertionError(f"{selector} does not move")
        self.run("document.activeElement.select()")
        DRIVER.do(self.tab.keyboard.insert_text, text)

    def attach(self, selector: Any, name: str, text: str) -> None:
        """Choose a file; keys have to lead to where it is chosen."""
        if self.by_keys:
            self.reach(selector)
        file = {"name": name, "mimeType": "text/csv", "buffer": text.encode()}
        DRIVER.do(self.find(selector).set_input_files, file, **MOMENTS)

    def follow(self, selector: Any) -> None:
        self.press(selector)
        self.wait("window.stale === undefined && document.readyState === 'complete'")

    def text(self) -> Any:
        return self.run("document.body.innerText")

    def choose(self, selector: Any, value: Any) -> None:
        """Choose from a list: with the mouse, or by keys alone."""
        if not self.by_keys:
            DRIVER.do(self.find(selector).select_option, value, **MOMENTS)
            return
        self.reach(selector)
        here = self.run("document.activeElement.selectedIndex")
        wanted = self.run(f"[...document.activeElement.options].findIndex(one => one.value === {value!r})")
        assert wanted >= 0
        for _ in range(abs(wanted - here)):
            self.key("ArrowDown" if wanted > here else "ArrowUp")
        assert self.run("document.activeElement.value") == value

    def resize(self, width: Any, *, dark: bool = False, height: Any = 900) -> None:
        DRIVER.do(self.tab.set_viewport_size, {"width": width, "height": height})
        DRIVER.do(self.tab.emulate_media, color_scheme="dark" if dark else "light")

    def picture(self, path: Any) -> None:
        DRIVER.do(self.tab.screenshot, path=path, full_page=True, **MOMENTS)

    def is_cut(self) -> Any:
        """Whether anything is wider than the window."""
        return self.run("document.documentElement.scrollWidth > document.documentElement.clientWidth")

    def speak(self, language: Any) -> None:
        """Choose a language for the pages that follow."""
        cookie = {"name": "mosha-language", "value": language, "url": self.base}
        DRIVER.do(self.tab.context.add_cookies, [cookie])

    def forget(self, name: Any = None) -> None:
        """Forget who is signed in, or everything."""
        DRIVER.do(self.tab.context.clear_cookies, **({"name": name} if name else {}))

    def remember(self) -> Any:
        """Who is signed in now, to be recalled later."""
        return DRIVER.do(self.tab.context.cookies)

    def recall(self, cookies: Any) -> None:
        DRIVER.do(self.tab.context.add_cookies, cookies)

    def cookies(self) -> dict[Any, Any]:
        return {one["name"]: one["value"] for one in DRIVER.do(self.tab.context.cookies)}


def enter(page: Any, who: Any) -> None:
    """Come in as one of the made-up people."""
    page.forget("mosha")
    page.open("/")
    page.follow(f"button[value={who}]")


def spent(page: Any) -> Any:
    """What li has spent of the visits."""
    grants = page.house.call("li", "GET", "/grants").json()["grants"]
    return next(grant["budget"]["spent"] for grant in grants if grant["dataset"] == "visits")


@contextmanager
def driven(base: Any) -> Iterator[Any]:
    """A tab of a real browser with a profile of its own."""
    browser = DRIVER.open_browser()
    try:
        yield Page(DRIVER.do(browser.new_page), base)
    finally:
        DRIVER.close_browser(browser)


def answer_survey(page: Any) -> None:
    """Choose the first answer of the survey that is open, see what would leave, and send it."""
    page.wait("!document.querySelector('input[name=answer]').disabled")
    if page.by_keys:
        page.reach("input[name=answer]")
        page.key("Space")
    else:
        page.run("document.querySelector('input[name=answer]').click()")
    page.wait("!document.querySelector('#send').disabled")
    assert page.run("document.querySelector('#leaves').innerText.length") > 0
    page.press("#send")
    page.wait("!document.querySelector('[data-show=sent]').hidden")
