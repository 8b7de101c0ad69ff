"""From judged clips to the scorecard of `reality`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unreel.core.clip import Origin, creator_of, makers_of, setting_of
from unreel.core.cluster import Cluster
from unreel.core.estimate import Coverage, Metric, Scorecard, Unmeasured
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.verdict import RealityVerdict
from unreel.protocols.groups import told_by_part
from unreel.protocols.measure import (
    Part,
    count_failures,
    count_unparsed,
    mean_percent,
    sum_percent,
)
from unreel.protocols.protocol import Row
from unreel.protocols.reality.figures import FIGURES, INSTRUMENT
from unreel.protocols.telling import Call, Scored, count_calls, measure_f1, measure_scores
from unreel.stats.detection import Calibration, calibrate

RealityRow = Row[Origin, RealityVerdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """One clip that was asked about, and what came of it."""

    cluster: Cluster
    """What it is drawn with: its source, or the clip alone, and who made it."""
    makers: tuple[str, ...]
    """Who made it, and in which setting where one is known; nobody made a real clip."""
    label: Label
    """What it is."""
    said: Label | None
    """`None` when nothing valid was said."""
    right: float
    """1 for a right answer; a missing one is not right."""
    verdict: RealityVerdict | None
    """`None` when the question was not answered."""

    @property
    def call(self) -> Call:
        """What it is and what it was called."""
        return Call(self.cluster, self.label, self.said)


@told_by_part(FIGURES)
def score(rows: Sequence[RealityRow], *, seed: int) -> Scorecard:
    """Accuracy in percent, for each creator against all real clips, and the mean over creators.

    - `pooled: X` is the share of right answers among the real clips and the clips of creator X;
      `balanced: X` is the mean of the share on real clips and the share on X's clips. `pooled` and
      `balanced` are the means over creators, each creator counting alike; they are unmeasured as long
      as one creator's figure is.
    - A creator with settings has a figure for each, `X/SETTING`, besides the one over all its clips; the
      means over creators count each creator once.
    - These count valid answers only. `-all-clips` counts every clip that was asked about: a clip whose
      answer is unreadable, or whose question failed, was not judged rightly.
    - `caught: X` is the share of the valid answers on X's clips that say generated; X wants it low.
      `real-accuracy` and `fake-accuracy` are the shares of right ones among valid answers.
    - `answered-real` is the share of all valid answers that say real.
    - `accuracy` is the share of right answers, every clip alike; `f1` that of the calls `generated`, in which
      `-all-clips` counts a generated clip that nobody called so as missed. `confusion` counts answers.
    - Where a confidence was asked, `auc`, `tpr-at-fpr-`, `brier` and `ece` are those of the probability of
      being generated that label and confidence tell; an answer without one of them is left out.
    """
    asks = [_ask(row) for row in rows]
    answers = [row.outcome for row in rows if not isinstance(row.outcome, Failure)]
    valid = [ask for ask in asks if ask.said]
    answered = [ask for ask in asks if ask.verdict]
    creators = sorted({ask.makers[0] for ask in asks if ask.makers})
    makers = sorted({maker for ask in asks for maker in ask.makers})
    return Scorecard(
        instrument=INSTRUMENT,
        n_questions=len(rows),
        n_answered=len(answers),
        metrics=(
            *_accuracies("", creators, makers, asked=answered, counted=valid, seed=seed),
            *_accuracies("-all-clips", creators, makers, asked=asks, counted=asks, seed=seed),
            *_shares(answered, makers, seed=seed),
            *_calls("", asked=answered, counted=valid, seed=seed),
            *_calls("-all-clips", asked=asks, counted=asks, seed=seed),
            *_beliefs(answered, seed=seed),
        ),
        failures=count_failures(rows),
        unparsed=count_unparsed(part for verdict in answers for part in _parts(verdict)),
        confusion=count_calls([ask.call for ask in answered]),
    )


def _ask(row: RealityRow) -> _Ask:
    makers = makers_of(creator_of(row.truth), setting_of(row.truth))
    label = Label.GENERATED if makers else Label.REAL
    verdict = None if isinstance(row.outcome, Failure) else row.outcome
    said = verdict.label if verdict and isinstance(verdict.label, Label) else None
    return _Ask(
        cluster=Cluster(row.cluster.scene, row.creator or creator_of(row.truth)),
        makers=makers,
        label=label,
        said=said,
        right=float(said is label),
        verdict=verdict,
    )


def _parts(verdict: RealityVerdict) -> Iterator[tuple[str, object]]:
    yield "label", verdict.label
    yield "confidence", verdict.confidence


def _calls(
    suffix: str, *, asked: Sequence[_Ask], counted: Sequence[_Ask], seed: int
) -> Iterator[Metric]:
    clips = [ask.cluster for ask in counted]
    right = mean_percent([ask.right for ask in counted], clips=clips, seed=seed)
    yield Metric(name="accuracy" + suffix, value=right, coverage=_coverage(asked))
    value = measure_f1([ask.call for ask in counted], seed=seed)
    yield Metric(name="f1" + suffix, value=value, coverage=_coverage(asked))


def _beliefs(answered: Sequence[_Ask], *, seed: int) -> Iterator[Metric]:
    asked = [ask for ask in answered if ask.verdict and ask.verdict.confidence is not None]
    told = [
        Scored(ask.cluster, ask.label, ask.verdict.p_generated)
        for ask in asked
        if ask.verdict and ask.verdict.p_generated is not None
    ]
    coverage = Coverage(parsed=len(told), asked=len(asked))
    why = "no confidence could be read" if asked else "no confidence was asked for"
    yield from measure_scores(told, coverage=coverage, why_none=why, seed=seed)
    kept: Calibration | None = None
    if told:
        kept = calibrate(
            [clip.label is Label.GENERATED for clip in told],
            [clip.score for clip in told],
            seed=seed,
            clusters=[clip.cluster for clip in told],
        )
    yield Metric(name="brier", value=kept.brier if kept else Unmeasured(why), coverage=coverage)
    yield Metric(name="ece", value=kept.ece if kept else Unmeasured(why), coverage=coverage)


def _accuracies(
    suffix: str,
    creators: Sequence[str],
    makers: Sequence[str],
    *,
    asked: Sequence[_Ask],
    counted: Sequence[_Ask],
    seed: int,
) -> Iterator[Metric]:
    clips = [ask.cluster for ask in counted]
    for figure, parts_of in (("pooled", _pooled), ("balanced", _balanced)):
        parts = {name: parts_of(counted, name) for name in makers}
        average = [
            Part(part.name, part.factor / len(creators), part.values, creator)
            for creator in creators
            for part in parts[creator]
        ]
        value = sum_percent(average, clips=clips, seed=seed)
        yield Metric(name=figure + suffix, value=value, coverage=_coverage(asked))
        for name, against in parts.items():
            value = sum_percent(against, clips=clips, seed=seed)
            coverage = _coverage([ask for ask in asked if not ask.makers or name in ask.makers])
            yield Metric(name=f"{figure}{suffix}: {name}", value=value, coverage=coverage)


def _pooled(counted: Sequence[_Ask], maker: str) -> list[Part]:
    sides = _balanced(counted, maker)
    if any(side.is_empty for side in sides):
        return sides  # unmeasured, and its name says why
    return [Part(maker, 1, _right(counted, {None, maker}))]


def _balanced(counted: Sequence[_Ask], maker: str) -> list[Part]:
    return [
        Part("real clips", 1 / 2, _right(counted, {None})),
        Part(f"clips of {maker}", 1 / 2, _right(counted, {maker})),
    ]


def _right(counted: Sequence[_Ask], sides: set[str | None]) -> list[float | None]:
    return [ask.right if not sides.isdisjoint(ask.makers or (None,)) else None for ask in counted]


def _shares(answered: Sequence[_Ask], makers: Sequence[str], *, seed: int) -> Iterator[Metric]:
    real = [ask for ask in answered if not ask.makers]
    fake = [ask for ask in answered if ask.makers]
    yield _share("answered-real", Label.REAL, answered, seed=seed)
    yield _share("real-accuracy", Label.REAL, real, seed=seed)
    yield _share("fake-accuracy", Label.GENERATED, fake, seed=seed)
    for name in makers:
        own = [ask for ask in fake if name in ask.makers]
        yield _share(f"caught: {name}", Label.GENERATED, own, seed=seed)


def _share(name: str, label: Label, asked: Sequence[_Ask], *, seed: int) -> Metric:
    valid = [ask for ask in asked if ask.said]
    said = [float(ask.said is label) for ask in valid]
    value = mean_percent(said, clips=[ask.cluster for ask in valid], seed=seed)
    return Metric(name=name, value=value, coverage=_coverage(asked))


def _coverage(asked: Sequence[_Ask]) -> Coverage:
    return Coverage(parsed=sum(ask.said is not None for ask in asked), asked=len(asked))
