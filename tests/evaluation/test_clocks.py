"""One clock: whatever time a container begins at, instants count from the clip's first frame."""

import io
import json
import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from scenes.ball import read_index
from synthesise import ClipRecipe, Container, synthesise
from unreel.benchmarks.export.exported_question import BenchmarkExportRecipe, ExportedQuestion
from unreel.benchmarks.export.question_writer import build_question_media_parts as show_exported
from unreel.core.clip import Clip
from unreel.core.content_ids import compute_clip_id
from unreel.core.judgement import Label
from unreel.core.question import Condition
from unreel.core.span import TimeSpan, convert_to_microseconds
from unreel.core.trace import Category, Trace
from unreel.curation.inject.clip_injection import inject_trace_into_clip
from unreel.media.decode import Rgb
from unreel.media.reader import MediaReader, SampledFrame, run_trusted_task
from unreel.media.render import CroppedFrameRange
from unreel.protocols.answer_text import parse_answer_text
from unreel.protocols.presentation import format_frame_time
from unreel.protocols.protocol import ScoredQuestion, get_protocol
from unreel.protocols.trace.ground_truth import TraceTruth
from unreel.reviewers.clip_inputs import build_clip_input
from unreel.reviewers.contract import InputKind, ReviewRequest
from unreel.reviewers.endpoint.model_families import FAMILIES, ModelFamily
from unreel.reviewers.endpoint.reviewer import build_chat_request_body

NTSC = Fraction(30000, 1001)
EVERY_FRAME = "fps-1000"
TRACE = get_protocol("trace")
READER = MediaReader(run_trusted_task)
MARK_S = Fraction(1, 200)
"""Marks are written to a hundredth of a second."""

Shown = Iterator[tuple[str, Rgb]]

starts = st.fractions(0, 10, max_denominator=1000) | st.just(Fraction(-1, 4))
steady = st.just((1 / NTSC,) * 14)
uneven = st.lists(st.integers(20, 200).map(lambda ms: Fraction(ms, 1000)), min_size=14, max_size=14)


def clip_at(start_s: Fraction, gaps_s: Sequence[Fraction], container: Container) -> ClipRecipe:
    instants = tuple(accumulate(gaps_s, initial=start_s))
    size = {"width": 96, "height": 64, "n_frames": len(instants)}
    return ClipRecipe(container=container, rate=NTSC, instants_s=instants, **size)


def shown_frames(recipe: ClipRecipe) -> dict[int, Fraction]:
    """Instants of the frames after the first that shows: an mp4's edit list cuts what is before 0."""
    cut = recipe.container == "mp4"
    shown = {i: at for i, at in enumerate(recipe.instants_s) if at >= 0 or not cut}
    first_s = next(iter(shown.values()))
    return {index: at - first_s for index, at in shown.items()}


def asked_in_chat(clip: Clip, path: Path, family: ModelFamily) -> Shown:
    condition = Condition(sampling=EVERY_FRAME)
    wants = frozenset({InputKind.FRAMES})
    exhibit = build_clip_input(clip, path, reader=READER, condition=condition, wants=wants)
    sheet = ReviewRequest(
        key="k", instrument=TRACE.instrument, prompt="?", inputs=(exhibit,), condition=condition
    )
    body = json.loads(
        build_chat_request_body(sheet, family=family, show="frames", fields={"model": "m"})
    )
    *parts, _prompt = body["messages"][0]["content"]
    for mark, picture in zip(parts[::2], parts[1::2], strict=True):
        data = b64decode(picture["image_url"]["url"].partition(",")[2])
        yield mark["text"], np.asarray(Image.open(io.BytesIO(data)))


def asked_in_an_export(path: Path) -> Shown:
    recipe = BenchmarkExportRecipe(
        name="x", protocol="trace", box_space="pixel", sampling=EVERY_FRAME
    )
    item = ExportedQuestion(id="x", clips="", videos=json.dumps([path.name]), answer="", truth="")
    parts = show_exported(recipe, item, media=path.parent, reader=READER)
    for mark, frame in pairwise(parts):
        if isinstance(frame, SampledFrame):
            yield mark, frame.rgb()


def see_it_begin(shown: Shown, index: int) -> str:
    """The words of a perfect reviewer: the mark of the first picture that shows the trace."""
    mark = next(mark for mark, rgb in shown if read_index(rgb) >= index)
    at = re.sub(" s$", "", mark)
    return f"FAKE <coordinates>[0, 0, 9, 9]</coordinates> <start_time>{at}</start_time>"


def time_distance(text: str, truth: TraceTruth) -> float:
    verdict = parse_answer_text(
        text, TRACE, prompt="paper", mode="lenient", box_space="pixel", size=(96, 64)
    )
    card = TRACE.score([ScoredQuestion(subject="c", truth=truth, outcome=verdict)], seed=0)
    return card["time-distance"].value


@settings(max_examples=30)
@given(
    start_s=starts,
    gaps_s=steady | uneven,
    container=st.sampled_from(["mp4", "mkv", "webm", "ts"]),
    family=st.sampled_from(
        [next(f for f in FAMILIES if f.times == t) for t in ("seconds", "clock")]
    ),
    data=st.data(),
)
def test_a_perfect_reviewer_is_on_time_wherever_the_container_begins(
    start_s, gaps_s, container, family, data
) -> None:
    recipe = clip_at(start_s, gaps_s, container)
    instants = shown_frames(recipe)
    index = data.draw(st.sampled_from(sorted(instants)))
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"clip.{container}"
        path.write_bytes(synthesise(recipe))
        clip = Clip(id=compute_clip_id(path), location=str(path), facts=READER.probe(path))
        duration_us = convert_to_microseconds(clip.facts.video.duration_s)
        start_us = convert_to_microseconds(instants[index])
        trace = Trace(span=TimeSpan(start_us, max(duration_us, start_us + 1)))
        truth = TraceTruth(label=Label.GENERATED, duration_us=duration_us, trace=trace)
        rounded = 100 * (MARK_S + Fraction(1, 900)) / clip.facts.video.duration_s
        for shown in (asked_in_chat(clip, path, family), asked_in_an_export(path)):
            assert time_distance(see_it_begin(shown, index), truth) <= rounded


def test_a_mark_never_has_a_second_60() -> None:
    assert format_frame_time(Fraction(59_999, 1000), "clock") == "01:00.00"
    assert format_frame_time(Fraction(3725, 60), "clock") == "01:02.08"
    assert format_frame_time(Fraction(59_999, 1000)) == "60.00 s"


def test_what_a_clip_holds_is_found_at_the_same_instants_wherever_it_begins(tmp_path) -> None:
    found = []
    for start_s in (Fraction(0), Fraction(7)):
        path = tmp_path / f"from-{start_s}.mp4"
        path.write_bytes(synthesise(clip_at(start_s, (1 / NTSC,) * 14, "mp4")))
        into = tmp_path / f"injected-{start_s}.mp4"
        trace = inject_trace_into_clip(
            path, reader=READER, category=Category.SUDDEN_BLURRING, seed=0, into=into
        )
        scan = READER.scan(path)
        piece = READER.render(path, CroppedFrameRange(first_frame=3, length_s=Fraction(1, 5)))
        found.append((trace, into.read_bytes(), scan.instants_s, scan.end_s, piece))
    assert found[0] == found[1]
    assert found[1][2][:2] == (0, 1 / NTSC)
