"""Tables open in a real Jupyter kernel, with and without ipywidgets."""

from pathlib import Path

import nbclient
import nbformat
import pytest

BLOCKED = "import sys\nsys.modules['ipywidgets'] = None"
CELLS = [
    "import mosha, warnings\nwarnings.simplefilter('error', UserWarning)",
    """
import pandas as pd
account = mosha.Ledger.memory().account("t", unit=mosha.Person("p", at_most=1), epsilon=4, delta=1e-6)
frame = pd.DataFrame({"p": range(500), "x": [1.0] * 500})
table = mosha.protect(frame, unit=mosha.Person("p", at_most=1), account=account)
print("a count", len(table.count().release(epsilon=1)))
""",
    """
import pathlib
pathlib.Path("t.csv").write_text("p,x\\n1,2\\n3,4\\n")
rows = mosha.protect("t.csv", unit=mosha.Person("p", at_most=1), account=account)
print("a sum", len(rows.sum("x", between=(0, 9)).release(epsilon=1)))
""",
    "print('sql', len(mosha.query('SELECT COUNT(*) AS n FROM t', epsilon=1, t=table).table['n']))",
    "from mosha.core.watching import tell_progress\ntell_progress('step 1 of 1', last=True)",
    "table",
    "table.group_by('x', keys=[1.0, 2.0]).count().release(epsilon=0.5)",
    "_.plot(title='就诊')",
]


@pytest.mark.filterwarnings("ignore")  # of the kernel's own machinery
@pytest.mark.parametrize("widgets", [False, True], ids=["without ipywidgets", "with ipywidgets"])
def test_a_short_notebook_runs(widgets: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(folder, str(tmp_path / folder))
    cells = CELLS if widgets else [BLOCKED, *CELLS]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    place = {"metadata": {"path": str(tmp_path)}}
    client = nbclient.NotebookClient(notebook, timeout=240, kernel_name="python3", resources=place)
    client.execute()
    texts = "".join(part.get("text", "") for cell in notebook.cells for part in cell.get("outputs", []))
    assert [word in texts for word in ("a count 1", "a sum 1", "sql 1", "step 1 of 1")] == [True] * 4
    shown = [set(part.get("data", {})) for cell in notebook.cells[-3:] for part in cell.outputs]
    assert [{"text/html"} <= kinds for kinds in shown] == [True, True, True]
    assert "image/png" in shown[2]
