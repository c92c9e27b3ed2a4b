"""The notebooks run from top to bottom, draw something, and are kept without what they put out."""

import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
needs_river = pytest.mark.skipif(sys.version_info < (3, 11), reason="the test extra has no River for this Python")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Jupyter's own
@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=needs_river if "river" in path.stem else []) for path in NOTEBOOKS]
)
def test_a_notebook_runs_and_draws(path):
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code), "clear its outputs"
    NotebookClient(notebook, timeout=None, resources={"metadata": {"path": str(path.parent)}}).execute()
    drawing = [cell for cell in code if any("image/svg+xml" in output.get("data", {}) for output in cell.outputs)]
    assert drawing
    assert all(cell.metadata.get("alt") for cell in drawing), "a picture needs a text in its cell's metadata"


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 6
