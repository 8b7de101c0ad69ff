"""Reviewer sets with checked settings: questions, reviewers, accuracy records and cost of a clip."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from unreel.core.answer import Usage
from unreel.core.clip import UNKNOWN_CLIP, Clip, ClipFacts, VideoFacts
from unreel.core.question import Question
from unreel.core.settings import EnvironmentSettings
from unreel.desk.settings import DeskSettings, ReviewerSet
from unreel.evaluation.passport import FalseAlarmPassport, read_passport
from unreel.evaluation.review import (
    ReviewQuestions,
    build_review_questions,
    build_reviewer_factories,
    format_box_space_note,
    get_trained_protocols,
)
from unreel.evaluation.run_lookup import open_named_run
from unreel.protocols.protocol import REVIEWED, get_protocol
from unreel.recipes.validation import drop_unset_keys, validate_recipe_sections
from unreel.report.review.review_result import ReviewerAccuracyRecord, read_reviewer_records
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.endpoint.model_address import parse_model_address
from unreel.reviewers.endpoint.model_families import detect_model_family
from unreel.reviewers.endpoint.servers import NOTHING_LEAVES, find_local_models
from unreel.reviewers.endpoint.token_estimate import estimate_request_tokens
from unreel.reviewers.factory import ReviewerFactory

_VIDEO = VideoFacts(
    codec="h264",
    pixel_format="yuv420p",
    width=1280,
    height=720,
    rotation_deg=0,
    n_frames=300,
    average_rate=Fraction(30),
    variable_rate=False,
    first_at_s=Fraction(),
    duration_s=Fraction(10),
)
_TYPICAL = Clip(
    id=UNKNOWN_CLIP, location="", facts=ClipFacts(container="", size_bytes=0, video=_VIDEO)
)
"""Example clip for which the cost is stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenReviewerSet:
    """A reviewer set whose settings are checked."""

    name: str
    questions: ReviewQuestions
    factories: tuple[ReviewerFactory, ...]
    records: tuple[ReviewerAccuracyRecord, ...]
    passport: FalseAlarmPassport | None
    note: str
    """Sentence for the evidence page, for example that answers are recorded."""
    titles: tuple[str, ...]
    """Titles of the protocols."""
    cost: str
    """Cost of a typical clip, as text."""


def add_local_reviewer_sets(settings: DeskSettings) -> DeskSettings:
    """Return the settings with a reviewer set for each model on this computer that may see pictures."""
    names = [model.name for model in find_local_models() if model.sees_pictures is not False]
    local = [ReviewerSet(name=f"{name} ({NOTHING_LEAVES})", models=(name,)) for name in names]
    return settings.model_copy(update={"reviewers": (*settings.reviewers, *local)})


def open_reviewer_set(reviewer_set: ReviewerSet, settings: EnvironmentSettings) -> OpenReviewerSet:
    """Check a reviewer set; nothing is sent.

    Raises:
        InvalidSettingError: A model, protocol or condition cannot be used.
    """
    models, space = reviewer_set.models, reviewer_set.box_space
    protocols = reviewer_set.protocols or get_trained_protocols(models) or REVIEWED
    questions = build_review_questions(
        protocols, reviewer_set.condition, mode=reviewer_set.parser, models=models
    )
    keys = drop_unset_keys(
        reviewer_set.model_dump(include={"recorded", "prices", "deadline_s", "box_space"})
    )
    factories = build_reviewer_factories(models, questions, settings=settings, **keys)
    runs = [open_named_run(run, settings) for run in reviewer_set.records]
    recorded = [each.name for each in factories if each.name.startswith("recorded:")]
    notes = [format_box_space_note(models, questions, box_space=space)]
    if recorded:
        notes.append(f"The answers of {', '.join(recorded)} are recorded: no model was queried.")
    sections = [
        validate_recipe_sections(ReviewerSection, {"model": model} | keys) for model in models
    ]
    return OpenReviewerSet(
        name=reviewer_set.name,
        questions=questions,
        factories=factories,
        records=tuple(
            record for run in runs for record in read_reviewer_records(run, reviewer_set.parser)
        ),
        passport=None if reviewer_set.passport is None else read_passport(reviewer_set.passport),
        note=" ".join(filter(None, notes)),
        titles=tuple(get_protocol(name).title for name in questions.protocols),
        cost=_format_clip_cost([each for each in sections if each.is_served], questions),
    )


def _format_clip_cost(sections: list[ReviewerSection], questions: ReviewQuestions) -> str:
    """Return a sentence with the maximum cost of reviewing one clip of 10 s at 1280 x 720 pixels."""
    total = Decimal()
    for section in sections:
        if section.price is None or section.show != "frames":
            return "Cost per clip: not known."
        family = detect_model_family(parse_model_address(section.model), section.family)
        for instrument in (get_protocol(name).instrument for name in questions.protocols):
            condition = questions.condition
            question = Question(subject=UNKNOWN_CLIP, instrument=instrument, condition=condition)
            load = estimate_request_tokens(question, [_TYPICAL], family)
            n_tokens = load.text_tokens + load.picture_tokens
            usage = Usage(input_tokens=n_tokens, output_tokens=section.max_tokens)
            total += section.price.cost_usd(usage)
    if not total:
        return "Cost per clip: none, no service is paid."
    return f"Cost per clip: at most {total:.4f} USD for 10 s at 1280 \u00d7 720."
