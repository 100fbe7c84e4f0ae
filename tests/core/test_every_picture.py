"""Laws of pictures: every `plot` takes the same four arguments, and does what they say."""

from __future__ import annotations

import datetime as dt
import importlib
import inspect
import io
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosha
from mosha.core.question import Answer as AnswerProtocol
from mosha.federated import History, Round, accuracy_against_epsilon
from mosha.local import Distribution, Frequency, HeavyHitters, Location, compare
from mosha.mechanisms import Count, Histogram, gaussian, laplace, mean
from mosha.pictures.figure import has_chinese_font
from mosha.tables import count
from mosha.tables import mean as mean_of

matplotlib = pytest.importorskip("matplotlib")
plt = pytest.importorskip("matplotlib.pyplot")

WANTED = ("ax", "title", "unit", "lang")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def account(unit: mosha.Unit, delta: float = 0.0) -> Any:
    return mosha.Ledger.memory().account("a", unit=unit, epsilon=900, delta=delta)


def visits() -> Any:
    rows = range(1200)
    data = {
        "who": [n % 600 for n in rows],
        "ward": ["abc"[n % 3] for n in rows],
        "sex": ["FM"[n % 7 % 2] for n in rows],
        "day": [dt.date(2024, 1 + n % 6, 1) for n in rows],
        "stay": [float(n % 17) for n in rows],
    }
    unit = mosha.Person("who", at_most=2)
    return mosha.protect(data, unit=unit, account=account(unit))


def by_ward(*keys: str) -> Any:
    values = {"ward": list("abc"), "sex": list("FM"), "day": [dt.date(2024, month, 1) for month in range(1, 7)]}
    return visits().group_by(*keys, keys={key: values[key] for key in keys})


def release(measurement: Any, data: Any) -> Any:
    return account(measurement.unit, 1e-3).open(measurement).step(data)


def graph(statistic: str) -> Any:
    edges = [(i, i + 1) for i in range(59)] + [(0, i) for i in range(2, 30)]
    friends = mosha.graphs.protect(edges, vertices=60, unit=mosha.Edge(), account=account(mosha.Edge()))
    return getattr(friends, statistic)().release(epsilon=3)


def arrivals(verb: str, **options: Any) -> Any:
    steps = mosha.streams.protect([["hall", "roof"]] * 6, unit=mosha.Reading(), account=account(mosha.Reading()))
    return getattr(steps, verb)(**options).release(epsilon=2)


def rounds() -> History:
    done = [
        Round(number=n, weights=np.zeros(1), clip=1.0, epsilon=n / 3, receipt=None, metrics=n / 5) for n in range(1, 4)
    ]
    return History(done, name="training")


def synthetic() -> Any:
    people = mosha.protect(
        {"sex": ["F", "M"] * 50, "job": ["a", "b"] * 50}, unit=mosha.Row(), account=account(mosha.Row(), 1e-3)
    )
    keys = {"sex": ["F", "M"], "job": ["a", "b"]}
    return people.synthesize(keys=keys).release(epsilon=5, delta=1e-6).report()


def density() -> Any:
    survey = Distribution(between=(0, 10), epsilon=4)
    return survey.estimate(survey.reports([5.0] * 500))


def hitters() -> Any:
    survey = HeavyHitters(longest=4, alphabet="abcdefgh", epsilon=6)
    return survey.estimate(survey.reports(["cafe"] * 3000 + ["bed"] * 2000))


def shares() -> Any:
    survey = Frequency(["a", "b", "c"], epsilon=2)
    return survey.estimate([survey.report("a") for _ in range(60)])


class Town:
    """A location, drawn around one report."""

    def plot(self, **wanted: Any) -> Any:
        return Location((48.85, 2.35), 5000.0, 0.01).plot((48.85, 2.35), **wanted)


class Budgets:
    """A ledger: accounts and their parts."""

    def plot(self, **wanted: Any) -> Any:
        ledger = mosha.Ledger.memory()
        whole = ledger.account("all", unit=mosha.Row(), epsilon=3)
        whole.open(laplace(Count(), unit=mosha.Row(), epsilon=1)).step([1])
        return mosha.ledger.draw_ledger(ledger, **wanted)


class Trainings:
    """Several trainings side by side."""

    def plot(self, **wanted: Any) -> Any:
        return accuracy_against_epsilon([rounds(), rounds()], **wanted)


