"""`unreel train run` and `card` as people type them."""

import json
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("lance")

from click.testing import CliRunner, Result

from training import lab
from unreel.cli.process_signals import defer_first_stop_signal
from unreel.cli.train import card, run
from unreel.core.errors import InvalidSettingError
from unreel.training.checkpoints import TrainingCheckpointStore

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = lab.write_lab(tmp_path_factory.mktemp("lab"))
    values = lab.recipe(root).model_dump(mode="json", exclude_none=True)
    values["data"][0].pop("benchmark")
    (root / "tiny.toml").write_text(_toml(values))
    return root


def _toml(values: dict[str, Any]) -> str:
    return "\n".join(f"{name} = {_inline(value)}" for name, value in values.items())


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


def _typed(root: Path, out: Path, *more: str) -> list[str]:
    given = [str(root / "tiny.toml"), "--data", str(root / "clips"), "--out", str(out)]
    return [*given, "--trusted", *more]


def _run(*typed: str) -> Result:
    return CliRunner().invoke(run, list(typed))


def test_a_model_is_trained_told_and_described(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = _run(*_typed(root, out, "--set", "optimise.max_steps=2", "--json"))
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["ended"], told["step"], told["model"]) == ("done", 2, str(out / "model"))
    page = CliRunner().invoke(card, [told["model"]]).stdout
    assert "## Out-of-scope use" in page
    document = json.loads(CliRunner().invoke(card, [told["model"], "--json"]).stdout)
    assert document["data"]["n_train"] + document["data"]["n_held_out"] == lab.N_CLIPS
    again = _run(*_typed(root, out, "--set", "optimise.max_steps=2", "--resume"))
    assert again.exit_code == 0
    assert again.stdout == f"{out / 'model'}\n"


def test_examples_tokens_and_after_ten_steps_the_rate_are_printed(
    root: Path, tmp_path: Path
) -> None:
    typed = _typed(root, tmp_path / "out", "--set", "watch.save_every=100")
    ten = _run(*typed, "--set", "optimise.max_steps=12")
    assert ten.exit_code == 0, ten.output
    told = re.search(r"an epoch has (\d+) examples with about ([\d,]+) tokens", ten.stderr)
    assert told is not None
    assert 0 < int(told[1]) < lab.N_CLIPS
    assert int(told[2].replace(",", "")) > 20 * int(told[1])
    assert re.search(r"steps/s \(\S+ examples/s\) measured over 10 steps; .* left", ten.stderr)
    few = _run(*_typed(root, tmp_path / "few", "--set", "optimise.max_steps=2"))
    assert "measured over" not in few.stderr


def test_devices_that_are_not_here_are_told_with_what_gives_the_same_steps(
    root: Path, tmp_path: Path
) -> None:
    eight = ["--set", "devices.strategy='fsdp'", "--set", "devices.count=8"]
    done = _run(*_typed(root, tmp_path / "out", *eight))
    assert isinstance(done.exception, InvalidSettingError)
    assert "optimise.accumulate=8" in str(done.exception)


def test_the_first_signal_asks_and_the_handlers_of_before_come_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with defer_first_stop_signal() as heard:
        os.kill(os.getpid(), signal.SIGINT)
        assert heard == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_saves_and_says_how_to_go_on(root: Path, tmp_path: Path) -> None:
    try:
        version("unreel")
    except PackageNotFoundError:
        pytest.skip("unreel is not installed here: the command cannot be started")
    out, program = tmp_path / "out", "from unreel.cli.main import main; main()"
    many = ["--set", "optimise.max_steps=5000", "--set", "watch.save_every=5000"]
    many += ["--set", "optimise.workers=1"]
    words = ["train", "run", *_typed(root, out, *many)]
    running = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stderr is not None
    said = next(line for line in running.stderr if re.search(r"steps: [1-9]", line))
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: all processes of the group
    _, rest = running.communicate(timeout=120)
    assert running.returncode == 130, said + rest
    assert "a checkpoint is saved after this step" in rest
    newest = TrainingCheckpointStore(out).newest()
    assert newest is not None
    assert f"the checkpoint of step {newest.step:,} is saved" in rest
    assert "Go on with `unreel train run" in rest
