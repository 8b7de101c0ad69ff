"""Tiny models of the real architectures learn, are saved, and are loaded again."""

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("lance")

from training import lab
from unreel.core.answer import Reply
from unreel.core.errors import UnreadableSourceError
from unreel.core.failure import Failure
from unreel.core.settings import EnvironmentSettings
from unreel.engine.storage_access import build_clip_access_settings
from unreel.media.access import open_media_reader
from unreel.reviewers.clip_inputs import ClipInputLoader
from unreel.reviewers.local.checkpoint import read_checkpoint_input_spec
from unreel.reviewers.local.encoder import RequestEncoder
from unreel.training.checkpoints import TrainingCheckpointStore
from unreel.training.examples.example import TrainingExampleInput, load_training_example_input
from unreel.training.examples.reading import read_training_examples

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lab.write_lab(tmp_path_factory.mktemp("lab"))


def test_a_training_ends_with_a_sealed_model_a_curve_and_a_card(root: Path, tmp_path: Path) -> None:
    steps: list[tuple[int, float]] = []
    from unreel.training.run import TrainingCallbacks

    told = TrainingCallbacks(on_step=lambda step, loss, _: steps.append((step, loss)))
    trained = lab.run(root, tmp_path, callbacks=told, watch={"every": 3})
    assert [step for step, _ in steps] == [1, 2, 3, 4, 5, 6]
    assert steps[-1][1] < steps[0][1]
    assert (trained.ended, trained.step, trained.loss) == ("done", 6, steps[-1][1])
    assert trained.held_out_loss is not None
    model = TrainingCheckpointStore(tmp_path).model()
    assert model is not None
    names = {each.name for each in model.path.iterdir()}
    assert {"model.safetensors", "unreel.json", "README.md", "card.json", "seal.json"} <= names
    assert not [name for name in names if name.endswith((".bin", ".pt", ".pth"))]
    assert "training" not in names  # What only a training reads stays with its checkpoints.
    assert [c.step for c in TrainingCheckpointStore(tmp_path).whole()] == [6, 4]
    assert (tmp_path / "curve.csv").read_text().count("\n") == 7
    assert "trace" in (model.path / "README.md").read_text()


def test_a_changed_recipe_is_refused_with_what_changed(root: Path, tmp_path: Path) -> None:
    lab.run(root, tmp_path, optimise={"max_steps": 2})
    with pytest.raises(
        UnreadableSourceError, match=r"optimise.learning_rate was 0.001 and is 0.01"
    ):
        lab.run(root, tmp_path, optimise={"max_steps": 2, "learning_rate": 1e-2})


@pytest.mark.parametrize("family", ["qwen2.5-vl", "qwen3-vl", "videollama3"])
def test_every_family_learns_with_adapters_and_is_declared(family: str, tmp_path: Path) -> None:
    root = lab.write_lab(tmp_path / "lab", family)
    trained = lab.run(
        root,
        tmp_path / "out",
        family=family,
        model={"tune": "lora", "vision": "frozen"},
        optimise={"max_steps": 2},
    )
    taught = read_checkpoint_input_spec(trained.model)
    assert taught is not None
    assert (taught.family, taught.input) == (family, "frames")
    assert (trained.model / "adapter_model.safetensors").is_file()
    from safetensors import safe_open

    with safe_open(trained.model / "adapter_model.safetensors", "pt") as weights:
        names = list(weights.keys())
    assert names
    assert not [name for name in names if "visual" in name or "vision" in name or "lm_head" in name]
    assert isinstance(_ask(root, trained.model), Reply)


def _ask(root: Path, model: Path) -> Reply | Failure:
    """What a checkpoint says of a clip, asked as a reviewer of this machine."""
    from unreel.reviewers.local.checkpoint import read_checkpoint
    from unreel.reviewers.local.reviewer import LocalReviewer

    checkpoint = read_checkpoint(model)
    reviewer = LocalReviewer(checkpoint, max_tokens=4)
    access = build_clip_access_settings(EnvironmentSettings(), trusted=True)
    found = read_training_examples(lab.recipe(root), access=access, folder=model.parent / "asked")
    with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
        lesson = load_training_example_input(
            found.train[0], ClipInputLoader(reader=reader), RequestEncoder(model, checkpoint.taught)
        )
    assert isinstance(lesson, TrainingExampleInput)

    async def answer() -> Reply | Failure:
        try:
            return await reviewer.answer(lesson.request)
        finally:
            await reviewer.close()

    return asyncio.run(answer())


def test_clips_that_cannot_be_shown_are_counted_and_told(tmp_path: Path) -> None:
    from unreel.training.run import TrainingCallbacks

    root = lab.write_lab(tmp_path / "lab")
    gone = {"clip4", "clip5"}

    def spoil(step: int, _loss: float, _figures: object) -> None:
        """They were good when they were surveyed, and are gone when they are to be shown again."""
        for name in gone if step == 1 else ():
            (root / "clips" / f"{name}.mp4").unlink()
            (root / "clips" / f"{name}.mp4").write_bytes(b"not the clip of before")

    trained = lab.run(
        root,
        tmp_path / "out",
        callbacks=TrainingCallbacks(on_step=spoil),
        optimise={"batch_size": 1, "max_steps": 14},
    )
    told = {name for name, *_ in trained.unshown.values()}
    assert told  # One that the first step had shown is still on the gallery's wall.
    assert told <= gone
    assert trained.ended == "done"


def test_patience_ends_a_training_and_the_best_checkpoint_is_its_model(
    root: Path, tmp_path: Path
) -> None:
    trained = lab.run(
        root,
        tmp_path,
        optimise={"max_steps": 40, "learning_rate": 0.5, "schedule": "constant"},
        watch={"every": 1, "patience": 2, "save_every": 100},
    )
    assert trained.ended == "early"
    assert trained.step < 38
    model = TrainingCheckpointStore(tmp_path).model()
    assert model is not None
    assert model.step == trained.step
    assert trained.step in {each.step for each in TrainingCheckpointStore(tmp_path).whole()}
