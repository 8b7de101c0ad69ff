"""Contract tests that every `unreel.reviewers.contract.Reviewer` must pass, ours and yours.

class TestMine(ReviewerKit):
    @pytest.fixture
    def reviewer(self) -> Reviewer:
        return MyReviewer()
"""
# ruff: noqa: S101  these methods are tests

import asyncio
import io
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, TypeVar

from PIL import Image

from unreel.core.answer import Reply
from unreel.core.clip import AudioFacts, Clip, ClipFacts, VideoFacts
from unreel.core.content_ids import compute_placeholder_clip_id, digest
from unreel.core.failure import Failure
from unreel.core.question import Condition, Instrument
from unreel.protocols.box_space import parse_box_space
from unreel.protocols.protocol import get_protocol, list_protocol_names
from unreel.reviewers.contract import ClipInput, InputKind, Reviewer, ReviewRequest, ShownFrame

if TYPE_CHECKING:
    import pytest

    from unreel.creators.contract import Creator

T = TypeVar("T")
_RATE = 25


def sample_clip_input(name: str, *, n_frames: int = 4) -> ClipInput:
    """Build a sample clip of two seconds with real JPEG frames of a moving edge."""
    frames = tuple(
        ShownFrame(index=i, at_s=Fraction(i, _RATE), width=64, height=48, jpeg=_draw_edge_jpeg(i))
        for i in range(n_frames)
    )
    video = VideoFacts(
        codec="h264",
        pixel_format="yuv420p",
        width=64,
        height=48,
        rotation_deg=0,
        n_frames=2 * _RATE,
        average_rate=Fraction(_RATE),
        variable_rate=False,
        first_at_s=Fraction(0),
        duration_s=Fraction(2),
    )
    sound = AudioFacts(codec="aac", sample_rate_hz=48_000, channels=2, duration_s=Fraction(2))
    return ClipInput(
        clip=Clip(
            id=compute_placeholder_clip_id("sample clip", name),
            location=f"{name}.mp4",
            facts=ClipFacts(container="mov", size_bytes=40_000, video=video, audio=(sound,)),
        ),
        frames=frames,
    )


def sample_requests() -> list[ReviewRequest]:
    """Return sample review requests of every protocol, one of them about a pair of clips."""
    requests = []
    for number in range(12):
        protocol = get_protocol(list_protocol_names()[number % len(list_protocol_names())])
        names = [f"sample-{number}", f"other-{number}"][: protocol.n_clips]
        request = ReviewRequest(
            key=digest("sample question", str(number)),
            instrument=protocol.instrument,
            prompt="Is this real?",
            inputs=tuple(sample_clip_input(name) for name in names),
            condition=Condition(),
        )
        requests.append(request)
    return requests


class ReviewerKit:
    """Base class of tests for a reviewer. Inherit it and define a fixture `reviewer`.

    The fixture returns a new reviewer, made outside any event loop.
    """

    secrets: ClassVar[tuple[str, ...]] = ()
    """Keys that the fixture passes to the reviewer, and that no output may contain."""
    repeatable: ClassVar[bool] = True

    def test_its_name_is_stable_and_fits_on_a_line(self, reviewer: Reviewer) -> None:
        name = reviewer.name
        run(reviewer, lambda: _answer_all(reviewer, sample_requests()))
        assert name
        assert name.isprintable()
        assert reviewer.name == name

    def test_declares_input_kinds_and_box_space(self, reviewer: Reviewer) -> None:
        assert all(isinstance(material, InputKind) for material in reviewer.wants)

    def test_it_declares_the_space_of_its_boxes(self, reviewer: Reviewer) -> None:
        declared = reviewer.box_space(sample_clip_input("any"))
        assert parse_box_space(declared, width=64, height=48).name == declared

    def test_answers_do_not_depend_on_concurrent_requests(self, reviewer: Reviewer) -> None:
        async def both() -> tuple[list[Reply | Failure], list[Reply | Failure]]:
            alone = [await reviewer.answer(request) for request in sample_requests()]
            return alone, await _answer_all(reviewer, sample_requests())

        alone, together = run(reviewer, both)
        assert all(isinstance(outcome, Reply | Failure) for outcome in alone + together)
        if self.repeatable:
            assert [_get_outcome_text(outcome) for outcome in together] == [
                _get_outcome_text(outcome) for outcome in alone
            ]

    def test_a_reply_has_words_and_a_failure_has_a_detail(self, reviewer: Reviewer) -> None:
        for outcome in run(reviewer, lambda: _answer_all(reviewer, sample_requests())):
            assert outcome.text.strip() if isinstance(outcome, Reply) else outcome.detail

    def test_unusable_requests_are_failures(self, reviewer: Reviewer) -> None:
        request = sample_requests()[2]
        bare = replace(request.inputs[0], frames=(), sound_wav=None, whole=None)
        frame = replace(request.inputs[0].frames[0], jpeg=b"no picture")
        broken = replace(bare, frames=(frame,) * 4)
        odd = [
            replace(request, inputs=(bare,)),
            replace(request, inputs=(broken,)),
            replace(request, instrument=Instrument("unheard-of", 9)),
            replace(request, prompt="\x00\ud800 not a character"),
            replace(request, condition=Condition(audio="on", thinking="off", prompt="unheard-of")),
        ]
        outcomes = run(reviewer, lambda: _answer_all(reviewer, odd))
        assert all(isinstance(outcome, Reply | Failure) for outcome in outcomes)

    def test_secrets_are_never_shown(
        self, reviewer: Reviewer, caplog: "pytest.LogCaptureFixture"
    ) -> None:
        caplog.set_level(0)
        outcomes = run(reviewer, lambda: _answer_all(reviewer, sample_requests()))
        texts = [repr(reviewer), str(reviewer), reviewer.name, caplog.text, *map(repr, outcomes)]
        assert [s for s in self.secrets if any(s in text for text in texts)] == []

    def test_it_can_be_closed_twice(self, reviewer: Reviewer) -> None:
        async def close_again() -> None:
            await reviewer.close()

        run(reviewer, close_again)


def run(tested: "Reviewer | Creator", act: Callable[[], Awaitable[T]]) -> T:
    """Run `act` in a new event loop, close the reviewer or creator, and return the result of `act`."""

    async def closing() -> T:
        try:
            return await act()
        finally:
            await tested.close()

    return asyncio.run(closing())


async def _answer_all(
    reviewer: Reviewer, requests: Sequence[ReviewRequest]
) -> list[Reply | Failure]:
    return await asyncio.gather(*(reviewer.answer(request) for request in requests))


def _get_outcome_text(outcome: Reply | Failure) -> str:
    return outcome.text if isinstance(outcome, Reply) else outcome.reason.value


def _draw_edge_jpeg(index: int) -> bytes:
    picture = Image.new("L", (64, 48), 30)
    picture.paste(220, (0, 0, 8 + 5 * index, 48))
    out = io.BytesIO()
    picture.convert("RGB").save(out, format="JPEG")
    return out.getvalue()
