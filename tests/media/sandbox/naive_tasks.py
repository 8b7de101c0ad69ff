"""The real tasks, and one without any guard: it opens whatever FFmpeg would open."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, BinaryIO

import av
import av.subtitles.codeccontext
import av.subtitles.stream

from unreel.media.messages import Task, TaskReplyPayload
from unreel.media.tasks import TASKS as GUARDED

PERMISSIVE = {
    "protocol_whitelist": "file,http,tcp,udp,rtp,crypto,data,concat,subfile",
    "safe": "0",
    "allowed_extensions": "ALL",
    "allowed_segment_extensions": "ALL",
    "extension_picky": "0",
    "enable_drefs": "1",
    "use_absolute_path": "1",
}


class _Named:
    """A file that tells where it lies, as an open file does."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.read, self.seek, self.tell, self.name = file.read, file.seek, file.tell, name


def naive(file: BinaryIO, request: Mapping[str, Any]) -> TaskReplyPayload:
    """Open by name or by content, follow everything, decode a little."""
    source = request["name"] if request["by_name"] else _Named(file, request["name"])
    with av.open(source, options=PERMISSIVE, timeout=3) as container:
        n = len(list(islice(container.demux(), 20)))
        return TaskReplyPayload({"format": container.format.name, "n": n})


TASKS: Mapping[str, Task] = {**GUARDED, "naive": naive}
