"""What a model learns from and what it is asked are the same numbers: ids, pixels, box space."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("lance")

from tiny_models import FAMILIES
from training.sets import clip, fake, real, recipe, write_set
from unreel.asking.answer_store import QuestionResult
from unreel.asking.asker import Asker
from unreel.core.answer import Reply
from unreel.core.failure import Failure
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import (
    ClipAccessSettings,
    build_clip_access_settings,
    find_clip_change,
    provide_local_clip_file,
)
from unreel.media.access import open_media_reader
from unreel.reviewers.clip_inputs import ClipInputLoader
from unreel.reviewers.contract import ReviewRequest
from unreel.reviewers.factory import ReviewerWithPrices
from unreel.reviewers.local.checkpoint import FamilyName, Form, read_checkpoint
from unreel.reviewers.local.encoder import EncodedRequest, RequestEncoder
from unreel.reviewers.local.reviewer import LocalReviewer
from unreel.testing.reviewers import run
from unreel.training.examples.example import (
    TrainingExample,
    TrainingExampleInput,
    load_training_example_input,
)
from unreel.training.examples.reading import read_training_examples

pytestmark = pytest.mark.filterwarnings("default")
PROMPTS = {"trace": "fine-tuning", "preference": "paper"}


class Overheard(RequestEncoder):
    """An encoder that keeps what a reviewer had encoded."""

    heard: list[tuple[ReviewRequest, EncodedRequest | Failure]]

    def encode(self, request: ReviewRequest, target: str | None = None) -> EncodedRequest | Failure:
        made = super().encode(request, target)
        self.heard.append((request, made))
        return made


@dataclass(frozen=True)
class Bench:
    """Examples of each instrument, and what shows their clips."""

    showing: ClipInputLoader
    asker: Callable[[], Asker]
    examples: Mapping[str, tuple[TrainingExample, ...]]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("set")
    entries = [(real("r", group="1"), clip(1)), (fake("f", group="1"), clip(2))]
    root, access = (
        write_set(folder / "bench", entries),
        build_clip_access_settings(read_environment_settings(), trusted=True),
    )
    opening = {
        "open_file": partial(provide_local_clip_file, access=access),
        "find_change": find_clip_change,
    }
    with open_media_reader(access.settings, trusted=True) as reader:
        yield Bench(
            ClipInputLoader(reader=reader, **opening),
            lambda: Asker(reader, **opening),
            {name: read(root, name, access, folder / name) for name in PROMPTS},
        )


def read(
    root: Path, name: str, access: ClipAccessSettings, folder: Path
) -> tuple[TrainingExample, ...]:
    condition = {"sampling": "fps-8", "prompt": PROMPTS[name], "max_pixels": 5_000}
    data = {"benchmark": str(root), "split": None, "protocol": name, "condition": condition}
    wanted = recipe(root, data=[data], holdout={"share": 0, "near_duplicates": False})
    return read_training_examples(wanted, access=access, folder=folder).train


@pytest.mark.parametrize("name", PROMPTS)
@pytest.mark.parametrize("form", ["frames", "video"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_lesson_is_the_question_that_is_asked_to_the_last_number(
    family: FamilyName, form: Form, name: str, tiny: Callable[[FamilyName], Path], bench: Bench
) -> None:
    checkpoint = read_checkpoint(tiny(family), form=form)
    reviewer = LocalReviewer(checkpoint, max_tokens=2)
    overheard = reviewer._encoder = Overheard(checkpoint.folder, checkpoint.taught)
    overheard.heard = []
    asked_about = bench.examples[name]

    async def ask() -> list[QuestionResult]:
        with closing(bench.asker()) as asker:
            return [
                await asker.ask(e.question, e.clips, ReviewerWithPrices(reviewer), name=e.name)
                for e in asked_about
            ]

    answered = run(reviewer, ask)
    encoder = RequestEncoder(checkpoint.folder, checkpoint.taught)
    for example, asked, (sheet, heard) in zip(asked_about, answered, overheard.heard, strict=True):
        lesson = load_training_example_input(example, bench.showing, encoder)
        assert isinstance(lesson, TrainingExampleInput)
        learned = encoder.encode(lesson.request, lesson.target)
        assert isinstance(asked.outcome, Reply), asked.outcome
        assert isinstance(learned, EncodedRequest)
        assert isinstance(heard, EncodedRequest)
        assert frames(lesson.request) == frames(sheet) != []
        assert torch.equal(learned.input_ids[: learned.n_prompt], heard.input_ids)
        assert learned.media.keys() == heard.media.keys()
        assert all(torch.equal(learned.media[key], heard.media[key]) for key in heard.media)
        assert encoder.decode(learned.input_ids[learned.n_prompt :]) == lesson.target
        if name == "trace":
            assert lesson.box_space == asked.box_space


def frames(request: ReviewRequest) -> list[Any]:
    return [(f.at_s, f.jpeg) for exhibit in request.inputs for f in exhibit.frames]
