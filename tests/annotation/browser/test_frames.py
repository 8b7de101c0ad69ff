"""A box that a person draws on a paused frame is, in the ledger, on that very frame."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from annotation.browser.annotator import Annotator as Hands
from scenes.ball import read_index
from studio import Studio
from synthesise import ClipRecipe, synthesise
from unreel.annotation.browser_copies import (
    ClipCopyRequest,
    build_clip_copy_urls,
    make_browser_copies,
)
from unreel.annotation.campaign import (
    AnnotationInterface,
    AnnotationRecord,
    AnnotationTask,
    Annotator,
    AnnotatorClipCopy,
    Campaign,
    TaskAssignment,
    TraceAnswer,
)
from unreel.annotation.campaign_push import AssignmentPushRequest, push_assignments
from unreel.annotation.interfaces.label_studio_tasks import get_annotation_screen
from unreel.annotation.ledger.connection import open_ledger
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.studio.client import (
    LabelStudioClient,
    create_annotator_accounts,
    read_account_passwords,
    read_copy_name_key,
)
from unreel.annotation.studio.projects import list_annotator_project_links
from unreel.annotation.studio.pull import pull_campaign_annotations
from unreel.core.box import Box
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.settings import read_environment_settings
from unreel.core.trace import Category, Trace
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings
from unreel.media.messages import MAX_PIXELS
from unreel.media.timeline import read_frame_timeline

pytestmark = [pytest.mark.xdist_group("studio"), pytest.mark.timeout(600)]

NTSC = Fraction(30000, 1001)
LATE = tuple(Fraction(7, 5) + i / Fraction(25) for i in range(50))
UNEVEN = tuple(Fraction(i, 30) + Fraction(i % 3, 90) for i in range(60))
SOURCES = {
    "late": ClipRecipe(container="mkv", width=480, height=320, n_frames=50, instants_s=LATE),
    "ntsc": ClipRecipe(width=480, height=320, n_frames=61, rate=NTSC),
    "uneven": ClipRecipe(container="mkv", width=480, height=320, n_frames=60, instants_s=UNEVEN),
}
PERSON = Annotator("ada", "ada@example.org")
BOXES = (Box(0.1, 0.25, 0.3, 0.5), Box(0.4, 0.3, 0.6, 0.7), Box(0.7, 0.2, 0.9, 0.55))
KINDS = {"q": Category.OBJECT_DISTORTION, "t": Category.OBJECT_MERGING, "g": Category.OTHER}


@dataclass(frozen=True)
class Marked:
    """What the person saw and did on one frame."""

    frame: int
    """The number that stood below the picture."""
    index: int
    """The number that the picture itself carries: that of the source's frame."""
    box: Box
    kind: Category
    text: str


@dataclass(frozen=True)
class Room:
    """A campaign before one person."""

    tasks: dict[str, AnnotationTask]
    link: str
    password: str


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(str(tmp_path / "ledger.db")) as opened:
        yield opened


@pytest.fixture
def client(studio: Studio) -> Iterator[LabelStudioClient]:
    with LabelStudioClient(studio.connection) as opened:
        yield opened


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Path]:
    made = {}
    for name, recipe in SOURCES.items():
        made[name] = tmp_path / f"{name}.{recipe.container}"
        made[name].write_bytes(synthesise(recipe))
    return made


@pytest.fixture
def room(
    studio: Studio, client: LabelStudioClient, ledger: Ledger, sources: dict[str, Path]
) -> Room:
    """The three clips, in the order of their names, before one person."""
    place = StorageLocation(str(studio.media))
    wanted = [ClipCopyRequest(name, str(path)) for name, path in sources.items()]
    access = ClipAccessSettings(settings=read_environment_settings())
    key = read_copy_name_key(studio.folder)
    made = make_browser_copies(wanted, location=place, access=access, key=key, workers=1)
    tasks = {name: _task(name, result) for name, result in made}
    screen = get_annotation_screen(AnnotationInterface.TRACE)
    campaign = Campaign(
        name="frames",
        interface=AnnotationInterface.TRACE,
        benchmark="drawn",
        overlap=1,
        guidelines=screen.guidelines,
        interface_version=screen.version,
    )
    ledger.enlist([PERSON])
    ledger.open_campaign(campaign)
    ledger.add_tasks("frames", tasks.values())
    ledger.assign(
        "frames",
        (
            TaskAssignment(annotator=PERSON.name, task=task.id, batch=1, position=position)
            for position, task in enumerate(tasks.values())
        ),
    )
    delivery = AssignmentPushRequest(
        client=client,
        ledger=ledger,
        campaign=campaign,
        screen=screen,
        accounts=create_annotator_accounts(client, [PERSON], folder=studio.folder),
        find_urls=lambda task: build_clip_copy_urls(place, [copy.location for copy in task.copies]),
    )
    push_assignments(delivery, on_sent=lambda _n: None)
    (link,) = list_annotator_project_links(ledger, "frames", address=studio.address)
    return Room(tasks, link.url, read_account_passwords(studio.folder)[PERSON.email])


