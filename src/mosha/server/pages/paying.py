"""Who pays for a question: the grants that somebody may choose from, and how much of each can really be spent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping

from mosha.server.asking.requests import request_id
from mosha.server.errors import BadRequest, TooMany
from mosha.server.pages.site import Data, Visit, find_standing

__all__ = [
    "check_limits",
    "choose_payer",
    "find_again",
    "find_ended",
    "is_usable",
    "key_of",
    "list_payers",
    "name_payer",
    "write_key",
]

_OVER = ("denied", "expired", "withdrawn")
_TURNS = 1000


def is_usable(grant: Data) -> bool:
    """Whether a grant can pay today."""
    return find_standing(grant) == "open"


def list_payers(visit: Visit, dataset: Data) -> list[Data]:
    """The grants from which this visitor can pay today, the newest first; `room` is what can be spent of each.

    A grant may say more than its dataset promises in all: then the promise decides.
    """
    found = []
    for grant in visit.do("listMyGrants")["grants"]:
        if grant["dataset"] == dataset["name"] and is_usable(grant):
            budget = grant["budget"]
            most = None if budget is None else dataset["promise"].get(budget["measure"])
            room = None if budget is None else budget["left"]
            if budget is not None and most is not None:
                room = min(budget["left"], max(0.0, most - budget["spent"]))
            found.append(grant | {"room": room, "most": most})
    return found


def find_ended(visit: Visit, dataset: str) -> str:
    """The day on which the last of somebody's grants for a dataset came to its end; empty where none did."""
    mine = (grant for grant in visit.do("listMyGrants")["grants"] if grant["dataset"] == dataset)
    return max((grant["expires"][:10] for grant in mine if find_standing(grant) == "expired"), default="")


def choose_payer(visit: Visit, payers: list[Data]) -> Data | None:
    """The grant that was chosen, or the newest."""
    wanted = visit.read_field("grant")
    return next((grant for grant in payers if grant["id"] == wanted), payers[0] if payers else None)


def name_payer(visit: Visit, payers: list[Data]) -> Data:
    """What a question says about its payer: nothing where there is no choice."""
    chosen = choose_payer(visit, payers)
    return {"grant": chosen["id"]} if chosen is not None and len(payers) > 1 else {}


def write_key(body: Mapping[str, object], turn: int) -> str:
    """The key under which these pages ask a question for the first time, for the second, and so on."""
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:24]
    return f"console {digest} {turn}"


def _read_turns(visit: Visit, body: Data) -> Iterator[tuple[str, str, bool]]:
    """For each turn the key, the request and whether it still stands; ends after the first that nobody used."""
    for turn in range(_TURNS):
        key = write_key(body, turn)
        identity = request_id(visit.principal.id, key)
        row = visit.service.database.row("SELECT state, outcome FROM requests WHERE id = ?", identity)
        stands = row is not None and row["state"] not in _OVER and row["outcome"] not in ("refused", "failed")
        yield key, identity if row is not None else "", stands
        if row is None:
            return


def key_of(visit: Visit, body: Data) -> str:
    """One key for the same words at the same price: asking again is reading again. What ended unpaid is over."""
    for key, identity, stands in _read_turns(visit, body):
        if stands or not identity:
            return key
    raise TooMany("server.too_many", seconds=60)


def find_again(visit: Visit, body: Data) -> str:
    """The request in which the same was asked before, whichever grant pays and whatever for; empty if there is none."""
    alone = {part: value for part, value in body.items() if part not in ("grant", "purpose")}
    find = "SELECT DISTINCT grant_id, purpose FROM requests WHERE principal = ? AND dataset = ? LIMIT 100"
    rows = visit.service.database.rows(find, visit.principal.id, body["dataset"])
    for row in rows:
        purpose = {"purpose": row["purpose"]} if row["purpose"] else {}
        for one in (alone | purpose, alone | purpose | {"grant": row["grant_id"]}):
            for _, identity, stands in _read_turns(visit, one):
                if stands:
                    return identity
    return ""


def check_limits(said: Data, above: Data | None, *, name: str) -> None:
    """Refuse a part that is larger than the whole: nobody could ever spend it."""
    if above is None or (wanted := said.get(above["measure"])) is None:
        return
    if wanted > above["limit"] * (1 + 1e-12):
        raise BadRequest(
            "server.more_than_above", parameter=above["measure"], spent="nothing", limit=above["limit"], name=name
        )