ROW = mosha.Row()
GRAPHS = (
    "edges",
    "triangles",
    "degree_histogram",
    "degree_distribution",
    "cumulative_degrees",
    "degree_sequence",
    "density",
    "average_degree",
    "maximum_degree",
)
DRAWN: dict[str, Callable[[], Any]] = {
    "Answer: bars": lambda: by_ward("ward").count().release(epsilon=5),
    "Answer: time": lambda: by_ward("day").count().release(epsilon=5),
    "Answer: heat": lambda: by_ward("ward", "sex").count().release(epsilon=5),
    "Answer: panels": lambda: by_ward("ward").aggregate(
        n=count(), stay=mean_of("stay", between=(0, 30))
    ).release(epsilon=9),
    "Answer: one number": lambda: visits().count().release(epsilon=5),
    "Answer: intervals": lambda: visits().quantiles("stay", [0.25, 0.5], between=(0, 30)).release(epsilon=9),
    "Answer: quantiles": lambda: by_ward("ward").quantiles("stay", [0.25, 0.5], between=(0, 30)).release(epsilon=90),
    "Release: histogram": lambda: release(laplace(Histogram(keys=["a", "b"]), unit=ROW, epsilon=1), ["a", "b"]),
    "Release: gaussian": lambda: release(gaussian(Count(), unit=ROW, epsilon=1, delta=1e-6), [1]),
    "Release: mean": lambda: release(mean(between=(0, 9), unit=ROW, epsilon=1), [1, 2, 3]),
    "Release: curve": lambda: graph("cumulative_degrees").release,
    **{f"Answer of a graph: {verb}": partial(graph, verb) for verb in GRAPHS},
    "Answer of a stream: counter": lambda: arrivals("counter"),
    "Answer of a stream: histogram": lambda: arrivals("histogram", keys=["hall", "roof"]),
    "Band": lambda: mosha.streams.smooth([3.0, 5, 4, 6], 1.0),
    "Comparison": lambda: compare(10_000, 10, 1.0),
    "Density": density,
    "History": rounds,
    "Histories": Trainings,
    "Hitters": hitters,
    "Ledger": Budgets,
    "Location": Town,
    "Report of a synthetic table": synthetic,
    "Shares": shares,
}  # fmt: skip


