"""What anyone would write: eight frames by PyAV and Pillow, sent as data URLs. Knows nothing of unreel."""

import base64
import io
from pathlib import Path
from typing import Any

import av
from PIL import Image

PROMPT = (
    "Given the following video, please determine if the video is real or fake. Respond with "
    '"1" for real and "0" for fake. Provide the answer directly within <answer></answer> tags, '
    "like this: <answer>answer here </answer>."
)
CONNECTIONS = 16
N_FRAMES = 8
LONGEST_SIDE = 1024
QUALITY = 90


def jpegs(path: Path) -> list[bytes]:
    """Eight evenly spaced frames of the clip."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        count = stream.frames or sum(1 for _ in container.decode(stream))
        container.seek(0)
        wanted = {(2 * number + 1) * count // (2 * N_FRAMES) for number in range(N_FRAMES)}
        pictures = [
            frame.to_image()
            for index, frame in enumerate(container.decode(stream))
            if index in wanted
        ]
    return [_jpeg(picture) for picture in pictures]


def _jpeg(picture: Any) -> bytes:
    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS, reducing_gap=None)
    out = io.BytesIO()
    picture.save(out, format="JPEG", quality=QUALITY)
    return out.getvalue()


def content(pictures: list[bytes]) -> list[dict[str, Any]]:
    """The message that carries them."""
    urls = (f"data:image/jpeg;base64,{base64.b64encode(data).decode()}" for data in pictures)
    shown = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [*shown, {"type": "text", "text": PROMPT}]
