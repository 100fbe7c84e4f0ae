"""Progress is told in terminals and notebooks, and nowhere else."""

import os
import pty
import subprocess
import sys
from pathlib import Path

WORK = """
from mosha.core.watching import tell_progress
tell_progress("one", last=False)
tell_progress("two", last=True)
"""


def test_a_pipe_and_a_file_hear_nothing(tmp_path: Path) -> None:
    piped = subprocess.run([sys.executable, "-c", WORK], capture_output=True, check=True)
    assert piped.stdout + piped.stderr == b""
    with (tmp_path / "log").open("wb") as log:
        subprocess.run([sys.executable, "-c", WORK], stderr=log, check=True)
    assert (tmp_path / "log").read_bytes() == b""


def test_a_terminal_shows_one_line_that_is_written_over() -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run([sys.executable, "-c", WORK], stdout=subprocess.PIPE, stderr=theirs, check=True)
    os.close(theirs)
    shown = os.read(ours, 1000).decode()
    os.close(ours)
    assert done.stdout == b""  # what a program reads stays clean
    assert shown.split("\r")[1:3] == ["\x1b[2Kone", "\x1b[2Ktwo"]
    assert shown.endswith("\n")
