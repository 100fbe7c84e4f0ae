"""`mosha stream`: counts, sums and alarms over time, from a file or a pipe, one JSON line for each step."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mosha.cli.option_groups import spread_options
from mosha.cli.stream.files import ClockFile, check_file, checked_time, feed, header_of, rows_of, stamp
from mosha.core.errors import HorizonExceeded, InvalidParameter
from mosha.core.language import say
from mosha.core.number import strict_probability
from mosha.core.unit import Person, Reading, Unit, Window

if TYPE_CHECKING:
    from mosha.core import release as releases
    from mosha.core.measurement import Measurement
    from mosha.streams import Clock, Service

__all__ = ["app"]

TOGETHER = 1024  # steps of a whole file that are published with one write of the state
LONGEST = 1 << 24  # more steps than this need a declared end

app = typer.Typer(no_args_is_help=True, help="Statistics published step by step, paid for once.")

File = Annotated[str, typer.Argument(help="A CSV file with a header, or - for standard input.")]
Time = Annotated[str, typer.Option("--time", help="The column that holds the time of each row.")]
Every = Annotated[str, typer.Option(help="The length of a step: 30s, 15min, 1h, 1d.")]
Start = Annotated[
    str | None,
    typer.Option(
        help="When the first step begins (public, never from the data): 2026-01-01. By default now, and the "
        "file is followed from now on."
    ),
]
Horizon = Annotated[int | None, typer.Option(help="How many steps are paid for; a very long time by default.")]
Until = Annotated[str | None, typer.Option(help="Publish up to this time (public); the whole horizon by default.")]
PersonColumn = Annotated[str | None, typer.Option("--person", help="The column that says whose row it is.")]
AtMost = Annotated[int | None, typer.Option(help="How many steps of one person count; all by default.")]
Apart = Annotated[int, typer.Option(help="Steps between two that count of one person.")]
Within = Annotated[int | None, typer.Option("--window", help="Hide any window of so many steps instead of persons.")]
Epsilon = Annotated[float | None, typer.Option(help="The price of the whole stream, or:")]
Rho = Annotated[float | None, typer.Option(help="The price in zero-concentrated differential privacy.")]
Delta = Annotated[float, typer.Option(help="Allows Gaussian noise.")]
Release = Annotated[str, typer.Option(help="'running', 'instant', 'sliding:96' or 'decayed:0.99'.")]
Lateness = Annotated[str, typer.Option(help="How long a step waits for rows that come late.")]
Ledger = Annotated[str | None, typer.Option(help="The ledger that pays; FILE.privacy.db by default.")]
State = Annotated[str | None, typer.Option(help="Where the stream keeps its state; FILE.NAME.stream by default.")]
Name = Annotated[str, typer.Option(help="The stream's name: its account and its payment.")]
Moved = Annotated[bool, typer.Option("--moved", help="The state was copied here, and the original is gone for ever.")]
Follow = Annotated[bool, typer.Option("--follow", help="Wait for rows; the machine's clock ends the steps.")]
Plot = Annotated[bool, typer.Option("--plot", help="Draw each step on standard error.")]
Confidence = Annotated[float, typer.Option(help="How often the noise stays within the error bars.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Errors are JSON too; steps always are, one line each.")]


@dataclass(kw_only=True)
class Options:
    """What every stream is asked for."""

    time_column: Time
    every: Every
    start: Start = None
    horizon: Horizon = None
    until: Until = None
    person: PersonColumn = None
    at_most: AtMost = None
    apart: Apart = 1
    window: Within = None
    epsilon: Epsilon = None
    rho: Rho = None
    delta: Delta = 0.0
    lateness: Lateness = "0"
    ledger: Ledger = None
    state: State = None
    moved: Moved = False
    follow: Follow = False
    plot: Plot = False
    confidence: Confidence = 0.95
    as_json: JsonLines = False


@app.command()
@spread_options
def count(
    file: File,
    *,
    release: Release = "running",
    name: Name = "count",
    given: Options,
) -> None:
    """How many rows there were, at each step or so far."""
    from mosha import streams  # noqa: PLC0415  (a command that fails early loads nothing)

    with _name_options():
        made = streams.counter(**_read_arguments(given, release))
    _serve(made, file, name, given)


@app.command("sum")
@spread_options
def total(
    file: File,
    *,
    column: Annotated[str, typer.Option(help="The column that is added up.")],
    between: Annotated[tuple[float, float], typer.Option(help="Values are clamped into this range: low high.")],
    release: Release = "running",
    name: Name = "sum",
    given: Options,
) -> None:
    """The sum of a column, each value clamped into the range --between LOW HIGH."""
    from mosha import streams  # noqa: PLC0415

    with _name_options():
        made = streams.total(between=between, column=column, **_read_arguments(given, release))
    _serve(made, file, name, given, needs=(column,))


@app.command()
@spread_options
def alarm(
    file: File,
    *,
    threshold: Annotated[list[float], typer.Option(help="An alarm when a step has so many rows; may be given again.")],
    alarms: Annotated[int, typer.Option(help="How many alarms are paid for.")] = 1,
    release: Release = "instant",
    name: Name = "alarm",
    given: Options,
) -> None:
    """An alarm when the number of rows passes a threshold; the price depends on the number of alarms, not on time."""
    from mosha import streams  # noqa: PLC0415

    with _name_options():
        made = streams.alarm(threshold=threshold, alarms=alarms, **_read_arguments(given, release))
    _serve(made, file, name, given)


@contextmanager
def _name_options() -> Iterator[None]:
    """An error about an argument names the option here: `at_most` is --at-most."""
    try:
        yield
    except InvalidParameter as problem:
        if problem.parameter is not None and not problem.parameter.startswith("-"):
            problem.parameter = "--" + problem.parameter.replace("_", "-")
        raise


def _read_arguments(given: Options, release: str) -> dict[str, Any]:
    """What all three ask in the same words."""
    if (given.epsilon is None) == (given.rho is None):
        raise InvalidParameter("cli.one_price", parameter="--epsilon", spent="nothing")
    if given.delta and given.epsilon is None:
        raise InvalidParameter("cli.goes_with", parameter="--delta", others=["--epsilon"], spent="nothing")
    if given.apart != 1 and (given.person is None or given.window is not None):
        raise InvalidParameter("cli.apart_without_person", parameter="--apart", spent="nothing")
    return {
        "unit": _unit(given.person, given.at_most, given.window),
        "horizon": given.horizon,
        "apart": given.apart,
        "release": _readout(release),
        "epsilon": given.epsilon,
        "delta": given.delta or None,
        "rho": given.rho,
    }


def _unit(person: str | None, at_most: int | None, window: int | None) -> Unit:
    if person is None:
        if at_most is not None or window is not None:
            raise typer.BadParameter(say("cli.about_persons"))
        return Reading()
    if window is not None:
        return Window(person, window)
    return Person(person, at_most=at_most)


def _readout(text: str) -> Any:
    from mosha.streams import Decayed, Sliding  # noqa: PLC0415

    kind, _, value = text.partition(":")
    try:
        if kind == "sliding":
            return Sliding(int(value))
        return Decayed(float(value)) if kind == "decayed" else text
    except ValueError:
        raise typer.BadParameter(say("cli.release_words")) from None


def _serve(made: Measurement, file: str, name: str, given: Options, *, needs: tuple[str, ...] = ()) -> None:
    """Check what is public, pay, and publish step by step."""
    import mosha  # noqa: PLC0415
    from mosha.core.fingerprint import fingerprint  # noqa: PLC0415
    from mosha.ledger.storage.key import find_key_file  # noqa: PLC0415
    from mosha.streams import Clock, serve  # noqa: PLC0415
    from mosha.streams.service.checkpoint import check_place  # noqa: PLC0415

    check_file(file, [given.time_column, *needs, *filter(None, [getattr(made.unit, "column", None)])])
    stem = "stdin" if file == "-" else file
    place = given.state or f"{stem}.{name}.stream"
    kept = ClockFile(f"{place}.clock", given.start, given.every)
    late = 0.0 if given.lateness == "0" else given.lateness
    with _name_options():
        clock = Clock(start=kept.start, every=given.every, column=given.time_column, lateness=late)
        until = None if given.until is None else checked_time(given.until)
        strict_probability("confidence", given.confidence)
        check_place(place)
    if until is not None and until < clock.start + clock.every:
        raise InvalidParameter(
            "cli.until_before_first_step", parameter="--until", begin=stamp(clock.start), spent="nothing"
        )
    following = given.follow or kept.live
    if not following and until is None and made.horizon > LONGEST:
        raise InvalidParameter("cli.no_end", parameter="--until")
    made = replace(made, question=fingerprint(made.question, made.unit, clock.start, clock.every))
    with closing(mosha.Ledger(given.ledger or f"{stem}.privacy.db", key=find_key_file())) as book:
        account = _account(book, name, made)
        with serve(account, made, name=name, state=place, moved=given.moved) as service:
            kept.save()
            clock.closed = service.taken
            typer.echo(f"mosha: {_describe_payment(service)}", err=True)
            begins = say("cli.stream_waits" if following else "cli.stream_begins", when=stamp(clock.start))
            typer.echo(f"mosha: {begins}", err=True)
            show = _Show(service, clock, kept, given.confidence, plot=given.plot)
            show.again()
            try:
                (_following if following else _publish_whole)(file, clock, service, show, until)
            except HorizonExceeded:  # an alarm that has rung as often as was paid for
                typer.echo(f"mosha: {say('cli.alarms_given')}", err=True)


def _describe_payment(service: Service) -> str:
    """What this run of the command costs: a stream that goes on was paid when it began."""
    if not service.taken:
        return str(service.receipt)
    if not service.remaining:
        return say("cli.stream_over", steps=service.taken)
    return say("cli.stream_goes_on", steps=service.taken)


def _account(book: Any, name: str, made: Measurement) -> Any:
    """The stream's own account: just enough for this stream, under the rule that its noise is priced by best."""
    known = next((account for account in book.accounts() if account.name == name), None)
    if known is not None:
        return known
    from mosha.accounting.measures import concentrated, pure  # noqa: PLC0415

    epsilon, delta = pure.cost_of(made.event).amount, pure.cost_of(made.event).delta
    if delta == 0 and epsilon < float("inf"):
        return book.account(name, unit=made.unit, epsilon=epsilon)
    return book.account(name, unit=made.unit, rho=concentrated.rho(made.event)[0])


