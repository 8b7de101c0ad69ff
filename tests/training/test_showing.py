"""A lesson is the question that an evaluation puts, with its answer in the space of the model."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("lance")  # examples are kept in tables

from training.sets import clip, fake, real, recipe, write_set
from unreel.asking.asker import Asker
from unreel.core.answer import Reply
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import (
    ClipAccessSettings,
    build_clip_access_settings,
    find_clip_change,
    provide_local_clip_file,
)
from unreel.media.access import open_media_reader
from unreel.media.reader import MediaReader
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.protocol import AnswerContext, get_protocol
from unreel.reviewers.clip_inputs import ClipInputLoader
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest
from unreel.reviewers.factory import wrap_open_reviewer
from unreel.training.examples.example import (
    TrainingExample,
    TrainingExampleInput,
    load_training_example_input,
)
from unreel.training.examples.input_size import FamilyRuleInputSizer
from unreel.training.examples.reading import read_training_examples


@dataclass
class Listener:
    """A reviewer that keeps the sheets that it is asked."""

    sheets: list[ReviewRequest] = field(default_factory=list)
    name = "listener"
    wants = frozenset({InputKind.FRAMES})

    def box_space(self, clip_input: ClipInput) -> str:
        return FamilyRuleInputSizer("qwen2.5-vl", "frames").box_space(clip_input)

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        self.sheets.append(request)
        return Reply(text="REAL", latency_us=1, usage=None)

    async def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def access() -> ClipAccessSettings:
    return build_clip_access_settings(read_environment_settings(), trusted=True)


@pytest.fixture(scope="module")
def reader(access: ClipAccessSettings) -> Iterator[MediaReader]:
    with open_media_reader(access.settings, trusted=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = [(real("r", group="1"), clip(1)), (fake("f", group="1"), clip(2))]
    return write_set(tmp_path_factory.mktemp("set"), entries)


def showing(access: ClipAccessSettings, reader: MediaReader) -> ClipInputLoader:
    return ClipInputLoader(
        reader=reader,
        open_file=partial(provide_local_clip_file, access=access),
        find_change=find_clip_change,
    )


@pytest.mark.parametrize("form", ["frames", "video"])
@pytest.mark.parametrize("name", ["trace", "reality", "preference"])
def test_the_sheet_is_the_one_that_an_evaluation_puts(
    name: str,
    form: str,
    access: ClipAccessSettings,
    reader: MediaReader,
    root: Path,
    tmp_path: Path,
) -> None:
    (prompt, *_) = sorted(get_protocol(name).wording.teaches)
    condition = {"sampling": "uniform-3", "prompt": prompt, "max_pixels": 2048}
    data = {"benchmark": str(root), "split": None, "protocol": name, "condition": condition}
    wanted = recipe(root, input=form, data=[data], holdout={"share": 0, "near_duplicates": False})
    listener = Listener()
    asker = Asker(
        reader,
        open_file=partial(provide_local_clip_file, access=access),
        find_change=find_clip_change,
    )
    for example in read_training_examples(wanted, access=access, folder=tmp_path).train:
        lesson = load_training_example_input(
            example, showing(access, reader), FamilyRuleInputSizer("qwen2.5-vl", "frames")
        )
        asked = wrap_open_reviewer(listener).open()
        asyncio.run(asker.ask(example.question, example.clips, asked, name=example.name))
        (sheet,) = listener.sheets
        listener.sheets.clear()
        assert isinstance(lesson, TrainingExampleInput)
        assert lesson.request.inputs == sheet.inputs
        assert [f.jpeg for e in sheet.inputs for f in e.frames]
        assert (lesson.request.prompt, lesson.request.condition) == (sheet.prompt, sheet.condition)
        assert (lesson.request.instrument, lesson.request.name) == (sheet.instrument, sheet.name)
    asker.close()


@pytest.mark.parametrize("family", ["qwen2.5-vl", "qwen3-vl", "videollama3"])
def test_boxes_are_taught_in_the_space_that_the_model_sees(
    family: str, access: ClipAccessSettings, reader: MediaReader, root: Path, tmp_path: Path
) -> None:
    wanted = recipe(root, holdout={"share": 0, "near_duplicates": False})
    rule = FamilyRuleInputSizer(family, "video")  # type: ignore[arg-type]
    for example in read_training_examples(wanted, access=access, folder=tmp_path).train:
        lesson = load_training_example_input(example, showing(access, reader), rule)
        assert isinstance(lesson, TrainingExampleInput)
        assert lesson.box_space is not None
        assert lesson.box_space == rule.box_space(lesson.request.inputs[0])
        space = parse_box_space(lesson.box_space, width=96, height=64)
        said = get_protocol("trace").parse(
            lesson.target, AnswerContext(prompt="fine-tuning", space=space)
        )
        assert said.label is example.truth.label
        if example.truth.box is not None:
            assert said.box.iou(example.truth.box) > 0.9


def test_a_clip_that_is_gone_or_changed_is_a_failure_and_no_error(
    access: ClipAccessSettings, reader: MediaReader, tmp_path: Path
) -> None:
    own = write_set(tmp_path / "set", [(real("a"), clip(1)), (real("b"), clip(2))])
    wanted = recipe(own, holdout={"share": 0, "near_duplicates": False})
    first, second = read_training_examples(wanted, access=access, folder=tmp_path / "kept").train

    def reason(example: TrainingExample) -> FailureReason:
        lesson = load_training_example_input(
            example, showing(access, reader), FamilyRuleInputSizer("qwen3-vl", "frames")
        )
        assert isinstance(lesson, Failure)
        return lesson.reason

    (own / "a.mp4").write_bytes(clip(3))
    (own / "b.mp4").unlink()
    assert {reason(first), reason(second)} <= {FailureReason.CLIP_CHANGED, FailureReason.NOT_A_FILE}
