"""Classification of clips as easy or hard by four diversities, as in Video Reality Test.

Published: 49 easy clips (3 to 5 seconds, one action, plain background) and 100 hard ones (up to 20
seconds and more, several steps), with diversity of objects, actions and backgrounds. The limits and
the measurement of each diversity are not published. Our choice:

| diversity | measured as | plain up to |
|---|---|---|
| length | the clip's seconds | 5 |
| actions | consecutive steps in its description | 1 |
| objects | different things in its description | 6 |
| background | detail of the still part, 0 to 1 | 0.25 |

A clip is hard if it is longer than 5 seconds, or if two of the other three are not plain.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

import numpy as np
from scipy import ndimage

from unreel.core.errors import InvalidValueError
from unreel.media.decode import Rgb
from unreel.media.picture import fit_longest

EASY_LENGTH_S: Final = 5
EASY_ACTIONS: Final = 1
EASY_OBJECTS: Final = 6
EASY_BACKGROUND: Final = 0.25

_SMALL: Final = 96
_BLOCK: Final = 5
_FLAT_LEVELS: Final = 6.0
_NOT_PLAIN: Final = 2
"""So many diversities besides length make a clip hard."""
_STEP: Final = re.compile(
    r"\b(then|next|afterwards?|after that|subsequently|finally|later|followed by|"
    r"before (?:turning|moving|picking|placing|putting|cutting|taking))\b",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(
    r"\b(?:an?|the|his|her|their|its|two|three|several|some)\s+((?:[a-z'-]+\s+){0,2}?[a-z'-]+)"
    r"(?=\s+(?:is|are|was|were|and|or|in|on|at|of|with|by|to|into|onto|from|over|under|through|as|"
    r"while|that|which|who|[a-z]+s|[a-z]+ing)\b|[.,;:!?]|$)",
    re.IGNORECASE,
)


class DifficultyLevel(StrEnum):
    """The two halves of Video Reality Test."""

    EASY = "easy"
    HARD = "hard"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipDiversity:
    """The four measures of one clip."""

    length_s: Fraction
    n_actions: int
    n_objects: int
    background: float

    @property
    def difficulty(self) -> DifficultyLevel:
        """Easy or hard, by the rule of this module."""
        not_plain = (
            (self.n_actions > EASY_ACTIONS)
            + (self.n_objects > EASY_OBJECTS)
            + (self.background > EASY_BACKGROUND)
        )
        hard = self.length_s > EASY_LENGTH_S or not_plain >= _NOT_PLAIN
        return DifficultyLevel.HARD if hard else DifficultyLevel.EASY


def measure_diversity(story: str, frames: Sequence[Rgb], *, length_s: Fraction) -> ClipDiversity:
    """The four diversities of a clip with that story, frames and length."""
    return ClipDiversity(
        length_s=length_s,
        n_actions=count_actions(story),
        n_objects=count_objects(story),
        background=background_detail(frames),
    )


def count_actions(story: str) -> int:
    """Count the consecutive steps in a description: one, and one for each word of sequence."""
    return 1 + len(_STEP.findall(story))


def count_objects(story: str) -> int:
    """Different things that the story names, each by the last word of its name."""
    heads = (found.split()[-1].lower() for found in _NAMED.findall(story))
    return len({head.removesuffix("s") for head in heads})


def background_detail(frames: Sequence[Rgb]) -> float:
    """Share of the picture that is not flat once what moves is taken out: 0 plain, 1 busy."""
    if not frames:
        msg = "a background needs a frame to be seen in. Give the sampled frames"
        raise InvalidValueError(msg)
    small = [fit_longest(frame, _SMALL).astype(np.float32).mean(axis=2) for frame in frames]
    behind = np.median(small, axis=0)
    mean = ndimage.uniform_filter(behind, _BLOCK)
    spread = np.sqrt(np.maximum(ndimage.uniform_filter(behind**2, _BLOCK) - mean**2, 0))
    return float(np.mean(spread > _FLAT_LEVELS))
