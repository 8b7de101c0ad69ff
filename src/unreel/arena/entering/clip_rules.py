"""Rules for a clip of an entry, alone and compared with the real clip of its scene."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from unreel.arena.entering.finding import EntryFinding, FindingSeverity
from unreel.core.facts import ClipFacts

SHORTEST_S: Final = Fraction(1, 2)
LONGEST_S: Final = Fraction(120)
FEWEST_FRAMES: Final = 8
SLOWEST: Final = Fraction(5)
FASTEST: Final = Fraction(240)
SMALLEST_SIDE: Final = 32
MOST_APART: Final = 2
"""Lengths, rates and sides that differ by more than this factor tell the sides apart."""


def judge_clip(name: str, own: ClipFacts, real: ClipFacts | None) -> Iterator[EntryFinding]:
    """Yield the faults of one clip; without a real clip to compare, only its own."""
    for check, words in _alone(own):
        yield EntryFinding(check=check, weight=FindingSeverity.REFUSES, words=words, clips=(name,))
    for check, words in _beside(own, real) if real is not None else ():
        yield EntryFinding(check=check, weight=FindingSeverity.WARNS, words=words, clips=(name,))


def _alone(own: ClipFacts) -> Iterator[tuple[str, str]]:
    video = own.video
    if not SHORTEST_S <= video.duration_s <= LONGEST_S:
        ends = f"{float(SHORTEST_S):g} and {float(LONGEST_S):g} s"
        yield "length", f"clips last between {ends}. Make them so long"
    if video.n_frames < FEWEST_FRAMES:
        yield "length", f"a clip has {FEWEST_FRAMES} frames or more. Make them longer"
    if not SLOWEST <= video.average_rate <= FASTEST:
        yield "rate", f"a clip has {SLOWEST} to {FASTEST} frames a second. Make it so"
    if min(video.width, video.height) < SMALLEST_SIDE:
        yield "size", f"a side has {SMALLEST_SIDE} pixels or more. Make them larger"


def _beside(own: ClipFacts, real: ClipFacts) -> Iterator[tuple[str, str]]:
    ours, theirs = own.video, real.video
    if _apart(ours.duration_s, theirs.duration_s):
        yield "length", "much longer or shorter than the real clip: length alone may reveal it"
    if _apart(ours.average_rate, theirs.average_rate):
        yield "rate", "much faster or slower in frames than the real clip: the rate may reveal it"
    if _apart(Fraction(ours.width), Fraction(theirs.width)):
        yield "size", "much wider or narrower than the real clip: the size may reveal it"
    if (ours.width > ours.height) != (theirs.width > theirs.height):
        yield (
            "size",
            "landscape where the real clip is portrait, or vice versa: the shape reveals it",
        )
    if ours.variable_rate and not theirs.variable_rate:
        yield "rate", "frames come at no one rate, which the real clip has"
    if bool(own.audio) != bool(real.audio):
        has = "sound where the real clip has none" if own.audio else "no sound, the real clip has"
        yield "sound", f"{has}: a reviewer with sound can separate them"


def _apart(one: Fraction, other: Fraction) -> bool:
    least, most = sorted((one, other))
    return most > MOST_APART * least
