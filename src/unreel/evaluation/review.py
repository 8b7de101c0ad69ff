"""Review of one clip by several reviewers, without engine or table; replies are not stored.

The questions are the same as in `unreel eval`: same prompt, same frames, same key.
"""

import asyncio
import tempfile
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from unreel.asking.asker import Asker, SharedInputs
from unreel.core.answer import Reply
from unreel.core.box import Box
from unreel.core.clip import Clip
from unreel.core.content_ids import compute_clip_id
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.question import Condition, Question
from unreel.core.safe_names import make_safe_file_name
from unreel.core.safe_text import sanitise_line
from unreel.core.settings import EnvironmentSettings
from unreel.core.span import convert_to_microseconds
from unreel.core.table_formats import build_html_table
from unreel.core.verdict import TraceVerdict
from unreel.evaluation.long_clip_review import (
    SCANNED,
    WindowSearchLimits,
    needs_window_search,
    search_clip_with_reviewer,
    select_frame_reviewers,
)
from unreel.evaluation.opinion import (
    ClipVariantOpinions,
    Opinion,
    OpinionStability,
    build_opinion,
    compute_opinion_stabilities,
)
from unreel.evaluation.passport import FalseAlarmPassport, FalseAlarmStatement, judge_opinion
from unreel.media.perturb import ClipVariant, plan_clip_variants
from unreel.media.reader import MediaReader
from unreel.protocols.protocol import PROTOCOLS, REVIEWED, Mode, get_protocol, list_protocol_names
from unreel.recipes.validation import drop_unset_keys, validate_recipe_sections
from unreel.reviewers.condition_section import ConditionSection
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.factory import ReviewerFactory, ReviewerWithPrices

FRAMES = 4
"""Maximum number of frames in the HTML of an opinion, because a notebook stores everything it displays."""
_BOX = "position:absolute;border:2px solid #d00;box-sizing:border-box"


