"""Calibration of a reviewer's probability of real on a stored run, cross-fitted by scene."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.estimate import Estimate, Unmeasured
from unreel.core.input_files import parse_json_object, read_limited_bytes
from unreel.core.output_files import OutputDirectory
from unreel.protocols.calibration import is_generated_truth
from unreel.protocols.protocol import Mode
from unreel.rewards.formula import get_real_probability
from unreel.stats.bootstrap import bootstrap_mean

if TYPE_CHECKING:  # needs an optional dependency
    from unreel.evaluation.run_job import EvalRun

Method = Literal["isotonic", "platt"]
FORM = "unreel-reward-calibration@1"
_MAX_BYTES = 4 << 20
_FOLDS = 5
_NEAREST = 1e-3
"""Minimum distance of stated probabilities from 0 and 1, so that the logit is finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationFit:
    """Fitted parameters of a calibration, and its Brier scores on held-out scenes."""

    stated: tuple[float, ...]
    """Stated probabilities in ascending order (isotonic), or slope and intercept of the logit (Platt)."""
    corrected: tuple[float, ...]
    """Corrected probability of each stated one (isotonic); empty for Platt."""
    brier: tuple[float, float, float]
    """Cross-fitted Brier score and its 95 % interval."""
    brier_before: tuple[float, float, float]
    """Brier score of the stated probabilities and its 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardCalibration(CalibrationFit):
    """Calibration of the probability of real that one reviewer states under one protocol."""

    reviewer: str
    protocol: str
    """Protocol with its version, for example `trace@1`."""
    condition: str
    parser: str
    method: Method
    n_clips: int
    n_scenes: int
    share_real: float | None = field(default=None, repr=False)
    """Fraction of the clips that is real, for which the probabilities hold; `None` in older files."""
    form: str = FORM

    @property
    def subject(self) -> str:
        """Return a text with the reviewer, protocol, condition and parser that the calibration is for."""
        return f"{self.reviewer}, {self.protocol}, {self.condition}, parser {self.parser}"

    def apply(self, probability: float, /) -> float:
        """Return the calibrated value of a stated `probability` of real, from 0 to 1."""
        stated = np.array([probability])
        return float(_correct_probabilities(self.method, self.stated, self.corrected, stated)[0])

    def write(self, path: Path) -> None:
        """Write the calibration as JSON to the file `path`."""
        text = json.dumps(asdict(self), indent=2) + "\n"
        OutputDirectory(path.parent, published=True).write(path.name, text.encode())


def read_calibration(path: Path) -> RewardCalibration:
    """Read the calibration in the JSON file at `path`.

    Raises:
        UnreadableSourceError: The file is not a calibration of `unreel reward calibrate`.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        stored = dict(parse_json_object(read_limited_bytes(path, most=_MAX_BYTES)))
        if stored.get("form") != FORM:
            raise ValueError(stored.get("form"))
        return TypeAdapter(RewardCalibration).validate_python(stored)
    except (ValueError, ValidationError) as error:
        raise UnreadableSourceError(
            str(path),
            f"no calibration ({error})",
            "Write it again with `unreel reward calibrate RUN`",
        ) from error


def fit_calibration_on_run(
    run: "EvalRun", *, method: Method = "isotonic", mode: Mode = "lenient", seed: int = 0
) -> RewardCalibration:
    """Calibrate the reviewer's probability of real on the stored answers of `run`; nothing is sent.

    Raises:
        InvalidSettingError: The run has several conditions, or no labels to calibrate against.
    """
    from unreel.evaluation.scoring import iter_scored_rows

    if len(run.scope.conditions) != 1:
        raise InvalidSettingError(
            "run",
            f"it has {len(run.scope.conditions)} conditions",
            "Calibrate a run with one condition",
        )
    rows = {
        str(row.subject): (probability, float(not is_generated_truth(row.truth)), row.cluster.scene)
        for _, _, row in iter_scored_rows(run, mode=mode)
        if row is not None and (probability := get_real_probability(row.outcome)) is not None
    }
    stated, real, scenes = zip(*rows.values(), strict=True) if rows else ((), (), ())
    fitted = cross_fit_calibration(
        np.array(stated), np.array(real), scenes, method=method, seed=seed
    )
    return RewardCalibration(
        reviewer=run.reviewer_name(),
        protocol=str(run.scope.instrument),
        condition=str(run.scope.conditions[0]),
        parser=mode,
        method=method,
        n_clips=len(rows),
        n_scenes=len(set(scenes)),
        share_real=float(np.mean(real)),
        **asdict(fitted),
    )


