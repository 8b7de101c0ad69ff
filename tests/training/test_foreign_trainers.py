"""LLaMA-Factory's own loader takes the exported folders, and trains on them."""

import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("lance")

from footage import film, write_clip
from tiny_models import write_tiny
from training.sets import fake, real, write_set
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import (
    build_clip_access_settings,
    find_clip_change,
    provide_local_clip_file,
)
from unreel.media.access import open_media_reader
from unreel.reviewers.clip_inputs import ClipInputLoader
from unreel.reviewers.local.checkpoint import read_checkpoint_input_spec
from unreel.reviewers.local.encoder import RequestEncoder
from unreel.training.examples.example import load_training_example_input
from unreel.training.examples.reading import TrainingExampleSet, read_training_examples
from unreel.training.export import FORMATS, ROWS, export_training_examples
from unreel.training.recipe import TrainRecipe, validate_train_recipe

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600), pytest.mark.filterwarnings("default")]

STEPS = 20


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """LLaMA-Factory's programs, in an environment of its own: one that is named, or a new one."""
    named = os.environ.get("LLAMAFACTORY_BIN")  # noqa: TID251  an environment of the tester's
    if named:
        return Path(named)
    folder = tmp_path_factory.mktemp("llamafactory") / "env"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q"]
    subprocess.run([*pip, "torch==2.13.0"], check=True)
    subprocess.run([*pip, "llamafactory==0.9.5", "torch==2.13.0", "av"], check=True)
    subprocess.run([*pip, "--no-deps", "torchvision==0.28.0"], check=True)
    # It imports torchaudio, of which no build goes with a CPU torch: without its libraries it loads.
    subprocess.run([*pip, "--no-deps", "torchaudio==2.9.1"], check=True)
    for library in folder.glob("lib/python*/site-packages/torchaudio/lib/*.so"):
        library.unlink()
    subprocess.run([str(python), str(shared / "stack" / "torchvision_cpu.py")], check=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny") / "qwen"
    write_tiny("qwen2.5-vl", folder)
    return folder


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = []
    for n in range(6):
        for kind, make in (("r", real), ("f", fake)):
            clip = film(n if make is real else 100 + n, n_frames=36, width=160, height=96)
            entries.append((make(f"{kind}{n}", group=f"{kind}{n}"), write_clip(clip, rate=12)))
    return write_set(tmp_path_factory.mktemp("set"), entries)


class Exported:
    """A recipe's examples as a folder, beside what a training here would make of them."""

    def __init__(
        self, model: Path, benchmark: Path, form: str, folder: Path, *, asked: str = "trace"
    ) -> None:
        self.recipe = _recipe(model, benchmark, form, asked)
        self.folder = folder / "out"
        self.access = build_clip_access_settings(read_environment_settings(), trusted=True)
        self.examples: TrainingExampleSet = read_training_examples(
            self.recipe, access=self.access, folder=folder / "kept", accept_leak=True
        )

    def write(self) -> None:
        with open_media_reader(self.access.settings, trusted=True) as reader:
            export_training_examples(
                FORMATS["llamafactory"](self.recipe),
                {"train": self.examples.train, "held_out": self.examples.held_out},
                folder=self.folder,
                loader=self._showing(reader),
            )

    def own_ids(self, model: Path) -> list[list[int]]:
        """The prompts and answers as a training here reads them."""
        taught = read_checkpoint_input_spec(self.folder)
        assert taught is not None
        encoder = RequestEncoder(model, taught)
        with open_media_reader(self.access.settings, trusted=True) as reader:
            lessons: list[Any] = [
                load_training_example_input(example, self._showing(reader), encoder)
                for example in self.examples.train
            ]
        encoded: list[Any] = [encoder.encode(each.request, each.target) for each in lessons]
        return [each.input_ids.tolist() for each in encoded]

    def _showing(self, reader: Any) -> ClipInputLoader:
        return ClipInputLoader(
            reader=reader,
            open_file=partial(provide_local_clip_file, access=self.access),
            find_change=find_clip_change,
        )


def _recipe(model: Path, benchmark: Path, form: str, asked: str) -> TrainRecipe:
    prompt = {"trace": "fine-tuning", "reality": "direct"}[asked]
    return validate_train_recipe(
        {
            "name": "tiny",
            "input": form,
            "model": {
                "name": str(model),
                "family": "qwen2.5-vl",
                "tune": "full",
                "vision": "trained",
                "precision": "fp32",
                "gradient_checkpointing": False,
            },
            "data": [
                {
                    "benchmark": str(benchmark),
                    "split": None,
                    "protocol": asked,
                    "condition": {"sampling": "fps-2-max-20", "prompt": prompt},
                }
            ],
            "holdout": {"near_duplicates": False, "share": 0.2},
            "optimise": {
                "max_steps": STEPS,
                "batch_size": 2,
                "learning_rate": 1e-3,
                "epochs": 10,
                "workers": 0,
            },
            "watch": {"every": STEPS, "save_every": STEPS},
        }
    )


def _run(command: list[str], folder: Path) -> str:
    quiet = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | quiet,  # noqa: TID251  handed on to a child
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def _losses(log: str) -> list[float]:
    return [float(found) for found in re.findall(r"'loss': '?([0-9.]+)", log)]


@pytest.mark.parametrize("form", ["frames", "video"])
def test_llama_factory_trains_on_the_exported_folder(
    form: str, model: Path, benchmark: Path, foreign: Path, tmp_path: Path
) -> None:
    exported = Exported(model, benchmark, form, tmp_path)
    exported.write()
    log = _run([str(foreign / "llamafactory-cli"), "train", "train.yaml"], exported.folder)
    losses = _losses(log)
    assert len(losses) == STEPS
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("form", ["frames", "video"])
def test_llama_factory_sees_frames_in_the_size_that_the_boxes_are_written_for(
    form: str, model: Path, benchmark: Path, foreign: Path, tmp_path: Path
) -> None:
    exported = Exported(model, benchmark, form, tmp_path)
    exported.write()
    rows = _rows(exported, foreign)
    spaces = {json.loads(line)["box_space"] for line in (exported.folder / ROWS).open()}
    grids = {f"model-input {14 * w}x{14 * h}" for row in rows for _, h, w in row["grid"]}
    assert grids == spaces


def test_pictures_become_the_very_tokens_in_llama_factory_that_a_training_here_reads(
    model: Path, benchmark: Path, foreign: Path, tmp_path: Path
) -> None:
    exported = Exported(model, benchmark, "frames", tmp_path, asked="reality")
    exported.write()
    theirs = [row["ids"] for row in _rows(exported, foreign)]
    ours = exported.own_ids(model)
    # It writes the line's end behind the last turn, too.
    assert [ids[: len(own)] for ids, own in zip(theirs, ours, strict=True)] == ours
    assert {len(ids) - len(own) for ids, own in zip(theirs, ours, strict=True)} <= {0, 1}


def _rows(exported: Exported, foreign: Path) -> list[dict[str, Any]]:
    """What LLaMA-Factory's own loader makes of the folder."""
    script = str(Path(__file__).with_name("foreign_rows.py"))
    log = _run([str(foreign / "python"), script, "."], exported.folder)
    rows: list[dict[str, Any]] = json.loads(log.split("ROWS ", 1)[1].splitlines()[0])
    return rows
