"""Exact properties of video files, and the frames of a sampling plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unreel.api.shared_settings import TrustSettings
from unreel.core.clip import ClipFacts
from unreel.core.command_options import FOLDER, Option
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import make_safe_file_name
from unreel.core.settings import read_environment_settings
from unreel.protocols.presentation import MIN_PIXELS

if TYPE_CHECKING:
    from unreel.media.reader import SampledFrames


@dataclass(frozen=True, kw_only=True)
class ProbeSettings(TrustSettings):
    """Settings of `probe_files`."""

    files: Annotated[tuple[Path, ...], Option(is_argument=True, is_required=True, kind="clip")]


def probe_files(settings: ProbeSettings) -> Mapping[Path, ClipFacts | Failure]:
    """Return the exact properties of video files, or the failure of each that cannot be read."""
    from unreel.media.access import open_media_reader

    environment = read_environment_settings()
    with open_media_reader(environment, trusted=settings.trusted, at_once=("probe",)) as reader:
        return {path: reader.probe(path) for path in settings.files}


@dataclass(frozen=True, kw_only=True)
class FrameSettings(TrustSettings):
    """Settings of `sample_frames`."""

    file: Annotated[Path, Option(is_argument=True, kind="clip")]
    sampling: Annotated[str, Option(metavar="PLAN")] = "uniform-8"
    """Name of the sampling plan, which selects the frames. The plans are listed at the end of this help."""
    out: Annotated[Path | None, FOLDER] = None
    """Output folder for the JPEG pictures. Without it, the selected frames are only listed."""
    longest_side: Annotated[int | None, Option(metavar="PIXELS", low=16)] = None
    """Maximum length of the longer side of a frame in pixels; larger frames are scaled down."""
    max_pixels: Annotated[int | None, Option(metavar="N", low=MIN_PIXELS)] = None
    """Maximum number of pixels per frame; larger frames are scaled down."""
    quality: Annotated[int, Option(low=1, high=100)] = 90
    """JPEG quality of the pictures."""


def sample_frames(settings: FrameSettings) -> "tuple[SampledFrames, Sequence[Path]] | Failure":
    """Return the frames that a sampling plan selects, and their JPEG files if `out` is given."""
    from unreel.media.access import open_media_reader

    environment = read_environment_settings()
    with open_media_reader(environment, trusted=settings.trusted, at_once=("frames",)) as reader:
        sampled = reader.frames(
            settings.file,
            sampling=settings.sampling,
            quality=settings.quality,
            longest_side=settings.longest_side,
            most_pixels=settings.max_pixels,
        )
    if isinstance(sampled, Failure) or settings.out is None:
        return sampled if isinstance(sampled, Failure) else (sampled, ())
    output, stem = OutputDirectory(settings.out), make_safe_file_name(settings.file.stem)
    files = [output.write(f"{stem}-{frame.index:06d}.jpg", frame.data) for frame in sampled.frames]
    return sampled, files