def format_opinion_html(opinion: Opinion) -> str:
    """Return an opinion's HTML: verdict and details, or problem, and up to 4 frames with its box."""
    rows = [("verdict", opinion.headline), *opinion.details]
    if opinion.problem is not None:
        rows.append(("problem", opinion.problem))
        if isinstance(opinion.outcome, Reply):
            rows.append(("answer", opinion.outcome.text))
    title = f"{opinion.reviewer}, {opinion.question.instrument}"
    frames = opinion.clip_input.frames if opinion.clip_input else ()
    n = min(FRAMES, len(frames))
    picked = [frames[i * len(frames) // n] for i in range(n)]
    verdict = opinion.verdict
    box = verdict.box if isinstance(verdict, TraceVerdict) else None
    onset_us = verdict.start_us if isinstance(verdict, TraceVerdict) else None
    figures = []
    for frame in picked:
        style = ""
        is_after_onset = not isinstance(onset_us, int) or onset_us <= convert_to_microseconds(
            frame.at_s
        )
        if isinstance(box, Box) and is_after_onset:
            width, height = box.x1 - box.x0, box.y1 - box.y0
            edges = {"left": box.x0, "top": box.y0, "width": width, "height": height}
            style = ";".join(f"{edge}:{100 * part:.2f}%" for edge, part in edges.items())
        outline = f'<div style="{_BOX};{style}"></div>' if style else ""
        label = f"{float(frame.at_s):.2f} s"
        source = f"data:image/jpeg;base64,{b64encode(frame.jpeg).decode()}"
        figures.append(
            '<figure style="display:inline-block;width:23%;margin:0 1% 0 0">'
            '<div style="position:relative">'
            f'<img src="{source}" alt="frame at {label}" style="width:100%;display:block">{outline}'
            f"</div><figcaption>{label}</figcaption></figure>"
        )
    return build_html_table(title, (), rows) + "".join(figures)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewQuestions:
    """Protocols and condition of the questions that every reviewer answers about every clip."""

    protocols: tuple[str, ...] = REVIEWED
    condition: Condition = field(default_factory=Condition)
    mode: Mode = "strict"
    """Mode of the parser of answers."""
    scan: WindowSearchLimits | None = None
    """Limits of the search of long clips; `None` asks about long clips in the same way as about others."""

    def __post_init__(self) -> None:
        for name in self.protocols:
            if name not in PROTOCOLS or get_protocol(name).subject != "clip":
                raise InvalidSettingError(
                    "protocol",
                    f"{name!r} does not ask about one clip",
                    f"Use {', '.join(list_protocol_names('clip'))}",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """All opinions about one clip, by protocol and then by reviewer in the given order."""

    clip: Clip
    opinions: tuple[Opinion, ...]
    mode: Mode = "strict"
    """Mode of the parser of answers."""
    trials: tuple[ClipVariantOpinions, ...] = ()
    """Opinions about variants of the clip; empty without `perturb`."""
    passport: FalseAlarmPassport | None = None
    """Answers of reviewers about real footage of the user's own."""

    def __str__(self) -> str:
        lines = (f"stability, {stability}" for stability in self.stabilities)
        return "\n".join([sanitise_line(self.clip.location), *map(str, self.opinions), *lines])

    def _repr_html_(self) -> str:
        body = self.clip._repr_html_() + "".join(map(format_opinion_html, self.opinions))
        rows = [(sanitise_line(s.opinion.reviewer), str(s)) for s in self.stabilities]
        return body + (build_html_table("Stability of the verdicts", (), rows) if rows else "")

    @property
    def stabilities(self) -> tuple[OpinionStability, ...]:
        """Return the stability of each opinion on variants of the clip, in order; empty if not requested."""
        return compute_opinion_stabilities(self.opinions, self.trials)

    def compare_with_footage(self, opinion: Opinion) -> FalseAlarmStatement | None:
        """Return what the passport says about an opinion; `None` without a passport or a verdict."""
        if self.passport is None:
            return None
        return judge_opinion(opinion, self.clip, self.passport, mode=self.mode)

    @property
    def is_complete(self) -> bool:
        """Return whether every question about the clip and its variants has a readable answer."""
        answered = all(opinion.is_readable for opinion in self.opinions)
        return answered and all(trial.is_complete for trial in self.trials)


def build_review_questions(
    protocols: Sequence[str],
    condition: Mapping[str, str],
    *,
    mode: Mode = "strict",
    models: Sequence[str] = (),
    n_scan: int = 0,
) -> ReviewQuestions:
    """Build the questions of a review from a condition as typed by a user, and check its settings.

    All questions have the same input: the training input of a checkpoint among `models`, otherwise
    8 frames unless a sampling is named, regardless of the clip's length.
    """
    ways = {
        str(way): way
        for model in models
        if (input_spec := validate_recipe_sections(ReviewerSection, {"model": model}).taught)
        is not None
        for name in protocols
        if (way := input_spec.condition(name)) is not None
    }
    if len(ways) > 1:
        raise InvalidSettingError(
            "condition",
            f"the models were trained in {len(ways)} ways: {'; '.join(ways)}",
            "Ask with one protocol and one checkpoint at a time",
        )
    trained = asdict(*ways.values()) if ways else {}
    section = validate_recipe_sections(
        ConditionSection, {"sampling": Condition().sampling, **trained, **condition}
    )
    resolved = [section.resolved(get_protocol(name)) for name in protocols]
    names = tuple(dict.fromkeys(protocols))
    shared = replace(resolved[0].as_condition(), marks=section.marks)
    searched = n_scan and (names == REVIEWED or SCANNED in names)
    scan = WindowSearchLimits(n_questions=n_scan) if searched else None
    return ReviewQuestions(protocols=names, condition=shared, mode=mode, scan=scan)


def get_trained_protocols(models: Sequence[str]) -> tuple[str, ...]:
    """Return the protocols on which the first checkpoint among `models` was trained; empty if none is."""
    for model in models:
        input_spec = validate_recipe_sections(ReviewerSection, {"model": model}).taught
        if input_spec is not None:
            return tuple(known.protocol for known in input_spec.instruments)
    return ()


def build_reviewer_factories(
    models: Sequence[str],
    questions: ReviewQuestions,
    *,
    settings: EnvironmentSettings,
    **keys: object,
) -> tuple[ReviewerFactory, ...]:
    """Return a factory per distinct model, as `unreel eval`; set `keys` are those of `[reviewer]`."""
    condition = ConditionSection(**asdict(questions.condition))
    factories: dict[str, ReviewerFactory] = {}
    for model in models:
        section = validate_recipe_sections(
            ReviewerSection, {"model": model} | drop_unset_keys(keys)
        )
        section.require_thinking(condition, get_protocol(questions.protocols[0]))
        section.require_trained_for(questions.protocols)
        factory = section.opener(key_hosts=settings.key_hosts)
        factories[factory.name] = factory
    return tuple(factories.values())


def format_box_space_note(
    models: Sequence[str], questions: ReviewQuestions, *, box_space: str | None = None
) -> str:
    """Return a note that names the models whose boxes are assumed to be in pixels; empty if none is."""
    if not any(get_protocol(name).needs_box_space for name in questions.protocols):
        return ""
    keys = drop_unset_keys({"box_space": box_space})
    sections = [
        validate_recipe_sections(ReviewerSection, {"model": model} | keys) for model in models
    ]
    names = [section.served_name for section in sections if section.assumes_box_space]
    if not names:
        return ""
    return (
        f"The model family of {', '.join(names)} is unknown: boxes are read as pixels of the frames "
        "that were sent. If they are misplaced, state the unit, for example --box-space permille."
    )


def probe_clip_file(file: Path, reader: MediaReader) -> Clip | Failure:
    """Probe the video file `file`, and return its clip with hash and facts, or the failure."""
    facts = reader.probe(file)
    if isinstance(facts, Failure):
        return facts
    return Clip(id=compute_clip_id(file), location=str(file), facts=facts)


async def review_clip(
    clip: Clip,
    reviewers: Sequence[ReviewerWithPrices],
    *,
    inquiry: ReviewQuestions,
    asker: Asker,
    on_opinion: Callable[[Opinion], None] = lambda _opinion: None,
) -> Review:
    """Send every question about `clip` to every reviewer concurrently, and return the review.

    `on_opinion` is called with each opinion. A long clip is searched in windows if `inquiry.scan` is
    set.
    """
    inputs = SharedInputs(asker, [clip], inquiry.condition)

    async def ask(reviewer: ReviewerWithPrices, name: str) -> Opinion:
        instrument = get_protocol(name).instrument
        question = Question(subject=clip.id, instrument=instrument, condition=inquiry.condition)
        await inputs.load(reviewer.reviewer.wants)  # shown beside a stored answer too
        answered = await asker.ask(question, inputs, reviewer)
        opinion = build_opinion(answered, inquiry.mode)
        on_opinion(opinion)
        return opinion

    async def search(reviewer: ReviewerWithPrices, limits: WindowSearchLimits) -> Opinion:
        opinion = await search_clip_with_reviewer(
            clip,
            reviewer,
            condition=inquiry.condition,
            mode=inquiry.mode,
            asker=asker,
            limits=limits,
        )
        on_opinion(opinion)
        return opinion

    names = inquiry.protocols
    searches = []
    if inquiry.scan is not None and needs_window_search(clip, inquiry.scan):
        searches = [search(r, inquiry.scan) for r in select_frame_reviewers(reviewers)]
        names = tuple(name for name in names if name != SCANNED) if searches else names
    questions = [*(ask(reviewer, name) for name in names for reviewer in reviewers), *searches]
    opinions = tuple(await asyncio.gather(*questions))
    return Review(clip=clip, opinions=opinions, mode=inquiry.mode)


async def review_clip_variants(
    review: Review,
    reviewers: Sequence[ReviewerWithPrices],
    *,
    questions: ReviewQuestions,
    asker: Asker,
    reader: MediaReader,
    on_variant: Callable[[ClipVariant], None] = lambda _variant: None,
) -> Review:
    """Return `review` with the same reviewers' opinions about each variant of its clip added.

    A variant that cannot be made has a failure instead of opinions. The callback `on_variant` is
    called before each variant is made.
    """
    trials: list[ClipVariantOpinions] = []
    name = make_safe_file_name(Path(review.clip.location).stem)

    def write_variant(variant: ClipVariant, folder: str) -> Clip | Failure:
        data = variant.make(review.clip.location, reader)
        if isinstance(data, Failure):
            return data
        file = OutputDirectory(Path(folder)).write(f"{name}+{variant.name}.mp4", data)
        return probe_clip_file(file, reader)

    with tempfile.TemporaryDirectory(prefix="unreel-") as folder:
        for variant in plan_clip_variants(review.clip):
            on_variant(variant)
            clip = await asyncio.to_thread(write_variant, variant, folder)
            if isinstance(clip, Failure):
                trials.append(ClipVariantOpinions(variant=variant, opinions=(), failure=clip))
                continue
            result = await review_clip(clip, reviewers, inquiry=questions, asker=asker)
            trials.append(ClipVariantOpinions(variant=variant, opinions=result.opinions))
    return replace(review, trials=tuple(trials))
