"""Input of a reviewer for a clip under a condition."""

from pathlib import Path
from typing import Final

from unreel.core.clip import Clip
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Condition
from unreel.media.reader import MediaReader
from unreel.media.sound import NoSound
from unreel.protocols.presentation import sample_frames
from unreel.reviewers.contract import ClipInput, InputKind, ShownFrame, WholeClip

_MIME: Final = {"mp4": "video/mp4", "matroska": "video/x-matroska", "webm": "video/webm"}


def show(
    clip: Clip,
    file: Path,
    *,
    reader: MediaReader,
    condition: Condition,
    wants: frozenset[InputKind],
) -> ClipInput | Failure:
    """Return the inputs of `clip`, whose bytes are at `file`, as requested and allowed by the condition."""
    if why := _explain_unsupported_condition(condition, wants):
        return Failure(FailureReason.REQUEST_REJECTED, f"not asked: {why}")
    frames: tuple[ShownFrame, ...] = ()
    if InputKind.FRAMES in wants:
        sampled = sample_frames(
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
    whole = None
    if InputKind.CLIP in wants:
        container = clip.facts.container
        whole = WholeClip(file.read_bytes(), _MIME.get(container, "application/octet-stream"))
    return ClipInput(
        clip=clip,
        frames=frames,
        sound_wav=sound_wav,
        whole=whole,
    )


def _explain_unsupported_condition(condition: Condition, wants: frozenset[InputKind]) -> str:
    """Return the reason why a reviewer with these inputs cannot be asked under `condition`; "" if it can."""
    if condition.audio == "on" and InputKind.SOUND not in wants:
        return "the reviewer hears no sound"
    if condition.max_pixels is not None and InputKind.CLIP in wants:
        return "the frames of a whole file cannot be scaled down"
    return ""
