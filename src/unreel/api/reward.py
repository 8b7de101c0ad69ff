"""`reward`: the reward of one clip, from Python."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from unreel.api.keyword_types import Models, ReviewerKeys, require_reviewer_object
from unreel.protocols.protocol import REVIEWED, Mode
from unreel.rewards.calibration import RewardCalibration
from unreel.rewards.model import RewardModel
from unreel.rewards.result import Reward


def reward(
    clip: str | Path,
    *,
    models: Models,
    prompt: str | None = None,  # noqa: ARG001  for formulas to come
    protocols: str | Sequence[str] = REVIEWED,
    condition: Mapping[str, str] | None = None,
    trusted: bool = False,
    parser: Mode = "lenient",
    calibration: RewardCalibration | Sequence[RewardCalibration] | None = None,
    **reviewer: Unpack[ReviewerKeys],
) -> Reward:
    """Return the reward of the video file `clip`: a value from 0 to 1 (1 = looks real), or a failure.

    For many clips use `unreel.rewards.model.RewardModel`, which keeps models and decoders open.

    Args:
        clip: path of a video file.
        models: reviewers: `provider/name`, a baseline such as `coin`, your own objects, or several.
        prompt: text that the clip was generated from; `reward@1` does not use it.
        protocols: `trace`, `realism`, `reality`; each reviewer answers each.
        condition: input settings of the questions, for example `{"sampling": "uniform-16"}`.
        trusted: open the file in this process; by default a confined child does.
        parser: `lenient` also reads usual variations of the requested form, `strict` that form alone.
        calibration: results of `unreel reward calibrate`, read by `unreel.rewards.calibration.read_calibration`.
        reviewer: further keys of `[reviewer]`, for example `deadline_s=30`.

    Raises:
        InvalidSettingError: A setting cannot be used.
        UnknownNameError: No protocol or model has that name.
    """
    for model in (
        models if isinstance(models, Sequence) and not isinstance(models, str) else [models]
    ):
        require_reviewer_object(model)
    names = [protocols] if isinstance(protocols, str) else protocols
    with RewardModel(
        models,
        protocols=names,
        condition=condition,
        parser=parser,
        trusted=trusted,
        calibration=calibration,
        **reviewer,
    ) as scorer:
        return scorer.score(clip)
