"""One word, one place, one default: how `delta` and `account` are given, over all public signatures."""

import inspect
from typing import Any

import pytest

from tests.house import public

OBJECTS = {
    "mosha.events.Approx": "an event is data: its fields have an order",
    "mosha.events.Plan": "an event is data",
    "mosha.guarantees.Approx": "a guarantee is data",
    "mosha.local.Comparison": "a row of a table",
    "mosha.Report": "the budget of a report is its head: Report(title, epsilon, delta)",
    "mosha.accounting.epsilon": "epsilon(event, delta) is the question itself",
    "mosha.audit.audit_accountant": "the accountant is asked at a delta",
    "mosha.federated.ClientSide.check_delta": "delta is what is checked",
    "mosha.federated.ServerSide.check_delta": "delta is what is checked",
    "mosha.learning.SearchResult.guarantee": "the guarantee at a delta",
    "mosha.mechanisms.classic_multiplier": "a formula of epsilon and delta",
}
SAID_FOR_YOU = {
    "mosha.local.compare": "predictions are compared, nothing is paid",
    "mosha.synth.compare": "methods are compared on public data",
}
SUBJECTS = {
    "mosha.Ledger.reprice": "the account is what is asked about",
    "mosha.Ledger.statement": "the account is what is asked about",
    "mosha.streams.Epochs": "an account serves the stream",
    "mosha.streams.Service": "an account serves the stream",
    "mosha.streams.serve": "an account serves the stream",
    "mosha.federated.flower": "the fields of an app",
    "mosha.federated.flower_ask": "an account asks",
    "mosha.federated.flower_mod": "the fields of an app",
}


def find_parameters(word: Any) -> Any:
    seen, found = set(), {}
    for facade, module in public.facades().items():
        for name, value in public.objects(module):
            if id(value) in seen:
                continue
            seen.add(id(value))
            try:
                parameters = inspect.signature(value).parameters  # type: ignore[arg-type]
            except (TypeError, ValueError):
                continue
            if word in parameters:
                found[f"{facade}.{name}"] = (inspect.isclass(value), parameters[word])
    return found


def test_delta_goes_by_name() -> None:
    loose = {name for name, (_, one) in find_parameters("delta").items() if one.kind is not one.KEYWORD_ONLY}
    assert loose == set(OBJECTS)


def test_no_delta_is_paid_that_nobody_said() -> None:
    """Where it may be left out it is none: 0 where it is a price of one release, None where a plan asks for it."""
    given = find_parameters("delta")
    spending = {name for name, (_, one) in given.items() if one.default not in (one.empty, None, 0.0)}
    assert spending == set(SAID_FOR_YOU)


def test_an_account_goes_by_name_where_it_pays_for_data() -> None:
    """Fields of protected data have an order; elsewhere the account comes first, where it is who acts, or by name."""
    given = find_parameters("account")
    loose = {name for name, (_, one) in given.items() if one.kind is not one.KEYWORD_ONLY}
    fields = {name for name, (is_class, _) in given.items() if is_class and name.split(".")[-1].startswith("Protected")}
    assert loose - fields - {"mosha.tables.Table"} == set(SUBJECTS)


def test_an_account_that_may_be_left_out_is_none() -> None:
    assert {one.default for _, one in find_parameters("account").values()} <= {inspect.Parameter.empty, None}


@pytest.mark.parametrize("facade", sorted(public.facades()))
def test_a_price_is_never_a_default(facade: Any) -> None:
    """epsilon, rho and mu are said, or there is none."""
    for name, value in public.objects(public.facades()[facade]):
        try:
            parameters = inspect.signature(value).parameters  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
        for word in ("epsilon", "rho", "mu"):
            if word in parameters:
                assert parameters[word].default in (inspect.Parameter.empty, None), f"{facade}.{name}({word})"
