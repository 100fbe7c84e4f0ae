"""`mosha stream`: counts, sums and alarms over time, from a file or a pipe, one JSON line for each step."""

from __future__ import annotations

import datetime as dt
import json
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from queue import Empty, SimpleQueue
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mosha.cli.stream_files import check_file, feed, header_of, rows_of
from mosha.core.errors import HorizonExceeded, InvalidParameter
from mosha.core.unit import Event, Person, Unit, Window

if TYPE_CHECKING:
    from mosha.core.measurement import Measurement
    from mosha.streams import Clock, Service

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Statistics published step by step, paid for once.")

File = Annotated[str, typer.Argument(help="A CSV file with a header, or - for standard input.")]
Time = Annotated[str, typer.Option("--time", help="The column that says when a row was.")]
Every = Annotated[str, typer.Option(help="The length of a step: 30s, 15min, 1h, 1d.")]
Start = Annotated[
    str | None,
    typer.Option(help="When the first step begins (public): 2026-01-01, or 'now'. The data must not say it."),
]
Horizon = Annotated[int | None, typer.Option(help="How many steps are paid for; a very long time by default.")]
Until = Annotated[str | None, typer.Option(help="Publish up to this time (public); the whole horizon by default.")]
PersonColumn = Annotated[str | None, typer.Option("--person", help="The column that says whose a row is.")]
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
Follow = Annotated[bool, typer.Option("--follow", help="Wait for rows; the machine's clock ends the steps.")]
Plot = Annotated[bool, typer.Option("--plot", help="Draw each step on standard error.")]
Confidence = Annotated[float, typer.Option(help="How often the noise stays within the error bars.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Errors are JSON too; steps always are, one line each.")]


@app.command()
def count(
    file: File,
    *,
    time_column: Time,
    every: Every,
    start: Start = None,
    horizon: Horizon = None,
    until: Until = None,
    person: PersonColumn = None,
    at_most: AtMost = None,
    apart: Apart = 1,
    window: Within = None,
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = 0.0,
    release: Release = "running",
    lateness: Lateness = "0",
    ledger: Ledger = None,
    state: State = None,
    name: Name = "count",
    follow: Follow = False,
    plot: Plot = False,
    confidence: Confidence = 0.95,
    as_json: JsonLines = False,
) -> None:
    """How many rows there were, at each step or so far."""
    given = SimpleNamespace(**locals())
    from mosha import streams  # noqa: PLC0415  (a command that fails early loads nothing)

    _serve(streams.counter(**_asked(given)), given)


@app.command("sum")
def total(
    file: File,
    *,
    column: Annotated[str, typer.Option(help="The column that is added up.")],
    low: Annotated[float, typer.Option(help="Values are clamped from below by this.")] = 0.0,
    high: Annotated[float, typer.Option(help="Values are clamped from above by this.")],
    time_column: Time,
    every: Every,
    start: Start = None,
    horizon: Horizon = None,
    until: Until = None,
    person: PersonColumn = None,
    at_most: AtMost = None,
    apart: Apart = 1,
    window: Within = None,
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = 0.0,
    release: Release = "running",
    lateness: Lateness = "0",
    ledger: Ledger = None,
    state: State = None,
    name: Name = "sum",
    follow: Follow = False,
    plot: Plot = False,
    confidence: Confidence = 0.95,
    as_json: JsonLines = False,
) -> None:
    """The sum of a column, each value clamped between --low and --high."""
    given = SimpleNamespace(**locals())
    from mosha import streams  # noqa: PLC0415

    _serve(streams.total(between=(low, high), column=column, **_asked(given)), given, needs=(column,))


@app.command()
def alarm(
    file: File,
    *,
    threshold: Annotated[list[float], typer.Option(help="Told when a step has so many rows; may be given again.")],
    alarms: Annotated[int, typer.Option(help="How many alarms are paid for.")] = 1,
    time_column: Time,
    every: Every,
    start: Start = None,
    horizon: Horizon = None,
    until: Until = None,
    person: PersonColumn = None,
    at_most: AtMost = None,
    apart: Apart = 1,
    window: Within = None,
    epsilon: Epsilon = None,
    rho: Rho = None,
    delta: Delta = 0.0,
    release: Release = "instant",
    lateness: Lateness = "0",
    ledger: Ledger = None,
    state: State = None,
    name: Name = "alarm",
    follow: Follow = False,
    plot: Plot = False,
    confidence: Confidence = 0.95,
    as_json: JsonLines = False,
) -> None:
    """Told when the number of rows passes a threshold; the price depends on the number of alarms, not on time."""
    given = SimpleNamespace(**locals())
    from mosha import streams  # noqa: PLC0415

    _serve(streams.alarm(threshold=threshold, alarms=alarms, **_asked(given)), given)


def _asked(given: SimpleNamespace) -> dict[str, Any]:
    """What all three ask in the same words."""
    return {
        "unit": _unit(given.person, given.at_most, given.window),
        "horizon": given.horizon,
        "apart": given.apart,
        "release": _readout(given.release),
        "epsilon": given.epsilon,
        "delta": given.delta or None,
        "rho": given.rho,
    }


