"""Laws of the door: priced before data, refused means unread, a failure tells nothing and stays paid."""

import pickle
import threading
import traceback
from typing import Any, NoReturn

import pytest

import mosha
from mosha import events
from mosha.core import errors
from mosha.core.account import Account, Run
from mosha.core.language import phrase
from mosha.core.measurement import Measurement, Rng, StatePolicy
from mosha.core.release import Receipt

SECRET = "HIV-positive-7319"


class Coins:
    """A generator that says of itself whether it can be predicted."""

    def __init__(self, *, secure: Any) -> None:
        self.secure = secure

    def bytes(self, n: Any, /) -> bytes:
        return bytes(n)


class Untouchable:
    """Data that cannot be looked at: whoever reads it, fails the test."""

    def __getattribute__(self, name: Any) -> NoReturn:
        raise AssertionError(f"the data was read: {name}")

    def __iter__(self) -> NoReturn:
        raise AssertionError("the data was read")

    __len__ = __bool__ = __eq__ = __iter__  # type: ignore[assignment]
    __hash__ = None


class Purse(Account):
    """The smallest account there is: a limit on the number of basic events, kept in memory."""

    name = "visits"
    unit = mosha.Person("patient_id")

    def __init__(self, limit: Any = 10) -> None:
        self.limit, self.spent, self.log, self.known = limit, 0, [], {}  # type: ignore[var-annotated]

    def _reserve(self, measurement: Any, key: Any) -> Any:
        cost = sum(count for _, count in measurement.event.parts())
        if self.spent + cost > self.limit:
            raise errors.BudgetExceeded(
                account=self.name, measure="events", asked=cost, used=self.spent, limit=self.limit
            )
        self.spent += cost
        self.log.append("reserved")
        return Payment(self, measurement)

    def _randomness(self) -> Any:
        return Coins(secure=True)


class Payment:
    def __init__(self, purse: Any, measurement: Any) -> None:
        self.purse, self.log = purse, purse.log
        self.receipt = Receipt(
            account=purse.name,
            entry="1",
            unit=measurement.unit,
            event=measurement.event,
            measure="events",
            cost=1,
            spent=purse.spent,
            limit=purse.limit,
        )

    def find_answer(self, step: Any) -> tuple[Any, ...]:
        return step in self.purse.known, self.purse.known.get(step)

    def note_start(self, step: Any) -> None:
        self.log.append(f"started {step}")

    def note_answer(self, step: Any, answer: Any) -> None:
        self.log.append(f"released {step}")

    def note_unreached(self, step: Any) -> None:
        self.log.append(f"unreached {step}")

    def note_failure(self, step: Any) -> None:
        self.log.append(f"failed {step}")

    def note_interruption(self, step: Any) -> None:
        self.log.append(f"interrupted {step}")

    def note_cancellation(self, step: Any) -> None:
        self.log.append(f"cancelled {step}")

    def close(self, unused: Any) -> None:
        self.log.append(f"closed, {unused} unused")


def counting(step: Any = None, **changes: Any) -> Any:
    answer = step or (lambda state, data, ask, rng: (len(data), state + 1))
    fields: dict[str, Any] = {
        "unit": Purse.unit,
        "event": events.Laplace(1),
        "step": answer,
        "init": lambda: 0,
        "name": "count",
    }
    return Measurement(**fields | changes)


def breaking(error: Any) -> Any:
    def step(state: Any, data: Any, ask: Any, rng: Any) -> NoReturn:
        raise error

    return counting(step)


def test_paid_then_started_then_released() -> None:
    purse = Purse()
    run = purse.open(counting())
    assert purse.log == ["reserved"]
    release = run.step(["a", "b"])
    assert purse.log == ["reserved", "started 1", "released 1"]
    assert release.value == 2
    assert release.receipt == run.receipt


def test_opening_reads_no_data_because_it_is_given_none() -> None:
    assert "data" not in Account.open.__annotations__
    Purse().open(counting())


def test_refused_means_unread_and_unspent() -> None:
    purse = Purse(limit=1)
    with pytest.raises(errors.BudgetExceeded) as refusal:
        purse.open(counting(event=events.Laplace(1) * 2)).step(Untouchable())
    assert purse.spent == 0
    assert purse.log == []
    assert (refusal.value.asked, refusal.value.used, refusal.value.limit) == (2, 0, 1)


def test_one_step_more_than_was_paid_for_is_refused_unread() -> None:
    run = Purse().open(counting(event=events.Laplace(1) * 3, horizon=3))
    assert [run.step("x" * n).value for n in range(3)] == [0, 1, 2]
    assert run.remaining == 0
    with pytest.raises(errors.HorizonExceeded):
        run.step(Untouchable())


def test_state_passes_from_step_to_step() -> None:
    remember = lambda state, data, ask, rng: (state + data, state + data)
    run = Purse().open(counting(remember, event=events.Laplace(1) * 3, horizon=3))
    assert [run.step(n).value for n in (1, 10, 100)] == [1, 11, 111]


