"""HTML page of training examples as model input: frames, boxes, timestamps, prompt and answer."""

import io
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
from PIL import Image

from unreel.core.box import Box
from unreel.core.content_ids import digest
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.core.span import MICROSECONDS
from unreel.media.overlay import draw_box_outline, get_palette_colour
from unreel.media.picture import encode_jpeg
from unreel.pages.html_page import build_html_page, render_template
from unreel.pages.playable_clip import build_data_uri
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.presentation import format_frame_time
from unreel.protocols.protocol import AnswerContext, get_protocol
from unreel.reviewers.clip_inputs import ClipInputLoader
from unreel.reviewers.contract import ClipInput
from unreel.training.examples.example import (
    TrainingExample,
    TrainingExampleInput,
    load_training_example_input,
)
from unreel.training.examples.input_size import ModelInputSizer
from unreel.training.examples.reading import TrainingExampleSet
from unreel.training.recipe import TrainRecipe

PAGE = "examples.html"
_QUALITY = 85
_MAX_FRAMES = 16
"""Maximum number of frames of a clip on the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleFrameImage:
    """One frame of a training example on the page, at the size at which the model receives it."""

    src: str
    at: str
    boxed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingExamplePageItem:
    """One training example on the HTML page and in the JSON output, or why it cannot be shown."""

    name: str
    side: str
    """Part of the data: `train` or `held out`."""
    source: str
    instrument: str
    condition: str
    prompt: str = ""
    target: str = ""
    box_space: str | None = None
    """Coordinate space of the box in the target answer, as the model receives it."""
    width: int = 0
    height: int = 0
    """Height of the frames after the model's resize, in pixels."""
    instants_s: tuple[tuple[float, ...], ...] = ()
    """Timestamps of the frames of each clip."""
    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    problem: str = ""
    """Reason why the example cannot be shown or used for training; "" if it can."""


def choose_page_examples(
    examples: TrainingExampleSet, *, limit: int, seed: int
) -> list[tuple[TrainingExample, str]]:
    """Choose up to `limit` examples with their part, by hash and in turn over data, part and label."""
    kinds: defaultdict[tuple[int, str, bool], list[tuple[str, TrainingExample]]] = defaultdict(list)
    for side, part in (("train", examples.train), ("held out", examples.held_out)):
        for example in part:
            rank = digest("page", str(seed), example.key)
            kinds[example.data, side, bool(example.creator)].append((rank, example))
    queues = [
        [(example, side) for _, example in sorted(group, key=lambda pair: pair[0])]
        for (_, side, _), group in sorted(
            kinds.items(), key=lambda kind: (kind[0][0], kind[0][1] != "train", not kind[0][2])
        )
    ]
    turns = chain.from_iterable(zip_longest(*queues))
    return [item for item in turns if item is not None][:limit]


def write_examples_page(
    recipe: TrainRecipe,
    examples: TrainingExampleSet,
    *,
    loader: ClipInputLoader,
    sizer: ModelInputSizer,
    limit: int,
    out: Path,
) -> list[TrainingExamplePageItem]:
    """Write the page of training examples to the folder `out`, and return the examples on it."""
    pages = [
        _build_page_example(example, side, loader=loader, sizer=sizer)
        for example, side in choose_page_examples(examples, limit=limit, seed=recipe.seed)
    ]
    body = render_template(
        "unreel.training.examples:examples.html",
        recipe=recipe,
        examples=examples,
        view=sizer.description,
        shown=pages,
        most_frames=_MAX_FRAMES,
    )
    page = build_html_page(
        title=f"{sanitise_line(recipe.name)}: examples",
        body=body,
        styles=("unreel.training.examples:examples.css",),
        scripts=(),
        data={},
    )
    OutputDirectory(out, published=True).write(PAGE, page.encode())
    return [item for item, _ in pages]


def _build_page_example(
    example: TrainingExample, side: str, *, loader: ClipInputLoader, sizer: ModelInputSizer
) -> tuple[TrainingExamplePageItem, list[list[ExampleFrameImage]]]:
    question = example.question
    blank = TrainingExamplePageItem(
        name=sanitise_line(example.name),
        side=side,
        source=sanitise_line(example.source),
        instrument=str(question.instrument),
        condition=str(question.condition),
    )
    example_input = load_training_example_input(example, loader, sizer)
    if isinstance(example_input, Failure):
        return replace(blank, problem=sanitise_line(str(example_input))), []
    tokens = sizer.count(example_input)
    width, height = sizer.seen_size(example_input.request.inputs[0])
    item = replace(
        blank,
        prompt=example_input.request.prompt,
        target=example_input.target,
        box_space=example_input.box_space,
        width=width,
        height=height,
        instants_s=tuple(
            tuple(float(frame.at_s) for frame in clip_input.frames)
            for clip_input in example_input.request.inputs
        ),
        prompt_tokens=None if isinstance(tokens, Failure) else tokens.prompt,
        answer_tokens=None if isinstance(tokens, Failure) else tokens.answer,
        problem=sanitise_line(str(tokens)) if isinstance(tokens, Failure) else "",
    )
    return item, [
        list(_iter_example_pictures(clip_input, example_input, sizer))
        for clip_input in example_input.request.inputs
    ]


def _iter_example_pictures(
    clip_input: ClipInput, example: TrainingExampleInput, sizer: ModelInputSizer
) -> Iterator[ExampleFrameImage]:
    box, from_s, to_s = _parse_target_box_and_span(example)
    frames = clip_input.frames
    if len(frames) > _MAX_FRAMES:
        frames = tuple(frames[i * len(frames) // _MAX_FRAMES] for i in range(_MAX_FRAMES))
    for frame in frames:
        boxed = box is not None and from_s <= frame.at_s < to_s
        # This process encoded the JPEG itself, so it is safe to decode.
        picture = (
            Image.open(io.BytesIO(frame.jpeg))
            .convert("RGB")
            .resize(sizer.seen_size(clip_input), Image.Resampling.BICUBIC)
        )
        rgb = np.array(picture)
        if box is not None and boxed:
            draw_box_outline(rgb, box, get_palette_colour(0))
        src = build_data_uri(encode_jpeg(rgb, quality=_QUALITY), "image/jpeg")
        yield ExampleFrameImage(src=src, at=format_frame_time(frame.at_s), boxed=boxed)


def _parse_target_box_and_span(
    example: TrainingExampleInput,
) -> tuple[Box | None, Fraction, Fraction]:
    """Return the box in the target answer (`None` if it has none), and start and end of the trace."""
    trace = None if example.box_space is None else example.example.truth.trace
    if example.box_space is None or trace is None:
        return None, Fraction(0), Fraction(0)
    question, (width, height) = example.example.question, example.example.clips[0].size
    space = parse_box_space(example.box_space, width=width, height=height)
    reading = AnswerContext(prompt=question.condition.prompt, space=space)
    answer = get_protocol(question.instrument.protocol).parse(example.target, reading)
    box = answer.box if isinstance(answer.box, Box) else None
    start_us, end_us = trace.span.start_us, trace.span.end_us
    return box, Fraction(start_us, MICROSECONDS), Fraction(end_us, MICROSECONDS)
