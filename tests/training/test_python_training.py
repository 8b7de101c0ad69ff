"""`unreel.train` trains in this process, resumes, and reports its steps."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
pytest.importorskip("lance")

import unreel
from training import lab
from unreel.core.errors import InvalidSettingError, UnreadableSourceError

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(1800)]


def test_a_recipe_is_trained_and_a_second_call_resumes(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    root, out = lab.write_lab(tmp_path / "lab"), tmp_path / "out"
    recipe = lab.recipe(root).model_dump(mode="json", exclude_unset=True, exclude_none=True)
    steps = list[int]()

    def hear(part: str, progress: unreel.Progress) -> None:
        if part == "steps":
            assert progress.due == 2
            assert progress.note.startswith("loss ")
            steps.append(progress.done)

    with pytest.raises(UnreadableSourceError):
        unreel.train(recipe, out=out, resume=True, trusted=True)
    trained = unreel.train(
        recipe, changes=["optimise.max_steps=2"], out=out, trusted=True, on_progress=hear
    )
    assert (trained.ended, trained.step, trained.model, steps) == ("done", 2, out / "model", [1, 2])
    again = unreel.train(recipe, changes=["optimise.max_steps=2"], out=out, trusted=True)
    assert (again.model, again.loss, again.went_on_from) == (trained.model, None, 2)
    with pytest.raises(InvalidSettingError, match="accelerate launch"):
        unreel.train(recipe, changes=["devices.nodes=2"], out=out, trusted=True)
