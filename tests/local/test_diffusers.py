"""Pipelines of diffusers as creators: tiny ones with random weights, loaded and run as large ones are."""

import asyncio
import inspect
import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
diffusers = pytest.importorskip("diffusers", reason="needs the extra `diffusers`")

from tiny_pipelines import write_tiny_image_pipeline, write_tiny_pipeline
from unreel.core.clip import ClipFacts
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import EnvironmentSettings
from unreel.creators.config import CreatorRecipeSection
from unreel.creators.contract import ClipBrief, Creator, CreatorInput, GeneratedClip
from unreel.creators.diffusers import DiffusersCreatorConfig
from unreel.creators.pipeline_families import FAMILIES, FamilyName
from unreel.media.reader import MediaReader, run_trusted_task
from unreel.testing.creators import CreatorKit, FakeCreatorContext, sample_frame

pytestmark = pytest.mark.filterwarnings("default")
Tiny = Callable[[FamilyName], Path]
SMALL = {"dtype": "float32", "steps": 1, "n_frames": 9, "width": 32, "height": 32}
BRIEF = ClipBrief(
    id="ball",
    setting=CreatorInput.TEXT,
    text="A ball crosses the picture.",
    width=640,
    height=360,
    duration_us=1_000_000,
    seed=3,
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    folder = tmp_path_factory.mktemp("pipelines")

    def written(family: FamilyName) -> Path:
        if not (folder / family).exists():
            write_tiny_pipeline(family, folder / family)
        return folder / family

    return written


def section(family: FamilyName, folder: Path, **keys: Any) -> CreatorRecipeSection:
    named = {"name": "tiny", "kind": "diffusers", "family": family, "model": str(folder)}
    return CreatorRecipeSection.model_validate(named | {"settings": ["text"]} | SMALL | keys)


def make(told: CreatorRecipeSection, brief: ClipBrief, desk: Path) -> GeneratedClip | Failure:
    desk.mkdir(exist_ok=True)

    async def once() -> GeneratedClip | Failure:
        creator = told.opener(settings=EnvironmentSettings()).open()
        try:
            return await creator.make(brief, FakeCreatorContext(desk))
        finally:
            await creator.close()

    return asyncio.run(once())


class TestLtx(CreatorKit):
    free = True

    @pytest.fixture
    def creator(self, tiny: Tiny) -> Creator:
        return section("ltx", tiny("ltx")).opener(settings=EnvironmentSettings()).open()


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_family_makes_a_clip_from_words(
    tiny: Tiny, family: FamilyName, tmp_path: Path
) -> None:
    made = make(section(family, tiny(family)), BRIEF, tmp_path / "desk")
    assert isinstance(made, GeneratedClip), made
    facts = MediaReader(run_trusted_task).probe(made.file)
    assert isinstance(facts, ClipFacts)
    video = facts.video
    assert (video.n_frames, video.width, video.height) == (9, 32, 32)
    assert video.average_rate == FAMILIES[family].rate
    assert made.parameters["pipeline"] == FAMILIES[family].from_text


@pytest.mark.parametrize("family", ["cogvideox", "ltx", "wan"])
def test_families_make_clips_from_a_first_frame(family: FamilyName, tmp_path: Path) -> None:
    write_tiny_image_pipeline(family, tmp_path / family)
    shown = replace(BRIEF, setting=CreatorInput.IMAGE_AND_TEXT, first_frame=sample_frame())
    told = section(family, tmp_path / family, settings=["image+text"])
    made = make(told, shown, tmp_path / "desk")
    assert isinstance(made, GeneratedClip), made
    assert made.parameters["pipeline"] == FAMILIES[family].from_image


def test_another_seed_is_another_clip_and_a_first_frame_is_looked_at(
    tiny: Tiny, tmp_path: Path
) -> None:
    told = section("ltx", tiny("ltx"), settings=["image+text"])
    shown = replace(BRIEF, setting=CreatorInput.IMAGE_AND_TEXT, first_frame=sample_frame())
    plain = _bytes(make(told, shown, tmp_path / "plain"))
    other = _bytes(make(told, replace(shown, seed=4), tmp_path / "other"))
    worded = _bytes(make(told, BRIEF, tmp_path / "words"))
    assert len({plain, other, worded}) == 3


def test_a_first_frame_that_cannot_be_read_costs_that_clip(tiny: Tiny, tmp_path: Path) -> None:
    broken = replace(BRIEF, setting=CreatorInput.IMAGE, first_frame=b"no picture")
    failure = make(section("ltx", tiny("ltx")), broken, tmp_path / "desk")
    assert isinstance(failure, Failure)
    assert failure.reason is FailureReason.NO_BRIEF


def test_a_checkpoint_of_another_family_is_refused_before_it_is_loaded(tiny: Tiny) -> None:
    opener = section("cogvideox", tiny("ltx")).opener(settings=EnvironmentSettings())
    with pytest.raises(InvalidSettingError, match="LTXPipeline"):
        opener.open()


def test_weights_that_are_damaged_are_told_for_every_clip(tiny: Tiny, tmp_path: Path) -> None:
    damaged = tmp_path / "ltx"
    shutil.copytree(tiny("ltx"), damaged)
    next((damaged / "transformer").glob("*.safetensors")).write_bytes(b"no weights")
    creator = section("ltx", damaged).opener(settings=EnvironmentSettings()).open()
    outcomes = [asyncio.run(creator.make(BRIEF, FakeCreatorContext(tmp_path))) for _ in range(2)]
    assert outcomes[0] == outcomes[1]
    assert isinstance(outcomes[0], Failure)
    assert "LTXPipeline of 'ltx' cannot be loaded" in outcomes[0].detail


def test_neither_code_nor_pickles_of_a_models_folder_are_run(tiny: Tiny, tmp_path: Path) -> None:
    for number, spoil in enumerate((_bring_code, _bring_pickle)):
        hostile = tmp_path / str(number) / "ltx"
        shutil.copytree(tiny("ltx"), hostile)
        spoil(hostile, tmp_path / "was-run")
        failure = make(section("ltx", hostile), BRIEF, tmp_path / "desk")
        assert isinstance(failure, Failure)
        assert not (tmp_path / "was-run").exists()


def _bring_code(folder: Path, mark: Path) -> None:
    index = json.loads((folder / "model_index.json").read_text())
    index["transformer"] = ["hostile", "Hostile"]
    (folder / "model_index.json").write_text(json.dumps(index))
    code = f"open({str(mark)!r}, 'w')\nclass Hostile: pass\n"
    (folder / "transformer" / "hostile.py").write_text(code)


def _bring_pickle(folder: Path, mark: Path) -> None:
    held = folder / "transformer"
    next(held.glob("*.safetensors")).unlink()
    (held / "diffusion_pytorch_model.bin").write_bytes(pickle.dumps(_Opens(mark)))


class _Opens:
    """Opens a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return open, (str(self.mark), "w")


def test_other_weights_are_another_name_and_another_place_is_not(
    tiny: Tiny, tmp_path: Path
) -> None:
    moved = tmp_path / "ltx"
    shutil.copytree(tiny("ltx"), moved)
    first = section("ltx", tiny("ltx"))
    assert section("ltx", moved).stable_name == first.stable_name
    assert section("ltx", moved, device="cpu").stable_name == first.stable_name
    assert section("ltx", moved, steps=2).stable_name != first.stable_name
    weights = next((moved / "transformer").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    assert section("ltx", moved).stable_name != first.stable_name


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_both_pipelines_of_a_family_take_what_they_are_told(family: FamilyName) -> None:
    told = DiffusersCreatorConfig(
        family=family, model="m", steps=2, guidance=3.0, negative="blur", device="cpu"
    )
    for kind in (FAMILIES[family].from_text, FAMILIES[family].from_image):
        taken = inspect.signature(getattr(diffusers, kind).__call__).parameters
        assert set(told.call(BRIEF)) <= set(taken), kind
        assert "generator" in taken
    assert "image" in taken


def _bytes(outcome: GeneratedClip | Failure) -> bytes:
    assert isinstance(outcome, GeneratedClip), outcome
    return outcome.file.read_bytes()
