"""The notebook of first steps runs as it is committed, and is committed without what it shows."""

import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "docs" / "examples" / "first_steps.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook after its cells ran, one after the other, in an empty folder."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(variable, str(folder / "jupyter"))
        began_s = time.monotonic()
        client = NotebookClient(notebook, timeout=240, resources=resources, allow_errors=True)
        client.execute()
    notebook.metadata["seconds"] = time.monotonic() - began_s
    notebook.metadata["folder"] = str(folder)
    return notebook


def outputs(notebook: Any) -> list[Any]:
    return [each for cell in notebook.cells for each in cell.get("outputs", [])]


def shown(notebook: Any) -> str:
    return "".join(each.get("data", {}).get("text/html", "") for each in outputs(notebook))


def test_it_is_committed_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert outputs(notebook) == []
    assert {cell.get("execution_count") for cell in notebook.cells} == {None}
    assert len(NOTEBOOK.read_bytes()) < 20_000


def test_no_cell_fails(executed: Any) -> None:
    failed = [each for each in outputs(executed) if each.output_type == "error"]
    assert [(each.ename, each.evalue) for each in failed] == []
    assert not [each for each in outputs(executed) if each.get("name") == "stderr"]


def test_it_shows_verdicts_with_their_frames(executed: Any) -> None:
    html = shown(executed)
    assert html.count('<img src="data:image/jpeg;base64,') == 8
    assert "recorded:attentive, trace@1" in html
    assert "The front wheel of the red car comes off" in html


def test_it_shows_figures_with_their_intervals_and_writes_a_report(executed: Any) -> None:
    html = shown(executed)
    assert html.count("reality@2: 8 of 8 questions answered") == 2
    assert "interval" in html
    assert "more-at-the-end-1" in html
    said = "".join(each.text for each in outputs(executed) if each.get("name") == "stdout")
    assert "8 questions, 0 asked again" in said
    assert list(Path(executed.metadata["folder"], "report").glob("*.html"))
