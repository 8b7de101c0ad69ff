"""Reward functions for other trainers (verl, ms-swift); the truth is the JSON of an `AnswerKey`."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from unreel.training.rewards.reward import AnswerKey, parse_answer_key

_CACHE_SIZE = 4096
"""Maximum number of cached answer keys; each is used for several consecutive answers."""


@lru_cache(maxsize=_CACHE_SIZE)
def _parse_answer_key_cached(written: str) -> AnswerKey:
    return parse_answer_key(written)


def compute_score(
    data_source: str,  # noqa: ARG001  verl names it; the key tells the instrument
    solution_str: str,
    ground_truth: str,
    extra_info: Any = None,  # noqa: ARG001
    **_ignored: Any,
) -> float:
    """Return the reward of one answer; verl's reward managers call this function.

    Raise `UnreelError` if `ground_truth` is not the JSON of an `AnswerKey`.
    """
    return _parse_answer_key_cached(ground_truth).mark(solution_str).total


class SwiftReward:
    """Reward class for ms-swift: `orms["unreel"] = SwiftReward` in a file for `--external_plugins`."""

    def __init__(self, args: Any = None, **_ignored: Any) -> None:
        self.args = args

    def __call__(
        self, completions: Sequence[str], solution: Sequence[str], **_ignored: Any
    ) -> list[float]:
        """Compute the reward of each completion; the column `solution` contains the answer keys."""
        return [
            _parse_answer_key_cached(written).mark(text).total
            for text, written in zip(completions, solution, strict=True)
        ]
