"""Repeated collection: one permanent answer, paid once, whatever the number of reports and restarts."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mosha
from mosha.core.errors import BudgetExceeded, InvalidParameter
from mosha.local import Device, DeviceRandom, Frequency, Repeated, Survey

SURVEY = Repeated(["a", "b", "c"], permanent=2.0, epsilon=1.0)


def account(path: Any, epsilon: float = 4.0) -> Any:
    return mosha.Ledger(path).account("phone", unit=mosha.Own(), epsilon=epsilon)


def test_one_report_has_exactly_the_law_of_randomized_response_at_epsilon() -> None:
    others = 2
    first, kept = SURVEY._first.truth, SURVEY.truth_rate
    told = first * kept + (1 - first) * (1 - kept) / others
    assert told == SURVEY.randomizer.truth
    assert 0 < kept < 1


def test_a_lifetime_of_reports_costs_one_permanent_answer_across_restarts(tmp_path: Path) -> None:
    for _ in range(3):
        purse = account(tmp_path / "phone.db")
        device = Device(account=purse)
        for value in "abcab":
            device.report(SURVEY, value)
        assert purse.spent == pytest.approx(2.0)


def test_a_repeated_survey_makes_no_report_without_a_device() -> None:
    """Each would be fresh: a year of them would cost 365 times epsilon, and no account would know."""
    with pytest.raises(InvalidParameter, match="Device"):
        SURVEY.report("a")


def test_later_values_are_not_read(tmp_path: Path) -> None:
    """Every path reads the permanent answer that the ledger keeps: no report moves with the value that is given later.

    A report tells the permanent answer with probability 0.99964 here: 12 others of 200 are below 1e-20. The permanent
    answer is "a" but for 1.3e-5 of the time, so that it is read from the ledger and not assumed.
    """
    purse = account(tmp_path / "phone.db", epsilon=13.0)
    survey = Repeated(["a", "b", "c"], permanent=12.0, epsilon=8.0)
    device = Device(account=purse)
    device.report(survey, "a")
    permanent = purse.open(survey.permanent_measurement, key=f"{survey.id.hex()}/always").step("c").value[0]
    for later in "bc":
        told = [device.report(survey, later)[1] for _ in range(100)]
        assert told.count(permanent) > 88
    assert purse.spent == pytest.approx(12.0)


def test_a_new_period_costs_again_and_the_limit_holds(tmp_path: Path) -> None:
    device = Device(account=account(tmp_path / "phone.db"))
    device.report(SURVEY, "a", period="2026")
    device.report(SURVEY, "b", period="2027")
    with pytest.raises(BudgetExceeded):
        device.report(SURVEY, "b", period="2028")
    device.report(SURVEY, "c", period="2026")


def test_a_value_that_cannot_be_told_costs_nothing(tmp_path: Path) -> None:
    purse = account(tmp_path / "phone.db")
    with pytest.raises(InvalidParameter, match="outside the domain"):
        Device(account=purse).report(SURVEY, "zebra")
    assert purse.spent == 0


def test_the_collector_estimates_from_one_report_a_device() -> None:
    reports = []
    for value in ["a"] * 3000 + ["b"] * 1000:
        permanent = SURVEY._first.draw(SURVEY._encode(value), DeviceRandom())
        reports.append(SURVEY.report_permanent(permanent, DeviceRandom()))
    shares = SURVEY.estimate(reports)
    assert abs(shares.raw[0] - 0.75) < 2 * shares.error(1 - 1e-9)[0]


def test_bad_declarations_and_devices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter):
        Repeated(["a", "b"], permanent=1.0, epsilon=1.0)
    with pytest.raises(InvalidParameter):
        Device(account=mosha.Ledger.memory().account("table", unit=mosha.Row(), epsilon=1.0))
    with pytest.raises(InvalidParameter):
        Device(account=account(tmp_path / "p.db")).report(Frequency(["a", "b"], epsilon=1.0), "a")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Device(account=account(tmp_path / "p.db")).report(SURVEY, "a", period="")
    assert Survey.from_json(SURVEY.to_json()).id == SURVEY.id


def test_the_device_and_its_ledger_load_no_numpy(tmp_path: Path) -> None:
    script = (
        "import sys, mosha\n"
        f"purse = mosha.Ledger({str(tmp_path / 'phone.db')!r}).account('phone', unit=mosha.Own(), epsilon=4)\n"
        "survey = mosha.local.Repeated(['a', 'b'], permanent=2, epsilon=1)\n"
        "for _ in range(3): mosha.local.Device(account=purse).report(survey, 'a')\n"
        "mosha.local.Location((10, 20), 100, 0.01).report((10, 20))\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
