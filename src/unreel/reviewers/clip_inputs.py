"""Inputs of a reviewer, loaded from clips under a condition, and the request with them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from unreel.catalogue.owner_prompts import read_owner_prompt
from unreel.core.clip import Clip, ClipId
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Condition, Question
from unreel.media.reader import MediaReader
from unreel.protocols.presentation import quote_text_for_prompt, sample_shown_frames
from unreel.protocols.protocol import get_protocol
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest, ShownFrame, WholeClip

_MIME = {"mp4": "video/mp4", "matroska": "video/x-matroska", "webm": "video/webm"}


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
    if condition.audio == "on" and InputKind.SOUND not in wants:
        detail = "not asked: the reviewer takes no sound"
        return Failure(FailureReason.REQUEST_REJECTED, detail)
    if condition.max_pixels is not None and InputKind.CLIP in wants:
        detail = "not asked: the frames of a whole file cannot be scaled down"
        return Failure(FailureReason.REQUEST_REJECTED, detail)
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
        if sound is None:
            return Failure(FailureReason.REQUEST_REJECTED, "not asked: the clip has no sound")
        sound_wav = sound.as_wav()
    file_bytes = None
    if InputKind.CLIP in wants:
        container = clip.facts.container
        file_bytes = WholeClip(file.read_bytes(), _MIME.get(container, "application/octet-stream"))
    return ClipInput(clip=clip, frames=frames, sound_wav=sound_wav, whole=file_bytes)


OpenFile = Callable[[str], AbstractContextManager[Path]]
FindChange = Callable[[ClipId, Path], Failure | None]
"""Function that returns a failure if a file, after it was loaded, no longer has the bytes of the clip's id."""


@contextmanager
def provide_local_path(location: str) -> Iterator[Path]:
    """Yield the path of a clip whose location is already a local path."""
    yield Path(location)


def report_no_clip_change(_clip: ClipId, _file: Path) -> Failure | None:
    """Return no failure: the file of a clip is not checked again."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipInputLoader:
    """Loader of a reviewer's inputs from clips under a condition, for questions and for training."""

    reader: MediaReader
    open_file: OpenFile = provide_local_path
    find_change: FindChange = report_no_clip_change

    def show(
        self, clips: Sequence[Clip], condition: Condition, wants: frozenset[InputKind]
    ) -> tuple[ClipInput, ...] | Failure:
        """Load the input kinds `wants` of each clip; return the failure of the first unusable clip."""
        inputs: list[ClipInput] = []
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
            inputs.append(loaded)
        return tuple(inputs)


def build_review_request(
    question: Question,
    inputs: tuple[ClipInput, ...],
    *,
    key: str,
    prompt: str = "",
    name: str = "",
    caption: str = "",
) -> ReviewRequest:
    """Build the request of `question` about `inputs`.

    `prompt` is the text for a question without a protocol. `name` is the name of the clips in a
    benchmark, and `caption` the prompt of their generator, which some prompts of checkpoints need.
    """
    variant, system, frame_time = question.condition.prompt, "", ""
    if not prompt and (owner := read_owner_prompt(variant)) is not None:
        prompt, system, frame_time = owner.text, owner.system, owner.frame_time
        if owner.caption_mark:
            prompt = prompt.replace(owner.caption_mark, quote_text_for_prompt(caption))
    return ReviewRequest(
        key=key,
        instrument=question.instrument,
        prompt=prompt or get_protocol(question.instrument.protocol).prompt(variant).text,
        inputs=inputs,
        condition=question.condition,
        name=name,
        system=system,
        frame_time=frame_time,
    )
