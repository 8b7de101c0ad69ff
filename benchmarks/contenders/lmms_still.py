"""The functions that lmms-eval calls for the task `still`: it decodes as the bare loop does."""

import io
from pathlib import Path
from typing import Any

from PIL import Image
from plain import PROMPT, jpegs


def visuals(doc: dict[str, Any]) -> list[Any]:
    """Eight frames as pictures, which is what its models take."""
    return [Image.open(io.BytesIO(data)).convert("RGB") for data in jpegs(Path(doc["clip"]))]


def text(_doc: dict[str, Any], **_options: Any) -> str:
    """The prompt."""
    return PROMPT


def messages(doc: dict[str, Any], **_options: Any) -> list[dict[str, Any]]:
    """One turn: the frames, then the prompt."""
    shown = [{"type": "image", "url": picture} for picture in visuals(doc)]
    return [{"role": "user", "content": [*shown, {"type": "text", "text": PROMPT}]}]


def results(_doc: dict[str, Any], said: list[str]) -> dict[str, float]:
    """One for the answer that the server always gives."""
    return {"answered": float("<answer>0" in said[0])}
