"""Asking reviewers about one clip, now: no engine and no table; what comes back is shown, not kept.

The questions are those of `unreel eval`: the same prompt, the same frames, the same key.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

from unreel.core.answer import Reply
from unreel.core.clip import Clip
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.identity import clip_id
from unreel.core.judgement import Label
from unreel.core.question import Condition, Question
from unreel.core.settings import Settings
from unreel.core.verdict import (
    Position,
    PreferenceVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
    Unparsed,
    Verdict,
)
from unreel.engine.access import Access
from unreel.evaluate.cast import FITTED, Cast, cast_reviewer
from unreel.evaluate.recipe import EvalRecipe, check_recipe
from unreel.media.reader import MediaReader
from unreel.protocols.protocol import Mode, Protocol, Reading, protocol
from unreel.protocols.space import declare_space
from unreel.reviewers.contract import Exhibit, Material, Reviewer, Sheet
from unreel.reviewers.endpoint.budget import Price
from unreel.reviewers.showing import show

INSTRUMENTS: Final = ("trace", "realism", "reality")
"""Those that ask about one clip."""
_ONE_CLIP: Final = "one clip"
"""In the place of a benchmark, which a recipe must name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """What every reviewer is asked about every clip."""

    protocols: tuple[str, ...] = ("trace", "realism")
    condition: Condition = field(default_factory=Condition)
    mode: Mode = "strict"
    """How answers are read."""

    def __post_init__(self) -> None:
        for name in self.protocols:
            if name not in INSTRUMENTS:
                setting, problem = "protocol", f"{name!r} does not ask about one clip"
                raise InvalidSettingError(setting, problem, f"Use {', '.join(INSTRUMENTS)}")