def test_the_question_of_a_step_is_handed_on() -> None:
    ask_back = lambda state, data, ask, rng: (ask, state)
    assert Purse().open(counting(ask_back)).step([], ask="how many?").value == "how many?"


def test_a_closed_run_reads_nothing_and_hands_back_what_was_not_taken() -> None:
    purse = Purse()
    with purse.open(counting(event=events.Laplace(1) * 5, horizon=5)) as run:
        run.step("x")
    run.close()
    assert purse.log[-1] == "closed, 4 unused"
    assert purse.log.count("closed, 4 unused") == 1
    with pytest.raises(errors.RunClosed):
        run.step(Untouchable())


@pytest.mark.parametrize(
    "unit",
    [mosha.Row(), mosha.Person("name"), mosha.Person("patient_id", neighbors="replace-one"), mosha.Client()],  # type: ignore[arg-type]
)
def test_one_account_protects_one_unit(unit: Any) -> None:
    purse = Purse()
    with pytest.raises(errors.WrongUnit, match="Nothing was spent"):
        purse.open(counting(unit=unit))
    assert purse.spent == 0


def test_limits_of_bounding_do_not_make_another_unit() -> None:
    Purse().open(counting(unit=mosha.Person("patient_id", at_most=3))).step("x")


@pytest.mark.parametrize(
    "rng", [Coins(secure=False), Coins(secure=1), Coins(secure="yes"), object(), 42], ids=lambda r: type(r).__name__
)
def test_a_generator_that_is_not_secure_is_refused_before_anything_is_spent(rng: Any) -> None:
    purse = Purse()
    with pytest.raises(errors.InsecureRandomness):
        purse.open(counting(), rng=rng)
    assert purse.spent == 0


def test_a_seeded_generator_is_refused_before_anything_is_spent() -> None:
    noise = pytest.importorskip("mosha.noise")
    if not hasattr(noise, "SeededRandom"):
        pytest.skip("mosha.noise is not there yet")
    purse = Purse()
    seeded = noise.SeededRandom(1)
    assert isinstance(seeded, Rng)
    with pytest.raises(errors.InsecureRandomness):
        purse.open(counting(), rng=seeded)
    assert purse.spent == 0


