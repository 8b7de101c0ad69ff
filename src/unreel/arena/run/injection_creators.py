"""Creators that edit real clips: `inject` adds a known trace, `encoded` only re-encodes.

`encoded` is the control of `inject`.
"""

from decimal import Decimal
from typing import Annotated, ClassVar

from pydantic import Field, TypeAdapter, field_validator

from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.core.trace import Category, Trace
from unreel.creators.contract import (
    ClipClass,
    Creator,
    CreatorEnvironment,
    CreatorInput,
    CreatorKeys,
    GeneratedClip,
    Given,
)
from unreel.creators.edited_clips import ClipEditingCreator, ClipEditRequest
from unreel.curation.inject.clip_injection import inject_trace_into_clip, write_clean_twin
from unreel.curation.recipe import CATEGORIES
from unreel.recipes.validation import MAX_PARTS

_TRACES = TypeAdapter(tuple[Trace, ...])
_SEED_DIGITS = 8


class InjectCreatorKeys(CreatorKeys):
    """Recipe keys of a creator with `kind = "inject"`, which adds one trace to each real clip."""

    categories: Annotated[tuple[Category, ...], Field(min_length=1, max_length=MAX_PARTS)] = (
        CATEGORIES
    )
    """Categories of traces; in a random order for each scene, the first that its clip allows is injected."""
    strength: Annotated[float, Field(gt=0, le=1)] = 0.7
    """Visibility of the trace; 1 is obvious."""

    @field_validator("categories")
    @classmethod
    def _can_be_injected(cls, categories: tuple[Category, ...]) -> tuple[Category, ...]:
        if Category.OTHER in categories:
            raise InvalidSettingError(
                "categories", "nothing is injected as 'other'", f"Known: {', '.join(CATEGORIES)}"
            )
        return tuple(sorted(set(categories)))

    @property
    def given(self) -> Given:
        return "source"

    @property
    def usual(self) -> tuple[CreatorInput, ...]:
        return (CreatorInput.IMAGE,)

    def label(self, title: str) -> str:  # noqa: ARG002  what goes wrong tells more than a title
        return self.categories[0].value if len(self.categories) == 1 else "traces"

    def open(self, name: str, environment: CreatorEnvironment) -> Creator:
        return ClipEditingCreator(name, self._inject, side=self.side, environment=environment)

    def _inject(self, request: ClipEditRequest) -> GeneratedClip | Failure:
        """Return the real clip with one injected trace, and the ground truth of that trace."""
        draw = digest(str(request.brief.seed), request.brief.id)
        reasons = []
        for category in sorted(self.categories, key=lambda c: digest(c.value, draw)):
            trace = inject_trace_into_clip(
                request.source,
                reader=request.reader,
                category=category,
                seed=int(draw[:_SEED_DIGITS], 16),
                into=request.into,
                strength=self.strength,
            )
            if isinstance(trace, Failure):
                return trace
            if isinstance(trace, Trace):
                return GeneratedClip(
                    file=request.into,
                    model="unreel inject",
                    parameters={"category": category.value, "strength": self.strength},
                    cost_usd=Decimal(0),
                    traces=_TRACES.dump_json((trace,)).decode(),
                )
            reasons.append(str(trace))
        return Failure(FailureReason.UNFIT, reasons[0])


class EncodedControlKeys(CreatorKeys):
    """Recipe keys of a creator with `kind = "encoded"`, which re-encodes real clips like `inject`.

    The control of `inject`, to measure the effect of the encoding alone.
    """

    side: ClassVar[ClipClass] = ClipClass.CONTROL

    @property
    def usual(self) -> tuple[CreatorInput, ...]:
        return (CreatorInput.IMAGE,)

    def label(self, title: str) -> str:  # noqa: ARG002  there is one way
        return "as-injected"

    def open(self, name: str, environment: CreatorEnvironment) -> Creator:
        return ClipEditingCreator(name, self._encode, side=self.side, environment=environment)

    def _encode(self, request: ClipEditRequest) -> GeneratedClip | Failure:
        """Write the real clip without a trace, encoded in the same way as injected clips."""
        failure = write_clean_twin(request.source, reader=request.reader, into=request.into)
        return failure or GeneratedClip(
            file=request.into, model="unreel encode", parameters={}, cost_usd=Decimal(0)
        )
