"""Programs with a Spark of their own: started by a test, waited for with a limit, and ended with all they began."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PATIENCE = 700  # seconds: a program takes one minute on a quiet machine


def tell(module: Any, columns: Any, folder: Any, packages: Any = ("pyspark",)) -> Any:
    """What `python -m tests.connect.MODULE FOLDER` tells about these columns, which it finds in `visits.parquet`.

    What it says goes to files: a Java process that outlives it would hold a pipe open for ever.
    """
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Java is not installed (Debian: apt-get install default-jre-headless)")
    if not all(importlib.util.find_spec(name) for name in packages):
        pytest.skip("the extra 'spark' is not installed")
    pq.write_table(pa.table(columns), folder / "visits.parquet")
    command = [sys.executable, "-m", f"tests.connect.{module}", str(folder)]
    said, trouble = folder / "said", folder / "trouble"
    with said.open("w") as out, trouble.open("w") as err:
        root = Path(__file__).parents[2]
        program = subprocess.Popen(
            command, cwd=root, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            code = program.wait(PATIENCE)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
    assert code == 0, trouble.read_text()[-2000:]
    return json.loads(said.read_text().splitlines()[-1])