@pytest.mark.parametrize("key", ["", 1, b"key"])
def test_a_key_that_is_no_text_is_refused(key: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        Purse().open(counting(), key=key)


@pytest.mark.parametrize("wrong", [None, events.Laplace(1), counting().step])
def test_only_a_measurement_can_be_opened(wrong: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        Purse().open(wrong)


class Panic(BaseException):
    """What native code throws past `except Exception`."""


def every_text(error: Any) -> Any:
    """All that a log would show of an error, and all that hangs on it."""
    shown = "".join(traceback.format_exception(error)) + repr(error) + str(vars(error))
    frames = [frame.f_locals for frame, _ in traceback.walk_tb(error.__traceback__)]
    private = [names for names in frames if "planted" in names]
    return shown + str(private)


@pytest.mark.parametrize("kind", [ValueError, KeyError, ZeroDivisionError, MemoryError, RecursionError, Panic])
def test_a_step_that_breaks_tells_nothing_and_stays_paid(kind: Any) -> None:
    def step(state: Any, data: Any, ask: Any, rng: Any) -> None:
        planted = data
        try:
            raise OSError(planted)
        except OSError as first:
            raise kind(planted) from first

    purse = Purse()
    run = purse.open(counting(step))
    with pytest.raises(errors.StepFailed) as failure:
        run.step(SECRET)
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None
    assert SECRET not in every_text(failure.value)
    assert purse.log == ["reserved", "started 1", "failed 1"]
    assert purse.spent == 1
    with pytest.raises(errors.HorizonExceeded):
        run.step(Untouchable())


def test_an_error_of_mosha_passes_without_what_led_to_it() -> None:
    def step(state: Any, data: Any, ask: Any, rng: Any) -> None:
        planted = data
        try:
            int(planted)
        except ValueError as reason:
            problem = errors.DataError("column 'age' is not a number.")
            problem.add_note(planted)
            raise problem from reason

    purse = Purse()
    with pytest.raises(errors.DataError, match="column 'age' is not a number") as failure:
        purse.open(counting(step)).step(SECRET)
    assert failure.value.__cause__ is None
    assert failure.value.__context__ is None
    assert SECRET not in every_text(failure.value)
    assert purse.log[-1] == "failed 1"


@pytest.mark.parametrize(
    "problem",
    [
        errors.DataError("column 'age' is not there."),
        errors.InvalidParameter("core.not_positive", parameter="ask", value=-1.0, spent="nothing"),
        errors.MissingExtra("plot", needed_for=phrase("mechanisms.picture")),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_an_error_inside_a_step_says_that_the_price_stays_paid(problem: Any) -> None:
    def step(state: Any, data: Any, ask: Any, rng: Any) -> NoReturn:
        raise problem

    for _ in range(2):  # told once, however often the same error is raised
        with pytest.raises(type(problem)) as failure:
            Purse().open(counting(step)).step(1)
        assert str(failure.value).endswith(" The price of this step stays paid.")
        assert str(failure.value).count("paid") == 1
        assert "Nothing was spent" not in str(failure.value)
        assert str(pickle.loads(pickle.dumps(failure.value))) == str(failure.value)


def test_data_that_could_not_be_reached_may_be_asked_for_again_under_the_same_payment() -> None:
    attempts = []

    def step(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        attempts.append(ask)
        if len(attempts) == 1:
            raise errors.SourceUnavailable("the data base did not answer. Try again: it is paid.")
        return 5, state

    purse = Purse()
    run = purse.open(counting(step))
    with pytest.raises(errors.SourceUnavailable):
        run.step("x")
    assert run.step("x").value == 5
    assert purse.spent == 1
    assert "failed 1" not in purse.log
    assert purse.log[1:3] == ["started 1", "unreached 1"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_the_owner_of_the_process_may_stop_it(kind: Any) -> None:
    with pytest.raises(kind):
        Purse().open(breaking(kind())).step("x")


def test_an_answer_that_was_kept_is_returned_without_reading_the_data() -> None:
    purse = Purse()
    purse.known = {1: "kept"}
    assert purse.open(counting(), key="again").step(Untouchable()).value == "kept"
    assert purse.log == ["reserved"]


def in_chunks(step: Any = None, **changes: Any) -> Any:
    """A measurement that answers for as many steps as there are letters."""
    taken = step or (lambda state, data, ask, rng: (data, state + len(data)))
    chunks = StatePolicy(passed=lambda state: state, covers=len)
    return counting(taken, **{"event": events.Laplace(1) * 5, "horizon": 5, "state": chunks} | changes)


def test_an_answer_for_several_steps_is_held_to_those_that_are_left_before_it_starts() -> None:
    purse = Purse()
    run = purse.open(in_chunks())
    run.step("abc")
    before = list(purse.log)
    with pytest.raises(errors.HorizonExceeded, match="2 of the 5"):
        run.step("abc")
    assert purse.log == before
    assert run.step("ab").value == "ab"
    assert run.remaining == 0


def test_several_steps_that_break_are_all_paid() -> None:
    def step(state: Any, data: Any, ask: Any, rng: Any) -> tuple[Any, ...]:
        if "x" in data:
            raise ValueError(SECRET)
        return data, state + len(data)

    run = Purse().open(in_chunks(step))
    run.step("ab")
    with pytest.raises(errors.StepFailed):
        run.step("xx")
    assert run.remaining == 1
    with pytest.raises(errors.HorizonExceeded):
        run.step("ab")


def test_several_steps_that_were_interrupted_are_not_handed_back() -> None:
    def stopped(state: Any, data: Any, ask: Any, rng: Any) -> NoReturn:
        raise KeyboardInterrupt

    purse = Purse()
    run = purse.open(in_chunks(stopped))
    with pytest.raises(KeyboardInterrupt):
        run.step("abc")
    run.close()
    assert purse.log[-1] == "closed, 2 unused"


def test_an_answer_that_waits_goes_before_the_end_of_the_horizon(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(self: Any, step: Any, answer: Any) -> NoReturn:
        self.purse.known[step] = answer  # as a ledger does, it keeps the answer for later
        raise errors.LedgerUnavailable("the disk is full")

    run = Purse().open(in_chunks())
    with monkeypatch.context() as patch:
        patch.setattr(Payment, "note_answer", away)
        with pytest.raises(errors.LedgerUnavailable):
            run.step("abcde")
    assert run.remaining == 0
    assert run.step(Untouchable()).value == "abcde"
    with pytest.raises(errors.HorizonExceeded):
        run.step(Untouchable())


def test_an_answer_that_was_lost_is_not_drawn_again_beyond_the_horizon(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(self: Any, step: Any, answer: Any) -> NoReturn:
        raise errors.AlreadyReleased("another holder has taken over")

    run = Purse().open(in_chunks())
    monkeypatch.setattr(Payment, "note_answer", lost)
    with pytest.raises(errors.AlreadyReleased):
        run.step("abcde")
    with pytest.raises(errors.HorizonExceeded):
        run.step("a")


def test_threads_never_take_more_steps_than_were_paid_for() -> None:
    run = Purse(limit=50).open(counting(event=events.Laplace(1) * 50, horizon=50))
    taken, refused = [], []

    def take() -> None:
        for _ in range(20):
            try:
                taken.append(run.step("x").step)
            except errors.HorizonExceeded:
                refused.append(1)

    threads = [threading.Thread(target=take) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 51))
    assert len(refused) == 50


def test_an_account_cannot_be_made_without_a_way_to_pay() -> None:
    with pytest.raises(TypeError):
        Account()  # type: ignore[abstract]


def test_a_run_is_made_by_an_account() -> None:
    assert isinstance(Purse().open(counting()), Run)
