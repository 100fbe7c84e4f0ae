"""Why a step failed: for the owner of the data, and nobody else."""

import json
import logging
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mosha import errors
from mosha.core import private_log
from mosha.core.private_log import keep_private_log
from tests.core.test_door import Purse, breaking


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody listens before a test, nor after it; a server that ran in this process names a log of its own."""
    monkeypatch.delenv(private_log.VARIABLE, raising=False)
    logger = logging.getLogger(private_log.NAME)
    before, kept = list(logger.handlers), set(private_log._kept)
    logger.handlers[:] = []
    private_log._kept.clear()
    yield
    for handler in logger.handlers:
        if type(handler) is logging.StreamHandler and handler.stream is not sys.stderr:
            handler.stream.close()
    logger.handlers[:] = before
    private_log._kept.clear()
    private_log._kept.update(kept)


def fail(words: str = "row 17 is Alice's") -> Any:
    with pytest.raises(errors.StepFailed) as told:
        Purse().open(breaking(ValueError(words))).step(["data"])
    return told.value


def test_the_reason_goes_to_the_file_and_not_into_the_error(tmp_path: Path) -> None:
    place = tmp_path / "private.log"
    keep_private_log(place)
    keep_private_log(place)  # once is enough
    told = fail()
    (line,) = place.read_text().splitlines()
    said = json.loads(line)
    assert said["error"] == "ValueError: row 17 is Alice's"
    assert said["measurement"] == "count"
    assert "Traceback" in said["trace"]
    assert "Alice" not in str(told)
    assert told.__cause__ is told.__context__ is None
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_it_is_silent_by_default_and_nothing_reaches_the_loggers_above(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the screen nor a handler of the root, which a program may have pointed anywhere."""
    heard: list[Any] = []
    above = logging.Handler()
    above.emit = heard.append  # type: ignore[assignment]
    logging.getLogger().addHandler(above)
    try:
        fail()
    finally:
        logging.getLogger().removeHandler(above)
    said = capsys.readouterr()
    assert "Alice" not in said.out + said.err
    assert heard == []


def test_it_stays_silent_after_a_program_took_all_handlers_away(capsys: pytest.CaptureFixture[str]) -> None:
    """A logger without a handler writes warnings to the screen, and these quote rows."""
    fail()
    logging.getLogger(private_log.NAME).handlers.clear()
    fail()
    said = capsys.readouterr()
    assert "Alice" not in said.out + said.err


def test_a_variable_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOSHA_PRIVATE_LOG", str(tmp_path / "named.log"))
    fail()
    assert "Alice" in (tmp_path / "named.log").read_text()


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "open.log"
    place.touch(0o644)
    place.chmod(0o644)
    with pytest.raises(errors.InvalidParameter, match="chmod 600"):
        keep_private_log(place)
    (tmp_path / "link.log").symlink_to(place)
    for wrong in (tmp_path / "link.log", tmp_path / "no" / "folder.log"):
        with pytest.raises(errors.InvalidParameter, match="cannot be written"):
            keep_private_log(wrong)


def test_a_log_that_cannot_be_written_changes_no_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MOSHA_PRIVATE_LOG", str(tmp_path / "no" / "folder.log"))
    assert "failed on the private side" in str(fail())