def _unit(person: str | None, at_most: int | None, window: int | None) -> Unit:
    if person is None:
        if at_most is not None or window is not None:
            raise typer.BadParameter("--at-most and --window are about persons: say --person COLUMN.")
        return Event()
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
        raise typer.BadParameter("--release is running, instant, sliding:STEPS or decayed:FACTOR.") from None


def _serve(made: Measurement, given: SimpleNamespace, *, needs: tuple[str, ...] = ()) -> None:
    """Check what is public, pay, and publish step by step."""
    import mosha  # noqa: PLC0415
    from mosha.streams import Clock, serve  # noqa: PLC0415

    file, name = given.file, given.name
    if given.start is None:
        raise InvalidParameter(
            "say --start: when the first step begins is public, and must not come from the data (the first row's time "
            "would show it). --start now goes with --follow. Nothing was spent."
        )
    check_file(file, [given.time_column, *needs, *filter(None, [getattr(made.unit, "column", None)])])
    stem = "stdin" if file == "-" else file
    begin = time.time() if given.start == "now" else given.start
    late = 0.0 if given.lateness == "0" else given.lateness
    clock = Clock(start=begin, every=given.every, column=given.time_column, lateness=late)
    with closing(mosha.Ledger(given.ledger or f"{stem}.privacy.db")) as book:
        account = _account(book, name, made)
        with serve(account, made, name=name, state=given.state or f"{stem}.{name}.stream") as service:
            clock.closed = service.taken
            typer.echo(f"mosha: {service.receipt}", err=True)
            show = _Show(service, clock, given.confidence, plot=given.plot)
            try:
                (_following if given.follow else _whole)(file, clock, service, show, given.until)
            except HorizonExceeded:  # an alarm that has rung as often as was paid for
                typer.echo("mosha: all alarms that were paid for have been given.", err=True)


def _account(book: Any, name: str, made: Measurement) -> Any:
    """The stream's own account: just enough for this stream, under the rule that its noise is priced by best."""
    known = next((account for account in book.accounts() if account.name == name), None)
    if known is not None:
        return known
    from mosha.accounting import concentrated, pure  # noqa: PLC0415

    epsilon, delta = pure.cost_of(made.event).amount, pure.cost_of(made.event).delta
    if delta == 0 and epsilon < float("inf"):
        return book.account(name, unit=made.unit, epsilon=epsilon)
    return book.account(name, unit=made.unit, rho=concentrated.rho(made.event)[0])


class _Show:
    """Writes one JSON line for each step, and a bar where one was asked for."""

    def __init__(self, service: Service, clock: Clock, confidence: float, *, plot: bool) -> None:
        self._service, self._clock, self._confidence, self._plot = service, clock, confidence, plot
        self._largest = 1.0

    def __call__(self, batch: dict[str, list[Any]]) -> None:
        release = self._service.step(batch)
        begins = self._clock.start + (release.step - 1) * self._clock.every
        stamp = dt.datetime.fromtimestamp(begins, dt.UTC).isoformat(timespec="seconds")
        line: dict[str, Any] = {"step": release.step, "time": stamp}
        stream: Any = self._service.stream
        if isinstance(release.value, dict):
            line |= release.value
        else:
            width = stream.error_at(release.step, self._confidence) if hasattr(stream, "error_at") else None
            line |= {"value": release.value, "error": width, "confidence": self._confidence}
        typer.echo(json.dumps(line))
        sys.stdout.flush()
        if self._plot:
            self._bar(stamp, float(line.get("value", line.get("gap") or 0.0)))

    def _bar(self, stamp: str, value: float) -> None:
        self._largest = max(self._largest, abs(value))
        typer.echo(f"{stamp} {'█' * max(0, round(50 * value / self._largest)):<50} {value:,.1f}", err=True)


def _whole(file: str, clock: Clock, service: Service, show: _Show, until: str | None) -> None:
    """Read everything there is, then publish every step up to the end that was declared."""
    from mosha.streams.clock import timestamp  # noqa: PLC0415

    if until is None and service.remaining > 1 << 24:
        raise InvalidParameter("say --until or --horizon: where to stop is public, and must not come from the data.")
    with sys.stdin if file == "-" else Path(file).open(newline="", encoding="utf-8") as lines:
        header = header_of(next(lines, ""), clock.column)
        clock.declare(header)
        clock.add(rows_of(lines, header))
    last = service.taken + service.remaining
    if until is not None:
        last = min(last, int((timestamp(until) - clock.start) // clock.every))
    while clock.closed < last:
        show(clock.close_next())


def _following(file: str, clock: Clock, service: Service, show: _Show, until: str | None) -> None:
    """Read what comes; a step ends when the machine's clock says so. Ends with the horizon, --until, or the pipe."""
    from mosha.streams.clock import timestamp  # noqa: PLC0415

    end = timestamp(until) if until is not None else float("inf")
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
            show(batch)
        if time.time() >= end:
            return
