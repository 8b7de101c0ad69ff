"""Briefs for creators, from the scenes of real clips."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from unreel.arena.season.scenes import SeasonBenchmark, get_scene, name_files
from unreel.core.clip import Clip
from unreel.core.failure import Failure, FailureReason
from unreel.core.identity import digest
from unreel.core.span import to_us
from unreel.creators.config import CreatorFactory
from unreel.creators.contract import ClipBrief, CreatorInput, Given
from unreel.curation.freeze.first_frames import FIRST_FRAME_PLAN
from unreel.engine.stage import Row
from unreel.engine.survey import ClipSurvey
from unreel.media.picture import encode_png
from unreel.media.reader import MediaReader

WORDLESS: Final = "The scene goes on as it began."
"""Prompt for a setting with an image and no text."""
_SEEDS: Final = 2**31


def iter_generation_rows(
    opener: CreatorFactory, scenery: SeasonBenchmark, *, seed: int
) -> Iterator[Row]:
    """Yield a row for each clip to request from the creator."""
    stems = name_files(scenery.scenes)
    for scene, entry in scenery.scenes.items():
        drawn = int(digest("brief", str(seed), str(opener.seed), scene)[:12], 16) % _SEEDS
        for setting in opener.settings:
            asked = (opener.name, scene, setting.value, str(drawn), scenery.digest)
            yield {
                "key": digest("made", *asked),
                "creator": opener.title,
                "name": opener.name,
                "side": opener.side.value,
                "setting": setting.value,
                "scene": scene,
                "seed": drawn,
                "_text": entry.prompt,
                "_stem": stems[scene],
            }


def add_briefs(rows: Iterable[Row], scenery: SeasonBenchmark, survey: ClipSurvey) -> Iterator[Row]:
    """Return the rows with the properties of their scene's real clip, for the stage that makes them."""
    found = survey.find(scenery.benchmark, scenery.scenes.values())
    clips = {get_scene(entry): _build_clip_columns(clip) for entry, clip in found}
    return (row | clips[row["scene"]] for row in rows)


def _build_clip_columns(clip: Clip | Failure) -> dict[str, Any]:
    if isinstance(clip, Failure):
        return {"_problem": str(clip)}
    width, height = clip.size
    return {
        "_location": clip.location,
        "_width": width,
        "_height": height,
        "_duration_us": to_us(clip.facts.video.duration_s),
    }


def build_brief(
    row: Row, file: Path | None, reader: MediaReader, given: Given
) -> ClipBrief | Failure:
    """Build the brief of a row; return a failure if the scene lacks an input that the setting needs.

    The failure names the missing input.
    """
    if file is None:
        return Failure(FailureReason.NO_BRIEF, f"its real clip cannot be read: {row['_problem']}")
    setting = CreatorInput(row["setting"])
    text, picture = WORDLESS if setting is CreatorInput.IMAGE else row["_text"], None
    if given == "brief":
        if not text.strip():
            return Failure(FailureReason.NO_BRIEF, "the benchmark has no prompt for this scene")
        picture = None if setting is CreatorInput.TEXT else _read_first_frame(file, reader)
    if isinstance(picture, Failure):
        return picture
    return ClipBrief(
        id=row["scene"],
        setting=setting,
        text=text,
        first_frame=picture,
        source=file if given == "source" else None,
        width=row["_width"],
        height=row["_height"],
        duration_us=row["_duration_us"],
        seed=row["seed"],
        file_stem=row.get("_stem", ""),
    )


def name_brief(scene: str, file_stem: str, setting: CreatorInput) -> ClipBrief:
    """Return a brief that only names its clip, for a creator whose clips lie ready."""
    return ClipBrief(
        id=scene, setting=setting, width=1, height=1, duration_us=1, seed=0, file_stem=file_stem
    )


def _read_first_frame(file: Path, reader: MediaReader) -> bytes | Failure:
    frames = reader.frames(file, sampling=FIRST_FRAME_PLAN, encoding="rgb24")
    if isinstance(frames, Failure):
        return Failure(FailureReason.NO_BRIEF, f"no first frame of its real clip: {frames}")
    return encode_png(frames.frames[0].rgb())
