"""One leak of each kind planted in real files: probed, decoded, looked over and judged."""

import io
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from curation.planted import moving_scene, plant
from synthesise import ClipRecipe, synthesise
from unreel.core.estimate import Estimate
from unreel.core.failure import Failure
from unreel.core.settings import EnvironmentSettings
from unreel.curation.audit.clip_features import AuditFeatureSet, read_clip_audit_data
from unreel.curation.audit.label_leaks import LabelLeakFinding, audit_label_leaks
from unreel.media.access import open_media_reader
from unreel.media.decode import Rgb
from unreel.media.encode import ClipWriter, VideoTrackSettings

Make = Callable[[int, bool], bytes]
N = 40


def _plain(number: int) -> ClipRecipe:
    sizes = ((160, 96), (96, 160), (128, 128))
    width, height = sizes[number // 2 % 3]
    return ClipRecipe(width=width, height=height, n_frames=8 + number // 2 % 4, seed=number)


def _with_sound_on_reals(number: int, generated: bool) -> bytes:  # noqa: FBT001
    recipe = _plain(number)
    shape = (recipe.width, recipe.height, recipe.n_frames)
    tone = None if generated else 440
    return synthesise(
        ClipRecipe(width=shape[0], height=shape[1], n_frames=shape[2], seed=number, tone_hz=tone)
    )


def _with_tag(number: int, generated: bool) -> bytes:  # noqa: FBT001
    import av

    out = io.BytesIO()
    with (
        av.open(io.BytesIO(synthesise(_plain(number)))) as source,
        av.open(out, "w", format="mp4") as copy,
    ):
        copy.metadata["comment"] = "a prompt" if generated else ""
        stream = copy.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                copy.mux(packet)
    return out.getvalue()


def _with_size(number: int, generated: bool) -> bytes:  # noqa: FBT001
    recipe = _plain(number)
    width, height = (144, 80) if generated else (recipe.width, recipe.height)
    return synthesise(ClipRecipe(width=width, height=height, n_frames=recipe.n_frames, seed=number))


def _with_logo(number: int, generated: bool) -> bytes:  # noqa: FBT001
    frames = moving_scene(number, width=320, height=180)
    if generated:
        frames, _ = plant(frames, number, kind="logo", alpha=1.0)
    return _encoded(frames)


def _encoded(frames: list[Rgb]) -> bytes:
    height, width, _ = frames[0].shape
    track = VideoTrackSettings(
        codec="libx264",
        width=width,
        height=height,
        rate=Fraction(12),
        time_base=Fraction(1, 12),
        options={"crf": "18", "preset": "ultrafast"},
    )
    with ClipWriter("mp4", track) as writer:
        for tick, frame in enumerate(frames):
            writer.add_picture(frame, tick=tick)
        return writer.finish()


@pytest.mark.parametrize(
    ("make", "view", "feature"),
    [
        (_with_sound_on_reals, AuditFeatureSet.METADATA, "sound"),
        (_with_tag, AuditFeatureSet.METADATA, "tag comment"),
        (_with_size, AuditFeatureSet.METADATA, "size"),
        (_with_logo, AuditFeatureSet.WATERMARK, "any overlay"),
    ],
)
def test_a_leak_in_real_files_is_found(
    make: Make, view: AuditFeatureSet, feature: str, tmp_path: Path
) -> None:
    observations = []
    with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
        for number in range(N):
            generated = number % 2 == 0
            path = tmp_path / f"{number:02}.mp4"
            path.write_bytes(make(number, generated))
            creator = f"creator {number // 2 % 3}" if generated else None
            observations.append(
                read_clip_audit_data(path, clip=path.stem, creator=creator, reader=reader)
            )
    found = audit_label_leaks(observations, seed=1)
    assert isinstance(found[view].auc, Estimate)
    assert found[view].auc.value >= 0.95
    assert found.finding is LabelLeakFinding.LEAKS
    assert feature in {leak.feature for leak in found[view].leaks}


def test_a_broken_file_is_observed_as_such(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(b"nothing")
    with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
        one = read_clip_audit_data(path, clip="a", creator=None, reader=reader)
    assert all(isinstance(part, Failure) for part in (one.facts, one.frame, one.watermarks))
