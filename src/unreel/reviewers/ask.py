"""One question to a reviewer: its clips as input, the request, and the parsed reply.

This module needs no benchmark, table or recipe. `evaluate` uses it for its rows, `review` for
its clips, and a service for its requests.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final

from unreel.core.answer import Reply
from unreel.core.clip import Clip, ClipId
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Condition, Question
from unreel.core.verdict import Verdict
from unreel.media.reader import MediaReader
from unreel.media.sound import NoSound
from unreel.protocols.answer_text import parse_answer_text
from unreel.protocols.presentation import sample_shown_frames
from unreel.protocols.protocol import Mode, get_protocol
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest, ShownFrame, WholeClip
from unreel.reviewers.factory import ReviewerWithPrices

_MIME: Final = {"mp4": "video/mp4", "matroska": "video/x-matroska", "webm": "video/webm"}


def build_clip_input(
    clip: Clip,
    file: Path,
    *,
    reader: MediaReader,
    condition: Condition,
    wants: frozenset[InputKind],
) -> ClipInput | Failure:
    """Build the input of a reviewer from `clip`: the input kinds in `wants` that `condition` allows.

    Return a failure if the file cannot be decoded, or if `condition` cannot be satisfied. The
    clip's bytes are read from `file`.
    """
    if reason := _explain_unsupported_condition(condition, wants):
        return Failure(FailureReason.REQUEST_REJECTED, f"not asked: {reason}")
    frames: tuple[ShownFrame, ...] = ()
    if InputKind.FRAMES in wants:
        sampled = sample_shown_frames(
            reader, file, sampling=condition.sampling, max_pixels=condition.max_pixels
        )
        if isinstance(sampled, Failure):
            return sampled
        frames = tuple(
            ShownFrame(index=f.index, at_s=f.at_s, width=f.width, height=f.height, jpeg=f.data)
            for f in sampled.frames
        )
    sound_wav = None
    if condition.audio == "on":
        sound = reader.sound(file)
        if isinstance(sound, Failure):
            return sound
        if isinstance(sound, NoSound):
            return Failure(FailureReason.REQUEST_REJECTED, "not asked: the clip has no sound")
        sound_wav = sound.as_wav()
    file_bytes = None
    if InputKind.CLIP in wants:
        container = clip.facts.container
        file_bytes = WholeClip(file.read_bytes(), _MIME.get(container, "application/octet-stream"))
    return ClipInput(
        clip=clip,
        frames=frames,
        sound_wav=sound_wav,
        whole=file_bytes,
    )


def _explain_unsupported_condition(condition: Condition, wants: frozenset[InputKind]) -> str:
    """Return why a reviewer that takes the input kinds `wants` cannot answer under `condition`; "" if it can."""
    if condition.audio == "on" and InputKind.SOUND not in wants:
        return "the reviewer takes no sound"
    if condition.max_pixels is not None and InputKind.CLIP in wants:
        return "the frames of a whole file cannot be scaled down"
    return ""


OpenFile = Callable[[str], AbstractContextManager[Path]]
"""Function that provides a clip as a local file, within a context."""
FindChange = Callable[[ClipId, Path], Failure | None]
"""Function that returns a failure if a file, after it was loaded, no longer has the bytes of the clip's id."""


@contextmanager
def provide_local_path(location: str) -> Iterator[Path]:
    """Yield the path of a clip whose location is already a local path."""
    yield Path(location)


