"""`make release`: build the wheel and the source archive into dist/, check both, and say what is left to do.

The version stands in src/mosha/_version.py; CITATION.cff and the changelog must agree with it.
"""

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
JUNK = re.compile(r"(^|/)(\.venv|\.bench|__pycache__|site|demo-output|\.git)/|\.pyc$|\.db$")


def version() -> str:
    """The version of the source."""
    text = (ROOT / "src/mosha/_version.py").read_text(encoding="utf-8")
    (found,) = re.findall(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    return str(found)


def section() -> tuple[str, str]:
    """The heading and the text of the newest section of the changelog."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heading, body = re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[0]
    return heading, body.strip()


def disagreements() -> list[str]:
    """The places that name another version than the source."""
    cited = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    found = {"CITATION.cff": cited[0], "CHANGELOG.md": section()[0].split()[0]}
    return [f"{place} says {said}, the source {version()}" for place, said in found.items() if said != version()]


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source archive, built from this tree."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True)
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, archive


def faults_of_wheel(wheel: Path) -> list[str]:
    """What is wrong with a wheel: its version, a file that is missing, a file that does not belong there."""
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        (metadata,) = [name for name in names if name.endswith("METADATA")]
        fields = Parser().parsestr(opened.read(metadata).decode())
    source = ROOT / "src"
    wanted = {str(path.relative_to(source)) for path in source.rglob("*") if path.suffix in {".py", ".md", ".toml"}}
    return [
        *(f"the wheel lacks {name}" for name in sorted((wanted | {"mosha/py.typed"}) - names)),
        *(f"the wheel holds {name}" for name in sorted(names) if JUNK.search(name)),
        *([] if fields["Version"] == version() else [f"the wheel is version {fields['Version']}"]),
        *([] if fields["Requires-Python"] == ">=3.11" else ["the wheel names no Python"]),
    ]


def faults_of_archive(archive: Path) -> list[str]:
    """What is wrong with a source archive: tests or documentation are missing, or something does not belong there."""
    with tarfile.open(archive) as opened:
        names = {name.split("/", 1)[1] for name in opened.getnames() if "/" in name}
    wanted = {"LICENSE", "CHANGELOG.md", "Makefile", "constraints.txt", "docs/promise.md", "tests/conftest.py"}
    return [
        *(f"the archive lacks {name}" for name in sorted(wanted - names)),
        *(f"the archive holds {name}" for name in sorted(names) if JUNK.search(name)),
    ]


def faults_when_installed(wheel: Path) -> list[str]:
    """Whether the wheel works where it is installed: in an environment of its own that borrows our dependencies."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        binaries = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin")
        python = str(binaries / "python")
        install = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-deps", str(wheel)]
        subprocess.run(install, check=True)
        borrowed = next(path for path in sys.path if path.endswith("site-packages"))
        script = f"import sys; sys.path.append({borrowed!r}); import mosha; print(mosha.__version__, mosha.__file__)"
        shown = subprocess.run(
            [python, "-I", "-c", script], capture_output=True, text=True, check=True, cwd=folder
        ).stdout
        command = (binaries / "mosha").exists() or (binaries / "mosha.exe").exists()
    said, place = shown.split(maxsplit=1)
    return [
        *([] if said == version() else [f"installed, it says version {said}"]),
        *([] if "site-packages" in place else ["the wheel was not what was imported"]),
        *([] if command else ["the wheel installs no command"]),
    ]


def main() -> None:
    """Build, check, and say what is left."""
    shutil.rmtree(DIST, ignore_errors=True)
    faults = disagreements()
    wheel, archive = build(DIST)
    faults += faults_of_wheel(wheel) + faults_of_archive(archive) + faults_when_installed(wheel)
    if faults:
        sys.exit("\n".join(faults))
    heading, body = section()
    message = DIST / "TAG.md"
    message.write_text(f"Mosha {version()}\n\n{body}\n", encoding="utf-8")
    date = "put the date in the changelog's heading, then " if "unreleased" in heading else ""
    sys.stdout.write(f"{wheel.name} and {archive.name} are in dist/ and work.\n")
    sys.stdout.write(f"To release: {date}git tag -a v{version()} --cleanup=verbatim -F dist/TAG.md\n")


if __name__ == "__main__":
    main()
