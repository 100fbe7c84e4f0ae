"""`pip install 'mosha[server]'` stays small: at most 12 packages and 12 MB more than mosha alone."""

from importlib.metadata import distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def packages_of(name, extras=frozenset()):
    """A distribution and all that it needs, by the metadata of what is installed here."""
    found, wanted = set(), [(name, frozenset(extras))]
    while wanted:
        name, extras = wanted.pop()
        if (name, extras) in found:
            continue
        found.add((name, extras))
        for line in distribution(name).requires or ():
            need = Requirement(line)
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
                wanted.append((canonicalize_name(need.name), frozenset(need.extras)))
    return {name for name, _ in found}


def test_a_server_adds_at_most_twelve_packages_and_twelve_megabytes():
    more = packages_of("mosha", {"server"}) - packages_of("mosha")
    assert {"starlette", "uvicorn", "jinja2"} <= more
    assert len(more) <= 12, sorted(more)
    files = [file.locate() for name in more for file in distribution(name).files or ()]
    size = sum(file.stat().st_size for file in files if file.is_file())
    assert 1e5 < size <= 12e6
