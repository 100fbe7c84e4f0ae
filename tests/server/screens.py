"""A browser, driven over its own protocol: pages opened, forms sent, what it reports, pictures of what it shows."""

import base64
import json
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from websockets.sync.client import connect

from tests.browser import FLAGS


class Page:
    """One tab. Everything that it asks of anybody, and everything that its policy refuses, is kept."""

    def __init__(self, socket, base):
        self.socket, self.base, self.number = socket, base, 0
        self.addresses, self.reports, self.events = [], [], []
        self.by_keys = False
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            said = json.loads(self.socket.recv(timeout=60))
            if said.get("id") == self.number:
                assert "error" not in said, said
                return said["result"]
            self.keep(said)

    def keep(self, said):
        kind, parameters = said.get("method", ""), said.get("params", {})
        self.events.append(kind)
        if kind == "Network.requestWillBeSent":
            self.addresses.append(parameters["request"]["url"])
        elif kind == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.reports.append(parameters["entry"]["text"])
        elif kind == "Runtime.exceptionThrown":
            self.reports.append(str(parameters["exceptionDetails"].get("text")))
        elif kind == "Runtime.consoleAPICalled" and parameters["type"] == "error":
            self.reports.append(str(parameters["args"]))

    def run(self, script):
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, (script, found["exceptionDetails"])
        return found["result"].get("value")

    def wait(self, script, seconds=30):
        """Wait until a script is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.run(script):
                    return
            except AssertionError:
                pass  # the page is just being exchanged
            time.sleep(0.05)
        raise AssertionError(f"never: {script}\n{self.text()[:2000]}")

    def open(self, path):
        self.send("Page.navigate", url=path if path.startswith("http") else self.base + path)
        self.settle()

    def settle(self):
        time.sleep(0.05)
        self.wait("document.readyState === 'complete'")

    def press(self, selector):
        """Press what a selector names: with the mouse, or by keys alone."""
        self.run("window.stale = true")
        if self.by_keys:
            self.reach(selector)
            self.key("Enter")
        else:
            self.run(f"document.querySelector({selector!r}).click()")

    def key(self, name, **more):
        """Press and release a key."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "Space": 32, "ArrowLeft": 37, "ArrowRight": 39, "a": 65}
        text = {"Enter": "\r", "Space": " "}.get(name, "")
        parts = {"key": " " if name == "Space" else name, "code": name, "windowsVirtualKeyCode": codes[name]} | more
        kind = "keyDown" if text else "rawKeyDown"
        self.send("Input.dispatchKeyEvent", type=kind, **parts, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **parts)

    def reach(self, selector):
        """Go on with the tabulator until it is there; what is in a closed part is opened on the way."""
        here = f"document.activeElement === document.querySelector({selector!r})"
        closed = "document.activeElement.matches('summary') && !document.activeElement.parentElement.open"
        inside = f"document.activeElement.parentElement.contains(document.querySelector({selector!r}))"
        for _ in range(300):
            if self.run(here):
                shown = self.run("getComputedStyle(document.activeElement).outlineStyle")
                assert shown != "none", f"nobody sees that {selector} has the focus"
                return
            if self.run(f"{closed} && {inside}"):
                self.key("Enter")
            self.key("Tab")
        raise AssertionError(f"keys do not lead to {selector}")

    def fill(self, selector, text):
        """Type into a field by keys alone; a slider is moved by its arrows."""
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
        self.send("Input.insertText", text=text)

    def follow(self, selector):
        self.press(selector)
        self.wait("window.stale === undefined && document.readyState === 'complete'")

    def text(self):
        return self.run("document.body.innerText")

    def resize(self, width, *, dark=False, height=900):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)

    def picture(self, path):
        data = self.send("Page.captureScreenshot", captureBeyondViewport=True, format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def is_cut(self):
        """Whether anything is wider than the window."""
        return self.run("document.documentElement.scrollWidth > document.documentElement.clientWidth")


@contextmanager
def driven(base):
    """A tab of a real browser, at a free port of its own."""
    folder = Path(tempfile.mkdtemp(prefix="mosha-browser-"))
    words = [shutil.which("chromium"), *FLAGS, f"--user-data-dir={folder}", "--remote-debugging-port=0", "about:blank"]
    browser = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        place, end = folder / "DevToolsActivePort", time.monotonic() + 60
        while not (place.is_file() and place.read_text().count("\n")):
            assert browser.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        port, path = place.read_text().split("\n")[:2]
        with connect(f"ws://127.0.0.1:{port}{path}", max_size=None) as root:
            root.send(json.dumps({"id": 1, "method": "Target.createTarget", "params": {"url": "about:blank"}}))
            target = json.loads(root.recv())["result"]["targetId"]
        with connect(f"ws://127.0.0.1:{port}/devtools/page/{target}", max_size=None) as socket:
            yield Page(socket, base)
    finally:
        browser.terminate()
        browser.wait(20)
        shutil.rmtree(folder, ignore_errors=True)