def _report_no_clip_change(_clip: ClipId, _file: Path) -> Failure | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestionResult:
    """Result of one question to one reviewer: the clip inputs that were sent, and the reply."""

    reviewer: str
    question: Question
    prompt: str
    exhibits: tuple[ClipInput, ...]
    """Inputs that were sent; empty if the clips could not be loaded as the condition requires."""
    box_space: str | None
    """Coordinate space of the boxes in the reply; `None` if no input was sent."""
    outcome: Reply | Failure
    cost_usd: Decimal | None
    """Cost of the request; `None`, not 0, if its tokens or their price are unknown."""

    @property
    def key(self) -> str:
        """Return the key under which a run stores this question to this reviewer."""
        return self.question.key(self.reviewer)

    def read(self, mode: Mode) -> Verdict | None:
        """Parse the reply into a verdict; return `None` if there is no reply or no clip input."""
        if isinstance(self.outcome, Failure) or not self.exhibits:
            return None
        return parse_answer_text(
            self.outcome.text,
            get_protocol(self.question.instrument.protocol),
            prompt=self.question.condition.prompt,
            mode=mode,
            box_space=self.box_space,
            size=self.exhibits[0].clip.size,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipInputLoader:
    """Loader of a reviewer's inputs from clips under a condition, for questions and for training."""

    reader: MediaReader
    open_file: OpenFile = provide_local_path
    """Function that converts a clip's location to a file."""
    find_change: FindChange = _report_no_clip_change
    """Function that checks a file again after it was loaded."""

    def show(
        self, clips: Sequence[Clip], condition: Condition, wants: frozenset[InputKind]
    ) -> tuple[ClipInput, ...] | Failure:
        """Load the input kinds `wants` of each clip; return the failure of the first unusable clip."""
        exhibits: list[ClipInput] = []
        for clip in clips:
            with self.open_file(clip.location) as file:
                loaded = build_clip_input(
                    clip, file, reader=self.reader, condition=condition, wants=wants
                )
                # A reviewer that wants no inputs uses stored metadata, not the file.
                changed = self.find_change(clip.id, file) if wants else None
            if changed is not None:
                return changed
            if isinstance(loaded, Failure):
                return loaded
            exhibits.append(loaded)
        return tuple(exhibits)


def build_review_request(
    question: Question, inputs: tuple[ClipInput, ...], *, key: str, prompt: str = "", name: str = ""
) -> ReviewRequest:
    """Build the request of `question` about `inputs`; `prompt`, `name` as in `ReviewDispatcher.ask`."""
    text = (
        prompt or get_protocol(question.instrument.protocol).prompt(question.condition.prompt).text
    )
    return ReviewRequest(
        key=key,
        instrument=question.instrument,
        prompt=text,
        exhibits=inputs,
        condition=question.condition,
        name=name,
    )


class ReviewDispatcher:
    """Dispatcher of concurrent questions, which share one media reader and one pool of decoders.

    Args:
        reader: Opens clips; it must outlive the dispatcher.
        open_file: Converts a clip's location to a file.
        find_change: Checks whether a file has changed after its clip was loaded.
    """

    def __init__(
        self,
        reader: MediaReader,
        *,
        open_file: OpenFile = provide_local_path,
        find_change: FindChange = _report_no_clip_change,
    ) -> None:
        self._showing = ClipInputLoader(reader=reader, open_file=open_file, find_change=find_change)
        # Unlike requests, decoding is CPU-bound: one thread per processor.
        self._decoders = ThreadPoolExecutor(os.cpu_count(), "decoder")

    async def ask(
        self,
        question: Question,
        clips: Sequence[Clip],
        priced: ReviewerWithPrices,
        *,
        prompt: str = "",
        name: str = "",
    ) -> AskedQuestionResult:
        """Load `clips`, send `question` about them to the reviewer `priced`, and return the result.

        `prompt` is the text for a question without a protocol. `name` is the name of the clips in a
        benchmark.
        """
        inputs = await self.show(clips, question.condition, priced.reviewer.wants)
        return await self.put(question, inputs, priced, prompt=prompt, name=name)

    async def show(
        self, clips: Sequence[Clip], condition: Condition, wants: frozenset[InputKind]
    ) -> tuple[ClipInput, ...] | Failure:
        """Load the input kinds `wants` of each clip; return the failure of the first unusable clip."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._decoders, self._showing.show, clips, condition, wants
        )

    async def put(
        self,
        question: Question,
        inputs: tuple[ClipInput, ...] | Failure,
        priced: ReviewerWithPrices,
        *,
        prompt: str = "",
        name: str = "",
    ) -> AskedQuestionResult:
        """Send `question` with `inputs` and return the result; a failure as `inputs` is the outcome, unsent."""
        reviewer = priced.reviewer
        exhibits = () if isinstance(inputs, Failure) else inputs
        sheet = build_review_request(
            question, exhibits, key=question.key(reviewer.name), prompt=prompt, name=name
        )
        outcome: Reply | Failure
        if isinstance(inputs, Failure):
            outcome, space = inputs, None
        else:
            space = reviewer.box_space(inputs[0])
            outcome = await reviewer.answer(sheet)
        return AskedQuestionResult(
            reviewer=reviewer.name,
            question=question,
            prompt=sheet.prompt,
            exhibits=exhibits,
            box_space=space,
            outcome=outcome,
            cost_usd=_compute_request_cost_usd(outcome, priced),
        )

    def close(self) -> None:
        """Stop the decoders. The caller must close the media reader, which it opened."""
        self._decoders.shutdown(wait=True, cancel_futures=True)


def _compute_request_cost_usd(
    outcome: Reply | Failure, priced: ReviewerWithPrices
) -> Decimal | None:
    if outcome.usage is None or priced.price is None:
        return None
    return priced.price.cost_usd(outcome.usage)