def cross_fit_calibration(
    stated: NDArray[np.float64],
    real: NDArray[np.float64],
    scenes: Sequence[str],
    *,
    method: Method,
    seed: int,
) -> CalibrationFit:
    """Fit a calibration of the `stated` probabilities of real to the labels `real` (0 or 1).

    The Brier score comes from cross-fitting: no scene is both fitted and predicted.

    Raises:
        InvalidSettingError: There are too few scenes with real or with generated clips.
    """
    from sklearn.model_selection import StratifiedGroupKFold  # type: ignore[import-untyped]

    labelled = {*zip(scenes, real, strict=True)}
    n_folds = min(_FOLDS, *(sum(y == label for _, y in labelled) for label in (0, 1)))
    if n_folds < 2:  # noqa: PLR2004  one fold is fitted, another one tested
        raise InvalidSettingError(
            "run",
            "real clips and generated clips must each be of at least 2 scenes",
            "Calibrate on a run with more real and generated clips",
        )
    predicted = np.full(len(real), np.nan)
    folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    for known, held_out in folds.split(stated, real, scenes):
        if len({*real[known]}) > 1:
            parameters = _fit_calibration_parameters(method, stated[known], real[known])
            predicted[held_out] = _correct_probabilities(method, *parameters, stated[held_out])
    judged = ~np.isnan(predicted)
    clusters = [scene for scene, is_judged in zip(scenes, judged, strict=True) if is_judged]

    def brier(probability: NDArray[np.float64]) -> tuple[float, float, float]:
        errors = (probability[judged] - real[judged]) ** 2
        score = bootstrap_mean(errors, seed=seed, clusters=clusters, bounds=(0, 1))
        if isinstance(score, Unmeasured):
            raise InvalidSettingError("run", str(score), "Calibrate on a larger run")
        assert isinstance(score, Estimate)  # noqa: S101  for the type checker
        return (score.value, score.low, score.high)

    knots, levels = _fit_calibration_parameters(method, stated, real)
    return CalibrationFit(
        stated=knots, corrected=levels, brier=brier(predicted), brier_before=brier(stated)
    )


def _fit_calibration_parameters(
    method: Method, stated: NDArray[np.float64], real: NDArray[np.float64]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if method == "isotonic":
        from sklearn.isotonic import IsotonicRegression  # type: ignore[import-untyped]

        curve = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(stated, real)
        return tuple(map(float, curve.X_thresholds_)), tuple(map(float, curve.y_thresholds_))
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    line = LogisticRegression(C=1e6).fit(_compute_logit(stated)[:, None], real)
    return (float(line.coef_[0, 0]), float(line.intercept_[0])), ()


def _correct_probabilities(
    method: Method,
    stated: Sequence[float],
    corrected: Sequence[float],
    probability: NDArray[np.float64],
) -> NDArray[np.float64]:
    if method == "isotonic":
        return np.interp(probability, stated, corrected)
    slope, intercept = stated
    return 1 / (1 + np.exp(-(slope * _compute_logit(probability) + intercept)))


def _compute_logit(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    inside = np.clip(probability, _NEAREST, 1 - _NEAREST)
    return np.log(inside / (1 - inside))