@dataclass(frozen=True, slots=True)
class Seat:
    """A reviewer that is ready to be asked, and what its tokens cost."""

    reviewer: Reviewer
    price: Price | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """One question put to one reviewer: what it was shown, what came back, and what that says."""

    reviewer: str
    question: Question
    prompt: str
    exhibit: Exhibit | None
    """`None` where the clip could not be shown as the condition asks."""
    box_space: str | None
    outcome: Reply | Failure
    verdict: Verdict | None
    """What the text says; `None` without a text."""
    cost_usd: Decimal | None
    """`None` where tokens or price are not known: unknown is not 0."""

    @property
    def key(self) -> str:
        """The question's identity, as in a run of `unreel eval`."""
        return self.question.key(self.reviewer)

    @property
    def is_readable(self) -> bool:
        """True when the answer gives a label or a score; without one there is no verdict."""
        return self.verdict is not None and not isinstance(main_part(self.verdict), Unparsed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """All opinions about one clip, by instrument and then by reviewer as they were named."""

    clip: Clip
    opinions: tuple[Opinion, ...]

    @property
    def is_complete(self) -> bool:
        """True when every question was answered in a form that can be read."""
        return all(opinion.is_readable for opinion in self.opinions)


def main_part(verdict: Verdict) -> Label | int | Position | Unparsed:
    """What an instrument asks before all else: a label, a score, or a place in a pair."""
    match verdict:
        case TraceVerdict() | RealityVerdict():
            return verdict.label
        case RealismVerdict():
            return verdict.score
        case PreferenceVerdict():
            return verdict.real


def inquire(
    protocols: Sequence[str], condition: Mapping[str, str], *, mode: Mode = "strict"
) -> Inquiry:
    """An inquiry under a condition as people write it; what an instrument does not know is refused."""
    checked = [_recipe(name, condition=condition) for name in protocols]
    return Inquiry(
        protocols=tuple(dict.fromkeys(protocols)), condition=checked[0].conditions[0], mode=mode
    )


def cast_models(
    models: Sequence[str],
    inquiry: Inquiry,
    *,
    settings: Settings,
    recorded: Path | None = None,
    prices: Path | None = None,
    deadline_s: float | None = None,
) -> tuple[Cast, ...]:
    """The reviewers that `models` name, each once; the names and settings are those of `unreel eval`."""
    typed = {"recorded": recorded, "prices": prices, "deadline_s": deadline_s}
    given = {name: _plain(value) for name, value in typed.items() if value is not None}
    casts: dict[str, Cast] = {}
    for model in models:
        if model in FITTED:
            setting, problem = "model", f"{model} learns from a benchmark, and one clip is none"
            raise InvalidSettingError(setting, problem, "Use it with `unreel eval`")
        condition = asdict(inquiry.condition)
        recipe = _recipe(inquiry.protocols[0], condition=condition, model=model, **given)
        access = Access(settings=settings)
        cast = cast_reviewer(recipe, access=access, learn_from=lambda: iter(()))
        casts[cast.name] = cast
    return tuple(casts.values())


def _plain(value: Path | float) -> str | float:
    return str(value) if isinstance(value, Path) else value


@asynccontextmanager
async def seat(casts: Sequence[Cast]) -> AsyncIterator[tuple[Seat, ...]]:
    """The reviewers, open for as long as the context lasts."""
    seats = tuple(Seat(cast.build(), cast.price) for cast in casts)
    try:
        yield seats
    finally:
        for one in seats:
            await one.reviewer.close()


def survey_clip(file: Path, reader: MediaReader) -> Clip | Failure:
    """The clip at `file`: its bytes hashed, its streams read."""
    facts = reader.probe(file)
    if isinstance(facts, Failure):
        return facts
    return Clip(id=clip_id(file), location=str(file), facts=facts)


async def review_clip(
    clip: Clip,
    seats: Sequence[Seat],
    *,
    inquiry: Inquiry,
    reader: MediaReader,
    on_opinion: Callable[[Opinion], None] = lambda _opinion: None,
) -> Review:
    """Put every question to every reviewer at once; `on_opinion` hears each as it comes in."""
    hall = _Hall(clip, inquiry, reader=reader)

    async def hear(one: Seat, name: str) -> Opinion:
        opinion = await hall.ask(one, protocol(name))
        on_opinion(opinion)
        return opinion

    questions = [hear(one, name) for name in inquiry.protocols for one in seats]
    return Review(clip=clip, opinions=tuple(await asyncio.gather(*questions)))


class _Hall:
    """One clip before its reviewers: decoded once for all that want to see the same of it."""

    def __init__(self, clip: Clip, inquiry: Inquiry, *, reader: MediaReader) -> None:
        self._clip, self._inquiry, self._reader = clip, inquiry, reader
        self._shown: dict[frozenset[Material], asyncio.Task[Exhibit | Failure]] = {}

    async def ask(self, one: Seat, instrument: Protocol[Any, Any]) -> Opinion:
        reviewer, condition = one.reviewer, self._inquiry.condition
        question = Question(
            subject=self._clip.id, instrument=instrument.instrument, condition=condition
        )
        prompt = instrument.prompt(condition.prompt).text
        exhibit = await self._show(reviewer.wants)
        outcome: Reply | Failure
        if isinstance(exhibit, Failure):
            outcome, space = exhibit, None
        else:
            sheet = Sheet(
                key=question.key(reviewer.name),
                instrument=instrument.instrument,
                prompt=prompt,
                exhibits=(exhibit,),
                condition=condition,
            )
            outcome, space = await reviewer.answer(sheet), reviewer.box_space(exhibit)
        return Opinion(
            reviewer=reviewer.name,
            question=question,
            prompt=prompt,
            exhibit=None if isinstance(exhibit, Failure) else exhibit,
            box_space=space,
            outcome=outcome,
            verdict=self._read(outcome, instrument, space),
            cost_usd=_cost(outcome, one.price),
        )

    async def _show(self, wants: frozenset[Material]) -> Exhibit | Failure:
        if wants not in self._shown:
            work = partial(
                show,
                self._clip,
                Path(self._clip.location),
                reader=self._reader,
                condition=self._inquiry.condition,
                wants=wants,
            )
            self._shown[wants] = asyncio.create_task(asyncio.to_thread(work))
        return await self._shown[wants]

    def _read(
        self, outcome: Reply | Failure, instrument: Protocol[Any, Any], space: str | None
    ) -> Verdict | None:
        if isinstance(outcome, Failure) or space is None:
            return None
        video, inquiry = self._clip.facts.video, self._inquiry
        declared = declare_space(space, width=video.width, height=video.height)
        reading = Reading(mode=inquiry.mode, prompt=inquiry.condition.prompt, space=declared)
        verdict: Verdict = instrument.parse(outcome.text, reading)
        return verdict


def _recipe(
    name: str, *, condition: Mapping[str, str], model: str = "coin", **settings: object
) -> EvalRecipe:
    base = {"benchmark": _ONE_CLIP, "protocol": name, "model": model, "condition": [condition]}
    return check_recipe(base | settings)


def _cost(outcome: Reply | Failure, price: Price | None) -> Decimal | None:
    if isinstance(outcome, Failure) or outcome.usage is None or price is None:
        return None
    return price.cost_usd(outcome.usage)