class _Show:
    """Writes one JSON line for each step, and a bar where one was asked for."""

    def __init__(self, service: Service, clock: Clock, kept: ClockFile, confidence: float, *, plot: bool) -> None:
        self._service, self._clock, self._kept = service, clock, kept
        self._confidence, self._plot = confidence, plot
        self._largest = 1.0

    def __call__(self, batches: list[dict[str, list[object]]]) -> None:
        if len(batches) > 1 and hasattr(self._service.stream, "error_at"):
            return self._print_release(self._service.steps(batches))
        for batch in batches:
            self._print_release(self._service.step(batch))
        return None

    def again(self) -> None:
        """What was published and not shown before a stop is shown now."""
        if self._service.last is not None and self._kept.shown < self._service.taken:
            self._print_release(self._service.last)

    def _print_release(self, release: releases.Release) -> None:
        values = release.value.tolist() if hasattr(release.value, "tolist") else [release.value]
        for step, value in enumerate(values, release.step - len(values) + 1):
            if step > self._kept.shown:
                self._line(step, value)
        sys.stdout.flush()
        self._kept.save(shown=release.step)

    def _line(self, step: int, value: object) -> None:
        when = stamp(self._clock.start + (step - 1) * self._clock.every)
        line: dict[str, Any] = {"step": step, "time": when}
        stream: Any = self._service.stream
        if isinstance(value, dict):
            line |= value
        else:
            width = stream.error_at(step, self._confidence) if hasattr(stream, "error_at") else None
            line |= {"value": value, "error": width, "confidence": self._confidence}
        typer.echo(json.dumps(line))
        if self._plot:
            self._bar(when, float(line.get("value", line.get("gap") or 0.0)))

    def _bar(self, when: str, value: float) -> None:
        self._largest = max(self._largest, abs(value))
        typer.echo(f"{when} {'█' * max(0, round(50 * value / self._largest)):<50} {value:,.1f}", err=True)


