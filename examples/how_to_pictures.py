"""The pictures of the page *Draw pictures*, in English and Chinese: each is what a reader would get.

    python examples/how_to_pictures.py FOLDER

Made-up data, real releases; the training alone is a drawing of made-up numbers.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import mosha
from mosha.pictures import (
    darken,
    draw_band,
    draw_tradeoff,
    draw_training,
)
from mosha.tables import date_range

WARDS = {"en": ["internal", "surgery", "children", "emergency"], "zh": ["内科", "外科", "儿科", "急诊"]}
SEASONS = [month for month, share in enumerate((5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 4), 1) for _ in range(share)]


NAMES = {"en": ("ward", "sex", "month"), "zh": ("科室", "性别", "月份")}


def protect_visits(language: str) -> Any:
    patient, rows = mosha.Person("who", at_most=3), range(6000)
    account = mosha.Ledger.memory().account("visits", unit=patient, epsilon=5, delta=1e-5)
    wards, (ward, sex, month) = WARDS[language], NAMES[language]
    data = {
        "who": [n % 3000 for n in rows],
        ward: [wards[int("0001123333"[n % 10])] for n in rows],
        sex: ["FM"[n * 3 % 11 < 4 + n % 3] for n in rows],
        month: [date(2024, SEASONS[n * 5 % len(SEASONS)], 1) for n in rows],
    }
    return mosha.protect(data, unit=patient, account=account)


def draw_answers(language: Any) -> dict[str, Any]:
    zh, wards, (ward, sex, month) = language == "zh", WARDS[language], NAMES[language]
    visits = protect_visits(language)
    by_ward = visits.group_by(ward, keys=wards).count().release(epsilon=0.3)
    both = visits.pivot(ward, sex, keys={ward: wards, sex: ["F", "M"]}).release(epsilon=0.5)
    months = date_range(date(2024, 1, 1), date(2024, 12, 31), by="month")
    by_month = visits.group_by(month, keys=months).count().release(epsilon=0.3)
    return {
        "bars": by_ward.plot(title="各科就诊人次" if zh else "Visits by ward", lang=language),
        "heat": both.plot(title="各科男女就诊人次" if zh else "Visits by ward and sex", lang=language),
        "time": by_month.plot(title="每月就诊人次" if zh else "Visits by month", lang=language),
    }


def draw_streams(language: Any) -> dict[str, Any]:
    arrival = mosha.Reading()
    account = mosha.Ledger.memory().account("door", unit=arrival, epsilon=1)
    with account.open(mosha.streams.counter(unit=arrival, horizon=60, epsilon=1)) as run:
        releases = [run.step(["somebody"] * (20 + day % 7)) for day in range(60)]
    words: Any = {"title": "到目前为止的到达人数", "across": "天", "up": "人次"}
    if language == "en":
        words = {"title": "Arrivals so far", "across": "day", "up": "arrivals"}
    return {"band": draw_band(releases, **words)}


def draw_graphs(language: Any) -> dict[str, Any]:
    """A network that grows by preferential attachment: few vertices have most of the edges."""
    rng = np.random.default_rng(7)  # the network is public, so that everybody sees the same one
    ends, edges = [0, 1], {(0, 1)}
    for vertex in range(2, 4000):
        others = [int(other) for other in rng.choice(ends, 1 + int(rng.integers(5)) ** 2)]
        edges.update((other, vertex) for other in others)
        ends += [vertex, *others]
    account = mosha.Ledger.memory().account("network", unit=mosha.Edge(), epsilon=10)
    graph = mosha.graphs.protect(sorted(edges), vertices=4000, unit=mosha.Edge(), account=account)
    degrees, steps = (
        ("一个网络的度", "度不超过此值的顶点")
        if language == "zh"
        else ("Degrees of a network", "Vertices of at most this degree")
    )
    return {
        "degrees": graph.degree_histogram().release(epsilon=2).plot(title=degrees, lang=language),
        "steps": graph.cumulative_degrees().release(epsilon=5).plot(title=steps, lang=language),
    }


def draw_others(language: Any) -> dict[str, Any]:
    def say(english: str, chinese: str) -> str:
        return chinese if language == "zh" else english

    patient, rows = mosha.Person("who", at_most=1), range(3000)
    ledger = mosha.Ledger.memory()
    hospital = ledger.account(say("hospital", "医院"), unit=patient, epsilon=2)
    surgery = hospital.grant(say("surgery", "外科"), epsilon=1, expires="2099-12-31")
    data = {"who": list(rows), "days": [1 + int(28 * (n * n % 1009 / 1009) ** 2) for n in rows]}
    stays = mosha.protect(data, unit=patient, account=surgery)
    quarters = stays.quantiles("days", [0.25, 0.5, 0.75], between=(0, 30)).release(epsilon=0.5)
    alarms = np.linspace(0, 1, 200)
    found = np.maximum(1 - np.e * alarms, (1 - alarms) / np.e)
    return {
        "intervals": quarters.plot(title=say("Length of stay", "住院天数"), unit=say("days", "天"), lang=language),
        "training": draw_training(
            [0, 250, 500, 750, 1000],
            [0.1, 0.55, 0.7, 0.84, 0.9],
            [0, 0.5, 0.7, 0.86, 1.0],
            title=say("A private training", "一次私密的训练"),
            score=say("accuracy", "准确率"),
            across=say("step", "步数"),
        ),
        "tradeoff": draw_tradeoff(
            {"ε = 1": (alarms, np.maximum(found, 0))},
            title=say("What an attacker can do", "攻击者能做到什么"),
            across=say("false alarms", "误报"),
            up=say("misses", "漏报"),
        ),
        "tree": mosha.ledger.draw_ledger(ledger),
    }


def draw_all(language: Any) -> dict[str, Any]:
    mosha.set_language(language)
    return draw_answers(language) | draw_streams(language) | draw_graphs(language) | draw_others(language)


if __name__ == "__main__":
    for language, suffix in (("en", ""), ("zh", "-zh")):
        for name, figure in draw_all(language).items():
            figure.savefig(Path(sys.argv[1]) / f"{name}{suffix}.png", dpi=100)
            if name == "bars":
                darken(figure).savefig(Path(sys.argv[1]) / f"{name}-dark{suffix}.png", dpi=100)
