"""Opinion of one reviewer about one clip, and its stability under small changes of the clip."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from unreel.asking.answer_store import QuestionResult
from unreel.core.box import Box
from unreel.core.failure import Failure, FailureReason
from unreel.core.safe_text import sanitise_line
from unreel.core.verdict import TraceVerdict, Unparsed, Verdict
from unreel.media.perturb import ClipVariant, VariantName
from unreel.protocols.answer_text import is_refusal
from unreel.protocols.protocol import Mode, ProtocolTexts, get_protocol
from unreel.reviewers.contract import ClipInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion(QuestionResult):
    """Opinion of one reviewer about one clip: the question, the input, the reply and its verdict."""

    verdict: Verdict | None
    """Verdict parsed from the reply; `None` without a reply."""

    @property
    def clip_input(self) -> ClipInput | None:
        """Return the clip as shown to the reviewer; `None` if the condition could not be met."""
        return self.inputs[0] if self.inputs else None

    @property
    def is_readable(self) -> bool:
        """Return whether a label or a score could be parsed from the answer."""
        return self.verdict is not None and not isinstance(self.decision, Unparsed)

    @property
    def wording(self) -> ProtocolTexts[Any, Any]:
        return get_protocol(self.question.instrument.protocol).wording

    @property
    def decision(self) -> Any:
        """Return the label or score of the answer, or why it is unparsed; `None` without an answer."""
        return None if self.verdict is None else self.wording.decision(self.verdict)

    @property
    def is_refusal(self) -> bool:
        """Return whether the reviewer refused to answer: reported by its server, or stated in its text."""
        if isinstance(self.outcome, Failure):
            return self.outcome.reason is FailureReason.REFUSED
        return not self.is_readable and is_refusal(self.outcome.text)

    @property
    def headline(self) -> str:
        """Return the verdict in one or two words, or a text for a refusal or a missing answer."""
        if self.is_refusal:
            return "refused to answer"
        return "no answer" if self.verdict is None else self.wording.headline(self.verdict)

    @property
    def problem(self) -> str | None:
        """Return the reason for a missing verdict; `None` if there is one."""
        if isinstance(self.outcome, Failure):
            return sanitise_line(str(self.outcome))
        if self.verdict is None or self.is_readable:
            return None
        if self.is_refusal:
            return "the reviewer refused to answer; the text is shown as it came"
        part = self.decision
        reason = part.reason.value if isinstance(part, Unparsed) else ""
        return (
            f"the answer could not be read: the {self.wording.decides} is {reason}; "
            "the text is shown as it came"
        )

    @property
    def details(self) -> tuple[tuple[str, str], ...]:
        """Return the contents of a readable answer besides label or score, as pairs of name and text."""
        if self.verdict is None or not self.is_readable:
            return ()
        return tuple(self.wording.details(self.verdict))

    def __str__(self) -> str:
        details = [f"{name}: {text}" for name, text in self.details]
        head = f"{sanitise_line(self.reviewer)}, {self.question.instrument}: {self.headline}"
        return "\n".join([head, *(f"  {line}" for line in filter(None, [*details, self.problem]))])


def build_opinion(result: QuestionResult, mode: Mode) -> Opinion:
    """Build the opinion for the question and reply in `result`, with the parsed verdict."""
    return Opinion(
        reviewer=result.reviewer,
        question=result.question,
        prompt=result.prompt,
        inputs=result.inputs,
        box_space=result.box_space,
        outcome=result.outcome,
        cost_usd=result.cost_usd,
        verdict=result.read(mode),
    )


State = Literal["steady", "unsure", "not known"]

QUESTIONS_PER_CLIP = 1 + len(get_args(VariantName))
"""Number of times that each question is asked with perturbation: about the clip and about each variant."""
_MIN_SCORE_CHANGE = 2
"""Minimum difference between two realism scores that counts as a different verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipVariantOpinions:
    """Opinions of all reviewers about one variant of a clip, in the order of those about the clip."""

    variant: ClipVariant
    opinions: tuple[Opinion, ...]
    failure: Failure | None = None
    """Reason why the variant could not be made or read; no question about it was sent."""

    @property
    def is_complete(self) -> bool:
        """Return whether the variant was made and every question has a readable answer."""
        return self.failure is None and all(opinion.is_readable for opinion in self.opinions)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedVariantAnswer:
    """Answer of a reviewer about one variant of a clip, compared with its answer about the clip."""

    variant: ClipVariant
    headline: str
    problem: str | None
    """Reason for a missing verdict; `None` if there is a verdict."""
    flips: bool | None
    """Whether the verdict differs from that about the clip; `None` if one of the two is missing."""
    box_overlap: float | None
    """Intersection over union of both boxes, in coordinates of the clip; `None` if one of them is missing."""
    cost_usd: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON for the result file of a review."""
        return {
            "variant": self.variant.name,
            "parameters": self.variant.parameters,
            "headline": self.headline,
            "problem": self.problem,
            "flips": self.flips,
            "box_overlap": self.box_overlap,
            "cost_usd": self.cost_usd,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionStability:
    """Stability of one opinion: whether its verdict stays the same under small changes of the clip."""

    opinion: Opinion
    retrials: tuple[ComparedVariantAnswer, ...]

    @property
    def state(self) -> State:
        """Return `unsure` if a variant changes the verdict, `steady` if none, `not known` if one is missing."""
        flips = [retrial.flips for retrial in self.retrials]
        if any(flips):
            return "unsure"
        return "not known" if None in flips else "steady"

    def __str__(self) -> str:
        texts = [f"{self.opinion.headline} as it is"]
        texts += [f"{retrial.headline} when {retrial.variant.name}" for retrial in self.retrials]
        name = self.opinion.question.instrument.protocol
        return f"{sanitise_line(self.opinion.reviewer)}, {name}: {self.state}: {', '.join(texts)}"

    def to_json(self) -> dict[str, Any]:
        """Return the stability as JSON for the result file of a review."""
        return {
            "reviewer": self.opinion.reviewer,
            "instrument": str(self.opinion.question.instrument),
            "state": self.state,
            "headline": self.opinion.headline,
            "retrials": [retrial.to_json() for retrial in self.retrials],
        }


def format_perturbed_question_count(n_questions: int) -> str:
    """Return a text with the number of questions of a review that includes perturbed clips."""
    return (
        f"asks {n_questions * QUESTIONS_PER_CLIP} questions: {n_questions} about the named clips, and each again "
        "after recompression, scaling and cropping"
    )


def compute_opinion_stabilities(
    opinions: Sequence[Opinion], variants: Sequence[ClipVariantOpinions]
) -> tuple[OpinionStability, ...]:
    """Return the stability of each opinion, in order; empty if no variant was reviewed."""
    if not variants:
        return ()
    return tuple(
        OpinionStability(
            opinion=opinion,
            retrials=tuple(_compare_variant_answer(opinion, trial, i) for trial in variants),
        )
        for i, opinion in enumerate(opinions)
    )


def _compare_variant_answer(
    first_opinion: Opinion, variant: ClipVariantOpinions, index: int
) -> ComparedVariantAnswer:
    if variant.failure is not None:
        return ComparedVariantAnswer(
            variant=variant.variant,
            headline="no answer",
            problem=f"the clip could not be changed so: {variant.failure}",
            flips=None,
            box_overlap=None,
            cost_usd=None,
        )
    second = variant.opinions[index]
    flips: bool | None = None
    if first_opinion.is_readable and second.is_readable:
        before, after = first_opinion.decision, second.decision
        flips = bool(before != after)
        if isinstance(before, int) and isinstance(after, int):
            flips = abs(before - after) >= _MIN_SCORE_CHANGE
    box, second_box = _find_verdict_box(first_opinion), _find_verdict_box(second)
    box_overlap = None
    if box is not None and second_box is not None:
        box_overlap = box.iou(variant.variant.map_back(second_box))
    return ComparedVariantAnswer(
        variant=variant.variant,
        headline=second.headline,
        problem=second.problem,
        flips=flips,
        box_overlap=box_overlap,
        cost_usd=None if second.cost_usd is None else float(second.cost_usd),
    )


def _find_verdict_box(opinion: Opinion) -> Box | None:
    verdict = opinion.verdict
    if isinstance(verdict, TraceVerdict) and isinstance(verdict.box, Box):
        return verdict.box
    return None