def _task(name: str, copy: AnnotatorClipCopy | Failure) -> AnnotationTask:
    assert isinstance(copy, AnnotatorClipCopy)
    return AnnotationTask(names=(name,), copies=(copy,))


def mark(hands: Hands, copy: AnnotatorClipCopy, place: int) -> Marked:
    """Draw the box of that place on the frame that the screen shows, and say what is wrong in it."""
    seen, frame = read_index(hands.picture(copy)), hands.frame()
    (key, kind), text = list(KINDS.items())[place], f"Wrong on frame {frame}."
    hands.draw(BOXES[place], copy)
    hands.press(key)
    hands.say(text, "explanation")
    return Marked(frame, seen, BOXES[place], kind, text)


def annotate(hands: Hands, copy: AnnotatorClipCopy) -> list[Marked]:
    """Mark the first frame, one in the middle on which the clip was paused, and the last."""
    hands.wait_for_clip(copy.n_frames)
    marks = [mark(hands, copy, 0)]
    hands.press("u")
    hands.play_to(copy.n_frames // 3)
    marks.append(mark(hands, copy, 1))
    hands.switch_off()
    hands.press("u")
    hands.go_to_last(copy.n_frames)
    marks.append(mark(hands, copy, 2))
    hands.press("1")
    hands.submit()
    return marks


def check(trace: Trace, marked: Marked, copy: AnnotatorClipCopy, source: Path) -> None:
    """The trace is where the box was drawn, and starts on the frame that was seen."""
    start = trace.track[0]
    assert start.at_us == trace.span.start_us == copy.at_us(marked.frame - 1)
    timeline = read_frame_timeline(BytesIO(source.read_bytes()), max_pixels=MAX_PIXELS)
    assert timeline.shown_at((marked.frame - 1) / copy.rate) == marked.index
    for side in ("x0", "y0", "x1", "y1"):
        assert abs(getattr(start.box, side) - getattr(marked.box, side)) < 0.01
    assert trace.categories == {marked.kind}
    assert trace.explanation == marked.text


def test_a_box_drawn_on_a_paused_frame_is_pulled_on_that_very_frame(
    room: Room, client: LabelStudioClient, ledger: Ledger, sources: dict[str, Path], chromium: Any
) -> None:
    hands = Hands(chromium.new_page(viewport={"width": 1440, "height": 900}))
    hands.log_in(room.link, PERSON.email, room.password)
    hands.read_guidelines()
    done = {name: annotate(hands, task.copies[0]) for name, task in room.tasks.items()}
    assert pull_campaign_annotations(
        client, ledger, "frames", on_project=lambda _told: None
    ).new == len(SOURCES)
    records = {record.task: record for _, record in ledger.records("frames")}
    for name, task in room.tasks.items():
        _check_record(records[task.id], done[name], task.copies[0], sources[name])


def _check_record(
    record: AnnotationRecord, marks: list[Marked], copy: AnnotatorClipCopy, source: Path
) -> None:
    assert isinstance(record.outcome, TraceAnswer), record.outcome
    assert record.outcome.label is Label.GENERATED
    assert record.lead_us is not None
    assert record.lead_us > 0
    assert [marks[0].frame, marks[2].frame] == [1, copy.n_frames]
    assert 1 < marks[1].frame < copy.n_frames
    found = sorted(record.outcome.traces, key=lambda trace: trace.span.start_us)
    for trace, marked in zip(found, marks, strict=True):
        check(trace, marked, copy, source)
    ends = [trace.span.end_us for trace in found]
    assert ends == [copy.duration_us, copy.at_us(marks[1].frame), copy.duration_us]