def _publish_whole(file: str, clock: Clock, service: Service, show: _Show, until: float | None) -> None:
    """Read everything there is, then publish every step up to the end that was declared."""
    with sys.stdin if file == "-" else Path(file).open(newline="", encoding="utf-8") as lines:
        header = header_of(next(lines, ""), clock.column)
        clock.declare(header)
        clock.add(rows_of(lines, header))
    last = service.taken + service.remaining
    if until is not None:
        last = min(last, int((until - clock.start) // clock.every))
    while clock.closed < last:
        show([clock.close_next() for _ in range(min(TOGETHER, last - clock.closed))])


def _following(file: str, clock: Clock, service: Service, show: _Show, until: float | None) -> None:
    """Read what comes; a step ends when the machine's clock says so. Ends with the horizon, --until, or the pipe."""
    end = until if until is not None else float("inf")
    queue: SimpleQueue[str | None] = SimpleQueue()
    threading.Thread(target=feed, args=(file, queue), daemon=True).start()
    header: list[str] = []
    open_ended = True
    while service.remaining and (open_ended or clock.start + clock.closed * clock.every < time.time()):
        try:
            while (line := queue.get(timeout=min(0.05, clock.every / 4))) is not None:
                if header:
                    clock.add(rows_of(iter([line]), header))
                else:
                    header = header_of(line, clock.column)
                    clock.declare(header)
            open_ended = False
        except Empty:
            pass
        for batch in clock.close_until(min(time.time(), end))[: service.remaining]:
            show([batch])
        if time.time() >= end:
            return
