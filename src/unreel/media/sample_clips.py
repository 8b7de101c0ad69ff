"""Sample clips that ship with the package; `tests/shipped_clips.py` makes them."""

from pathlib import Path


def read_sample_clip(name: str) -> bytes:
    """Return the file `name` of `media/samples/`."""
    return (Path(__file__).with_name("samples") / name).read_bytes()
