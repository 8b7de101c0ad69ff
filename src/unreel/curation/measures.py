"""Measurements of one pass over a file: its shots with their borders, and the fingerprint of the file."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from pydantic import PlainSerializer

from unreel.media.borders import BorderWidths
from unreel.media.fingerprint import ClipFingerprint
from unreel.media.requests import write_exact

ExactSeconds = Annotated[Fraction, PlainSerializer(write_exact)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredShot:
    """A range of frames without a cut, and the measurements for screens."""

    first_frame: int
    end_frame: int
    start_s: ExactSeconds
    """From the file's first frame."""
    length_s: ExactSeconds
    borders: BorderWidths
    motion: float
    sharpness: float
    noise: float
    lightness: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedFile:
    """Shots of a scanned file; together they cover all of it."""

    shots: tuple[MeasuredShot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintedScan(ScannedFile):
    """The same with the fingerprint of the whole file."""

    fingerprint: ClipFingerprint
