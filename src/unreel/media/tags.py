"""Tags of a file about the programs that wrote it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, cast

from av.video.frame import VideoFrame

from unreel.core.facts import FileTag
from unreel.media.bounds import MAX_NAME, MAX_TAGS, MAX_VALUE
from unreel.media.container import OpenClip

if TYPE_CHECKING:
    from av.sidedata.sidedata import SideData

WRITERS: Final = frozenset(
    {
        "brand",
        "compatible_brands",
        "encoder",
        "encoding_tool",
        "handler_name",
        "language",
        "major_brand",
        "minor_version",
        "software",
        "vendor_id",
        "writing_application",
    }
)
"""Tags that name a program or a format; of any other only its presence is told."""

_UUID_BYTES: Final = 16
_SIGNATURE: Final = re.compile(rb"(x26[45])[ -~]{0,400}")
_BUILD: Final = re.compile(rb"(?:core|build) ([0-9]{1,6})")
_UNPRINTABLE: Final = re.compile(r"[^ -~]+")


def read_tags(clip: OpenClip, first: VideoFrame) -> tuple[FileTag, ...]:
    """The tags of the container, of its first picture and sound streams and of the pictures."""
    tags = set(_signatures(first)) | set(_plain(clip.container.metadata))
    tags |= set(_plain(clip.stream.metadata, "video "))
    for sound in clip.container.streams.audio[:1]:
        tags |= set(_plain(sound.metadata, "audio "))
    return tuple(sorted(tags, key=lambda tag: (tag.name, tag.value))[:MAX_TAGS])


def _plain(metadata: Mapping[str, str], of: str = "") -> Iterator[FileTag]:
    for name, value in metadata.items():
        known = name.lower() in WRITERS
        yield FileTag(
            _short(of + name.lower(), MAX_NAME), _short(value, MAX_VALUE) if known else ""
        )


def _signatures(first: VideoFrame) -> Iterator[FileTag]:
    """x264 and x265 sign the first picture with their build."""
    # The stubs take it for a mapping of names; it goes over the pieces themselves.
    for side in cast("Iterable[SideData]", first.side_data):
        if side.type.name != "SEI_UNREGISTERED":
            continue
        signed = _SIGNATURE.search(bytes(side)[_UUID_BYTES:])
        if signed is not None:
            build = _BUILD.search(signed[0])
            words = [signed[1], build[1]] if build else [signed[1]]
            yield FileTag("signature", b" ".join(words).decode("ascii"))


def _short(text: str, most: int) -> str:
    return _UNPRINTABLE.sub("?", text).strip()[:most] or "?"
