"""Two checkpoints side by side: each asked as it was taught, then compared clip by clip."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("lance")

from click.testing import CliRunner

from tiny_models import write_tiny
from training.sets import clip, fake, real, recipe, write_set
from unreel.cli.train.compare import compare
from unreel.core.errors import InvalidSettingError
from unreel.reviewers.local.input_format import write_checkpoint_input_spec

pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("file", ["config.json", "adapter_config.json"])
def test_a_model_that_unreel_did_not_train_is_a_checkpoint_too(file: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text("{}")
    shown = CliRunner().invoke(compare, [str(tmp_path), str(tmp_path)])
    assert isinstance(shown.exception, InvalidSettingError)
    assert "is a checkpoint, and no benchmark is named" in str(shown.exception)


@pytest.mark.slow
def test_checkpoints_are_asked_as_they_were_taught_and_compared(tmp_path: Path) -> None:
    entries = [(real(f"r{n}", group=f"g{n}"), clip(n)) for n in range(1)]
    entries += [(fake(f"f{n}", group=f"g{n}"), clip(10 + n)) for n in range(1)]
    root = write_set(tmp_path / "set", entries)
    data = {"protocol": "reality", "condition": {"prompt": "direct", "sampling": "uniform-2"}}
    taught = recipe(root, data=[data]).taught
    for seed, name in enumerate(("one", "two")):
        write_tiny("qwen2.5-vl", tmp_path / name, seed=seed)
        write_checkpoint_input_spec(taught, tmp_path / name)
    command = [sys.executable, "-c", "from unreel.cli.main import main; main()"]
    words = ["train", "compare", "one", "two", "--benchmark", "set", "--trusted", "--json"]
    done = subprocess.run(
        [*command, *words], check=False, capture_output=True, text=True, cwd=tmp_path
    )
    # Random weights say nothing readable: the differences are told as such, and the status with them.
    assert done.returncode in {0, 1}, done.stderr
    (found,) = json.loads(done.stdout)["comparisons"]
    assert found["n_common"] + found["n_invalid"] == 2
    stored = json.loads((tmp_path / "compare-one-two" / "first" / "recipe.json").read_text())
    asked = stored.get("recipe", stored)["condition"][0]
    assert (asked["prompt"], asked["sampling"]) == ("direct", "uniform-2")