def find_plots() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every `plot` of a class of the package; only modules whose text has one are loaded."""
    source = Path(mosha.__file__).parent
    for path in sorted(source.rglob("*.py")):
        if re.search(r"^    def plot\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            module = importlib.import_module(".".join(("mosha", *path.relative_to(source).with_suffix("").parts)))
            for name, value in vars(module).items():
                found = inspect.getattr_static(value, "plot", None) if inspect.isclass(value) else None
                if inspect.isfunction(found):
                    yield f"{value.__module__}.{name}", found


def write_texts(drawn: Any) -> str:
    texts = drawn.findobj(matplotlib.text.Text)
    return " | ".join(text.get_text() for text in texts if text.get_visible() and text.get_text().strip())


def write_axes_labels(drawn: Any) -> list[str]:
    return [label for axes in drawn.axes for label in (axes.get_xlabel(), axes.get_ylabel())]


def list_marks(ax: Any) -> int:
    """How many lines, bars and images are drawn on axes, and on the panels inside of them."""
    inside = [ax, *ax.child_axes]
    return sum(len(axes.lines) + len(axes.patches) + len(axes.images) + len(axes.collections) for axes in inside)


def test_every_plot_takes_the_same_four_arguments() -> None:
    plots = dict(find_plots())
    assert len(set(plots.values())) >= 10
    for name, plot in plots.items():
        taken = inspect.signature(plot).parameters
        assert [one for one in WANTED if one not in taken] == [], name
        for one in WANTED:
            assert taken[one].kind is inspect.Parameter.KEYWORD_ONLY, (name, one)
            assert taken[one].default is None, (name, one)


def test_every_class_with_a_plot_is_drawn_here() -> None:
    drawn = {type(make()) for make in DRAWN.values()} | {AnswerProtocol, Location}
    named = {f"{kind.__module__}.{kind.__name__}" for kind in drawn}
    assert set(dict(find_plots())) - named == set()


@pytest.mark.parametrize("make", DRAWN.values(), ids=DRAWN)
def test_a_plot_has_the_title_the_unit_and_the_words_that_are_wanted(make: Callable[[], Any]) -> None:
    shown = make()
    drawn = shown.plot(title="Winter 2024", unit="people per week", lang="en")
    assert "Winter 2024" in write_texts(drawn)
    assert any("people per week" in label for label in write_axes_labels(drawn))
    english, chinese = (write_texts(shown.plot(lang=lang)) for lang in ("en", "zh"))
    assert not CHINESE.search(english)
    assert CHINESE.search(chinese)
    assert mosha.core.language.current_language() == "en"


@pytest.mark.parametrize("make", DRAWN.values(), ids=DRAWN)
def test_a_plot_draws_on_the_axes_that_are_given_and_nowhere_else(make: Callable[[], Any]) -> None:
    """Also where there are several panels: they stand inside of the axes. The title and the unit are there as well."""
    figure, (left, right) = plt.subplots(1, 2)
    try:
        drawn = make().plot(ax=right, title="Winter 2024", unit="people per week", lang="zh")
        assert drawn is figure
        assert list_marks(right) > 0
        assert list_marks(left) == 0
        assert left.get_title(loc="left") == ""
        assert right.get_title(loc="left") == "Winter 2024"
        mine = [right, *right.child_axes, *(axes for axes in figure.axes if axes not in (left, right))]
        assert any("people per week" in axes.get_ylabel() + axes.get_xlabel() for axes in mine)
        assert figure.get_supxlabel() == ""  # the rest of the figure is its maker's
        if has_chinese_font():
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                figure.savefig(io.BytesIO(), format="png")
    finally:
        plt.close(figure)


@pytest.mark.parametrize("make", DRAWN.values(), ids=DRAWN)
def test_a_plot_is_written_as_png_svg_and_pdf(make: Callable[[], Any]) -> None:
    drawn = make().plot(title="冬季", lang="zh")
    for kind, first in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        written = io.BytesIO()
        drawn.savefig(written, format=kind)
        assert written.getvalue().startswith(first)
    assert drawn._repr_png_().startswith(b"\x89PNG")


NO_DATA = ("Comparison", "Histories", "History")
"""Made of numbers that were never private, or of rounds that nobody paid for here."""


@pytest.mark.parametrize("name", [name for name in DRAWN if name not in NO_DATA])
def test_a_footer_says_what_was_promised_and_when(name: str) -> None:
    footer = " ".join(DRAWN[name]().plot(lang="en").get_supxlabel().split())
    assert dt.datetime.now(dt.UTC).date().isoformat() in footer
    assert any(word in footer for word in ("Paid", "Private", "published", "hidden", "As of", "apart"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"ax": "left"}, "axes of matplotlib"), ({"title": 3}, "is a text"), ({"unit": ["people"]}, "is a text"),
     ({"title": b"x"}, "is a text")],
)  # fmt: skip
def test_wrong_wishes_are_answered_with_a_sentence(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(mosha.errors.MoshaError, match=said):
        DRAWN["Answer: bars"]().plot(**wrong)


def test_a_drawing_of_ones_own_says_that_it_knows_no_axes() -> None:
    from dataclasses import replace

    from mosha.pictures import begin_figure

    def draw(value: object, error: object) -> Any:
        figure = begin_figure(3, 2)
        figure.add_subplot().bar([0], [value])
        return figure

    asked = replace(laplace(Count(), unit=ROW, epsilon=1), draw=draw)
    answered = release(asked, [1, 2])
    drawn = answered.plot(title="Mine", unit="rows", lang="en")
    assert drawn.axes[0].get_title(loc="left") == "Mine"
    assert drawn.axes[0].get_ylabel() == "rows"
    assert drawn.get_supxlabel().startswith("Paid epsilon 1")
    with pytest.raises(mosha.errors.InvalidParameter, match="of your own"):
        answered.plot(ax=plt.subplots()[1])


@pytest.mark.parametrize("kind", ["table", "histogram"])
def test_five_hundred_groups_are_dots_with_few_labels(kind: str) -> None:
    keys = [f"site {n}" for n in range(500)]
    data = {"site": keys * 3}
    if kind == "table":
        table = mosha.protect(data, unit=ROW, account=account(ROW))
        answered: Any = table.group_by("site", keys=keys).count().release(epsilon=2)
    else:
        answered = release(laplace(Histogram(keys=keys, column="site"), unit=ROW, epsilon=1), data)
    (axes,) = answered.plot().axes
    assert len(axes.patches) == 0
    assert len([label for label in axes.get_xticklabels() if label.get_text()]) <= 30
