"""Copies of clips for the browser: constant frame rate, first frame at time 0, index at the start.

Label Studio counts frames by a configured rate and reads nothing from the file. A clip of
variable rate, or one that begins late, would show another frame than the annotated one.
Therefore the media reader re-encodes every clip once. The name of a copy is derived with a
secret key: annotators see the name, and it must not reveal the public original.
"""

import hashlib
import hmac
import json
import os
import queue
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from unreel.annotation.campaign import AnnotatorClipCopy
from unreel.core.clip import ClipId, VideoFacts
from unreel.core.content_ids import compute_clip_id, digest
from unreel.core.errors import MediaError
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import (
    ClipAccessSettings,
    find_clip_change,
    provide_local_clip_file,
)
from unreel.media.access import open_media_reader
from unreel.media.encode import move_mp4_index_first
from unreel.media.render import CroppedFrameRange, NormalisedClipFormat

if TYPE_CHECKING:
    from unreel.media.reader import MediaReader

LONGEST_SIDE = 1920
"""Maximum side of a copy in pixels; larger clips are scaled down, because a browser must decode two at once."""
SIGNED_FOR = timedelta(days=7)
"""Lifetime of signed URLs: the maximum that S3 allows."""
_MIN_SIDE = 16
_FASTEST = Fraction(240)
_FINEST = 1001
"""Maximum denominator of frame rates; 30000/1001 stays exact."""


@dataclass(frozen=True, slots=True)
class ClipCopyRequest:
    """Clip, or segment of a clip, to copy for the browser, with name and location."""

    name: str
    location: str
    start_s: Fraction = Fraction(0)
    length_s: Fraction | None = None
    """Duration of the segment in seconds; `None` for the complete clip."""


def make_browser_copies(
    requests: Iterable[ClipCopyRequest],
    *,
    location: StorageLocation,
    access: ClipAccessSettings,
    key: bytes,
    workers: int | None = None,
) -> Iterator[tuple[str, AnnotatorClipCopy | Failure]]:
    """Make the browser copies that are missing in `location`; yield name and result of each clip in order.

    Clips are copied concurrently. A clip that cannot be read gives a failure; the others continue.
    `key` is the secret from which the names of copies are derived. There are at most 8 `workers` by
    default.
    """
    n_workers = workers or min(8, os.cpu_count() or 1)
    with ExitStack() as stack:
        readers: queue.SimpleQueue[MediaReader] = queue.SimpleQueue()
        for _ in range(n_workers):
            reader = open_media_reader(access.settings, trusted=access.trusted)
            readers.put(stack.enter_context(reader))

        def work(request: ClipCopyRequest) -> tuple[str, AnnotatorClipCopy | Failure]:
            reader = readers.get()
            result: AnnotatorClipCopy | Failure
            try:
                with provide_local_clip_file(request.location, access) as file:
                    result = _encode_browser_copy(file, request, reader, location, key=key)
            except MediaError as error:
                result = error.failure
            finally:
                readers.put(reader)
            return request.name, result

        with ThreadPoolExecutor(n_workers) as pool:
            yield from pool.map(work, requests)


def choose_browser_copy_format(video: VideoFacts) -> NormalisedClipFormat:
    """Return the format of a browser copy: size and frame rate of the clip, within browser limits."""
    longest = max(video.width, video.height)
    scale = min(Fraction(1), Fraction(LONGEST_SIDE, longest))
    width, height = (
        max(_MIN_SIDE, round(side * scale / 2) * 2) for side in (video.width, video.height)
    )
    rate = min(_FASTEST, video.average_rate.limit_denominator(_FINEST))
    return NormalisedClipFormat(width=width, height=height, rate=rate or Fraction(1, _FINEST))


def build_clip_copy_urls(copies_location: StorageLocation, locations: Iterable[str]) -> list[str]:
    """Return the URL of each browser copy: served by Label Studio, or signed by the object store."""
    if copies_location.is_local:
        return [f"/data/local-files/?d=clips/{location}" for location in locations]
    import obstore

    store = copies_location.objects()
    return [str(obstore.sign(store, "GET", location, SIGNED_FOR)) for location in locations]


def _encode_browser_copy(
    file: Path,
    request: ClipCopyRequest,
    reader: "MediaReader",
    location: StorageLocation,
    *,
    key: bytes,
) -> AnnotatorClipCopy | Failure:
    facts = reader.probe(file)
    if isinstance(facts, Failure):
        return facts
    clip, target = compute_clip_id(file), choose_browser_copy_format(facts.video)
    parts = [str(target.width), str(target.height), str(target.rate), str(target.crf)]
    if request.length_s is not None:
        parts += [str(request.start_s), str(request.length_s)]
    code = digest("copy", str(clip), *parts).encode()
    name = f"{hmac.digest(key, code, hashlib.sha256).hex()[:40]}.mp4"
    if (known := _find_stored_copy(location, clip, name)) is not None:
        return known
    if request.length_s is None:
        video = reader.normalise(file, target)
    else:
        first = round(request.start_s * facts.video.average_rate)
        video = reader.render(
            file, CroppedFrameRange(first_frame=first, length_s=request.length_s), form=target
        )
    if isinstance(video, Failure):
        return video
    if (changed := find_clip_change(clip, file)) is not None:
        return changed
    return _store_browser_copy(move_mp4_index_first(video), reader, location, clip=clip, name=name)


def _store_browser_copy(
    data: bytes, reader: "MediaReader", location: StorageLocation, *, clip: ClipId, name: str
) -> AnnotatorClipCopy | Failure:
    with tempfile.TemporaryDirectory(prefix="unreel-copy-") as project:
        file = OutputDirectory(Path(project)).write("copy.mp4", data)
        facts = reader.probe(file)
    if isinstance(facts, Failure):
        return facts
    video = facts.video
    copy = AnnotatorClipCopy(
        clip=clip,
        location=name,
        rate=video.average_rate,
        n_frames=video.n_frames,
        width=video.width,
        height=video.height,
    )
    location.put(name, data)
    # Written after the copy: if the sidecar file exists, the copy is complete.
    info = {"rate": str(copy.rate), "n_frames": copy.n_frames}
    location.put(f"{name}.json", json.dumps(info | {"size": [copy.width, copy.height]}).encode())
    return copy


def _find_stored_copy(
    location: StorageLocation, clip: ClipId, name: str
) -> AnnotatorClipCopy | None:
    if location.size(f"{name}.json") is None or location.size(name) is None:
        return None
    try:
        document = json.loads(location.read(f"{name}.json", most=4096))
        width, height = document["size"]
        return AnnotatorClipCopy(
            clip=clip,
            location=name,
            rate=Fraction(document["rate"]),
            n_frames=int(document["n_frames"]),
            width=int(width),
            height=int(height),
        )
    except (ValueError, LookupError, TypeError):
        return None
