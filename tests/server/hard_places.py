"""What is hard to show: hundreds of groups, very long names, very small and very large numbers, what ended badly."""

from typing import Any

LONG_NAME = "average_number_of_nights_between_two_admissions_of_the_same_person_in_one_calendar_year"
LONG_TITLE = "Krankenhausaufenthaltsdauererfassungsverordnung · " + "住院患者两次入院之间的平均间隔天数" * 3
PURPOSE = "二〇二六年度各病区住院时长与再入院情况的年度报告，供医院管理委员会讨论床位分配时使用。" * 3  # noqa: RUF001
ROOMS = [f"room {number:03d}" for number in range(500)]


def declare(house: Any, name: str, columns: dict[str, Any], rows: list[str], **more: Any) -> None:
    """A table that somebody registered and somebody else signed, with a grant for li."""
    path = house.service.settings.folder / "data" / f"{name}.csv"
    path.write_text("\n".join([",".join(["pid", *columns]), *rows]) + "\n", encoding="utf-8")
    said = {"name": name, "source": {"path": f"{name}.csv"}, "promise": {"epsilon": 1000.0}}
    said |= {"declaration": {"unit": {"person": "pid"}, "columns": {"pid": {}} | columns}}
    reply = house.call("wang", "POST", "/datasets", said | more)
    assert reply.status_code == 201, reply.text
    assert house.call("zhao", "POST", f"/datasets/{name}/countersign", {}).status_code == 200
    grant = {"principal": "li", "epsilon": 900.0, "expires": "2099-01-01"} | more.get("grant", {})
    reply = house.call("wang", "POST", f"/datasets/{name}/grants", grant)
    assert reply.status_code == 201, reply.text


def prepare_hard(house: Any) -> dict[str, dict[str, str]]:
    """Everything hard, and where who sees it."""
    law = {"origin": "law"}
    declare(
        house,
        "rooms",
        {"room": {"keys": ROOMS, **law}, "grams": {"between": [0, 1e-6], "type": "real", **law}},
        [f"{n},room {n % 500:03d},{n % 7 * 1e-7}" for n in range(3000)],
    )
    declare(
        house,
        "money",
        {LONG_NAME: {"between": [0, 10**12], "type": "integer", **law}, "side": {"keys": ["左", "right"], **law}},
        [f"{n},{n * 10**8},{'左' if n % 2 else 'right'}" for n in range(3000)],
        title=LONG_TITLE,
    )
    for name in ("frozen", "retired", "lapsed", "spent"):
        declare(house, name, {"nights": {"between": [0, 30], "type": "integer", **law}}, ["1,3", "2,4"])
    asked = {
        "many-groups": ("rooms", "SELECT room, COUNT(*) AS n FROM rooms GROUP BY room", 1.0),
        "tiny": ("rooms", "SELECT AVG(grams) AS grams FROM rooms", 1.0),
        "huge": ("money", f"SELECT side, SUM({LONG_NAME}) AS total FROM money GROUP BY side", 0.1),
        "several": ("money", f"SELECT COUNT(*) AS n, AVG({LONG_NAME}) AS a, SUM({LONG_NAME}) AS s FROM money", 3.0),
        "noisy": ("frozen", "SELECT COUNT(*) AS n FROM frozen", 0.001),
        "spent": ("spent", "SELECT COUNT(*) AS n FROM spent", 900.0),
    }
    found = {}
    for name, (dataset, sql, epsilon) in asked.items():
        found[name] = house.answer("li", sql, key=name, dataset=dataset, epsilon=epsilon)["id"]
    denied = house.ask("li", key="denied", epsilon=0.51, purpose=PURPOSE).json()["id"]
    house.call("zhao", "POST", f"/requests/{denied}/decision", {"verdict": "deny", "reason": PURPOSE})
    waiting = house.ask("li", key="long wait", epsilon=0.52, purpose=PURPOSE).json()["id"]
    gone = house.ask("li", key="gone", epsilon=0.53, purpose="x").json()["id"]
    house.call("li", "POST", f"/requests/{gone}/withdraw", {})
    house.call("wang", "POST", "/datasets/frozen/freeze", {"reason": "a fault was found"})
    house.call("wang", "POST", "/datasets/retired/retire", {"reason": "the study is over"})
    house.service.database.run("UPDATE grants SET expires = '2020-01-01' WHERE dataset = 'lapsed'")
    requests = {"denied": denied, "waiting": waiting, "withdrawn": gone} | found
    hard = "/ask/money?mode=form&measure=average&column=" + LONG_NAME
    li = {f"hard-{name}": f"/requests/{identity}" for name, identity in requests.items()}
    li |= {f"hard-ask-{name}": f"/ask/{name}" for name in ("frozen", "retired", "lapsed", "spent", "rooms")}
    li |= {"hard-ask-money": hard, "hard-home": "/", "hard-requests": "/requests", "hard-money": "/datasets/money"}
    li |= {"hard-rooms-forecast": "/ask/rooms?mode=form&measure=average&column=grams&by=room&epsilon=0.0001"}
    return {
        "li": li,
        "wang": {f"hard-{name}": f"/datasets/{name}" for name in ("frozen", "retired", "lapsed", "rooms", "money")}
        | {"hard-datasets": "/datasets", "hard-declare-rooms": "/datasets/rooms/declaration"},
        "zhao": {"hard-review": "/review", "hard-frozen-officer": "/datasets/frozen"},
        "sun": {"hard-audit": "/audit"},
    }
