"""Media of items, read into memory from allowed places only."""

import asyncio
import io

from unreel.core.errors import InvalidValueError, MediaError, UnsafeTargetError
from unreel.core.failure import Failure, FailureReason
from unreel.core.output_files import OutputDirectory
from unreel.engine.downloads import DownloadPolicy, download_file
from unreel.rewards.service.items import FileBytes, FrameArray, LocalPath, MediaSource, RemoteUrl
from unreel.rewards.service.settings import ServiceSettings


async def read_media(source: MediaSource, settings: ServiceSettings) -> FileBytes | FrameArray:
    """Return the media in memory.

    Raises:
        MediaError: It is not allowed, absent or too large.
    """
    match source:
        case LocalPath(path):
            return FileBytes(await asyncio.to_thread(_read_path, path, settings))
        case RemoteUrl(url):
            return FileBytes(await asyncio.to_thread(_fetch_clip_bytes, url, settings))
        case _:
            return source


def _read_path(path: str, settings: ServiceSettings) -> bytes:
    most = settings.max_clip_bytes
    for root in settings.roots:
        try:
            name = (root / path).relative_to(root).as_posix()
            with OutputDirectory(root).read(name) as file:
                data = file.read(most + 1)
        except (InvalidValueError, UnsafeTargetError, OSError, ValueError):
            continue  # outside of this root, through a link, or absent
        if len(data) > most:
            raise MediaError(Failure(FailureReason.TOO_LARGE, f"more than {most} bytes"))
        return data
    raise MediaError(Failure(FailureReason.NOT_A_FILE, "no file below an allowed root"))


def _fetch_clip_bytes(url: str, settings: ServiceSettings) -> bytes:
    reach = DownloadPolicy(
        named=settings.hosts, max_bytes=settings.max_clip_bytes, seconds=settings.upload_s
    )
    file = io.BytesIO()
    download_file(url, file, reach=reach, storage={})
    return file.getvalue()
