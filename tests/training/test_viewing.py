"""What the page of examples tells is what the model gets, where its processor is here."""

from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("lance")

from tiny_models import write_tiny
from training.sets import clip, fake, real, recipe, write_set
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import (
    build_clip_access_settings,
    find_clip_change,
    provide_local_clip_file,
)
from unreel.media.access import open_media_reader
from unreel.reviewers.clip_inputs import ClipInputLoader
from unreel.training.examples.example import TrainingExampleInput, load_training_example_input
from unreel.training.examples.input_size import (
    ExampleTokenCounts,
    FamilyRuleInputSizer,
    ProcessorInputSizer,
    open_input_sizer,
)
from unreel.training.examples.page import write_examples_page
from unreel.training.examples.reading import read_training_examples
from unreel.training.recipe import TrainRecipe

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = [(real("r", group="1"), clip(1)), (fake("f", group="2"), clip(2))]
    return write_set(tmp_path_factory.mktemp("set"), entries)


def wanted(root: Path, model: Path, family: str, form: str) -> TrainRecipe:
    return recipe(
        root,
        input=form,
        model={"name": str(model), "family": family},
        holdout={"share": 0, "near_duplicates": False},
    )


@pytest.mark.parametrize(
    ("family", "form"), [("qwen2.5-vl", "video"), ("qwen3-vl", "frames"), ("videollama3", "video")]
)
def test_the_processor_of_the_model_is_used_where_it_is_here(
    family: str, form: str, root: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    write_tiny(family, model)  # type: ignore[arg-type]
    asked = wanted(root, model, family, form)
    access, view = (
        build_clip_access_settings(read_environment_settings(), trusted=True),
        open_input_sizer(asked),
    )
    assert isinstance(view, ProcessorInputSizer)
    assert str(model) in view.description
    examples = read_training_examples(asked, access=access, folder=tmp_path / "found")
    with open_media_reader(access.settings, trusted=True) as reader:
        opens = partial(provide_local_clip_file, access=access)
        showing = ClipInputLoader(reader=reader, open_file=opens, find_change=find_clip_change)
        lesson = load_training_example_input(examples.train[0], showing, view)
        assert isinstance(lesson, TrainingExampleInput)
        counted = view.count(lesson)
        assert isinstance(counted, ExampleTokenCounts)
        encoded = view.encoder.encode(lesson.request)
        assert counted.prompt == encoded.n_prompt  # type: ignore[union-attr]
        assert (
            view.encoder.decode(
                view.encoder.encode(lesson.request, lesson.target).input_ids[counted.prompt :]  # type: ignore[union-attr]
            )
            == lesson.target
        )
        shown = write_examples_page(
            asked, examples, loader=showing, sizer=view, limit=2, out=tmp_path
        )
    assert [seen.problem for seen in shown] == ["", ""]
    assert {(s.width, s.height) for s in shown} == {view.seen_size(lesson.request.inputs[0])}


def test_a_model_that_is_not_here_is_seen_by_its_family_s_rule(root: Path, tmp_path: Path) -> None:
    for folder in (Path("Qwen/Qwen3-VL-8B-Instruct"), tmp_path):
        view = open_input_sizer(wanted(root, folder, "qwen3-vl", "video"))
        assert isinstance(view, FamilyRuleInputSizer)
        assert "estimate" in view.description
