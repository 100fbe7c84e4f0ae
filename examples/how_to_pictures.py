"""The pictures of the page *Draw pictures*, in English and Chinese: each is what a reader would get.

    python examples/how_to_pictures.py FOLDER

Every picture is drawn by `mosha.pictures` or by an answer; made-up data, real releases.
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
    draw_degrees,
    draw_intervals,
    draw_steps,
    draw_tradeoff,
    draw_training,
    draw_tree,
)
from mosha.tables import date_range

WARDS = {"en": ["internal", "surgery", "children", "emergency"], "zh": ["内科", "外科", "儿科", "急诊"]}
SEASONS = [month for month, share in enumerate((5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 4), 1) for _ in range(share)]


def protect_visits(wards: list[str]) -> Any:
    patient, rows = mosha.Person("who", at_most=3), range(6000)
    account = mosha.Ledger.memory().account("visits", unit=patient, epsilon=5, delta=1e-5)
    data = {
        "who": [n % 3000 for n in rows],
        "ward": [wards[int("0001123333"[n % 10])] for n in rows],
        "sex": ["FM"[n * 3 % 11 < 4 + n % 3] for n in rows],
        "day": [date(2024, SEASONS[n * 5 % len(SEASONS)], 1) for n in rows],
    }
    return mosha.protect(data, unit=patient, account=account)


def draw_answers(language: str) -> dict[str, Any]:
    zh, wards = language == "zh", WARDS[language]
    visits = protect_visits(wards)
    by_ward = visits.group_by("ward", keys=wards).count().release(epsilon=0.3)
    both = visits.pivot("ward", "sex", keys={"ward": wards, "sex": ["F", "M"]}).release(epsilon=0.5)
    months = date_range(date(2024, 1, 1), date(2024, 12, 31), by="month")
    by_month = visits.group_by("day", keys=months).count().release(epsilon=0.3)
    return {
        "bars": by_ward.plot(title="各科就诊人次" if zh else "Visits by ward", lang=language),
        "heat": both.plot(title="各科男女就诊人次" if zh else "Visits by ward and sex", lang=language),
        "time": by_month.plot(title="每月就诊人次" if zh else "Visits by month", lang=language),
    }


def draw_curves(language: str) -> dict[str, Any]:
    def say(english: str, chinese: str) -> str:
        return chinese if language == "zh" else english

    alarms = np.linspace(0, 1, 200)
    found = np.maximum(1 - np.e * alarms, (1 - alarms) / np.e)
    return {
        "band": draw_band(
            np.cumsum([40, 38, 43, 39, 41, 44, 37, 40]),
            12,
            title=say("Arrivals so far", "到目前为止的到达人数"),
            across=say("day", "天"),
            up=say("rows", "行"),
        ),
        "degrees": draw_degrees(
            [3, 200, 90, 40, 21, 9, 4, 2],
            6,
            title=say("Degrees of a network", "一个网络的度"),
            across=say("degree", "度"),
            up=say("vertices", "顶点数"),
        ),
        "steps": draw_steps(
            [3, 203, 293, 333, 354],
            10,
            title=say("Vertices of at most this degree", "度不超过此值的顶点"),
            across=say("degree", "度"),
        ),
        "intervals": draw_intervals(
            ["25%", "50%", "75%"],
            [3, 7, 13],
            [0.6, 0.5, 0.8],
            title=say("Length of stay", "住院天数"),
            up=say("days", "天"),
        ),
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
        "tree": draw_tree(
            [
                (say("hospital", "医院"), 0, 0.5, say("1 of 2", "2 中已用 1")),
                (say("surgery", "外科"), 1, 0.1, say("0.1 of 1", "1 中已用 0.1")),
            ],
            title=say("Budgets", "预算"),
        ),
    }


if __name__ == "__main__":
    for language, suffix in (("en", ""), ("zh", "-zh")):
        for name, figure in (draw_answers(language) | draw_curves(language)).items():
            figure.savefig(Path(sys.argv[1]) / f"{name}{suffix}.png", dpi=100)
            if name == "bars":
                darken(figure).savefig(Path(sys.argv[1]) / f"{name}-dark{suffix}.png", dpi=100)
