"""Config section `[[condition]]` of a recipe: the input settings of questions."""

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from unreel.catalogue.owner_prompts import require_prompt
from unreel.core.question import LATER, Condition, Marks
from unreel.media.messages import MAX_PIXELS
from unreel.media.sampling import parse_sampling
from unreel.protocols.presentation import MIN_PIXELS, shows_frame_times
from unreel.protocols.protocol import Protocol
from unreel.recipes.validation import RecipeSection, Text

PAPER = "paper"


class ConditionSection(RecipeSection):
    """Config section of one condition: sampling, sound, watermark, thinking and prompt of questions.

    A recipe may have several of these sections.
    """

    sampling: Text = "uniform-8"
    audio: Literal["off", "on"] = "off"
    watermark: Literal["kept", "removed"] = "kept"
    thinking: Literal["default", "off", "on"] = "default"
    prompt: Text = PAPER
    max_pixels: Annotated[int, Field(ge=MIN_PIXELS, le=MAX_PIXELS)] | None = None
    marks: Marks = "default"

    @model_serializer(mode="wrap")
    def _written(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return the section without later keys at their defaults, so that older recipes keep their text."""
        fields: dict[str, Any] = dump(self)
        return {name: value for name, value in fields.items() if (name, value) not in LATER.items()}

    def resolved(self, protocol: Protocol[Any, Any]) -> "ConditionSection":
        """Return the condition with the protocol's default sampling and a prompt that fits `thinking`.

        The paper's prompt may ask for reasoning: if thinking is off and no prompt is named, the first
        prompt variant without reasoning is used.
        """
        prompt = self.prompt
        if "prompt" not in self.model_fields_set and self.thinking == "off":
            silent = (name for name, p in protocol.prompts.items() if not p.asks_to_think)
            prompt = next(silent, prompt)
        require_prompt(protocol, prompt)
        is_set = "sampling" in self.model_fields_set
        marked = shows_frame_times(protocol.instrument.protocol, self.marks)
        resolved = {
            "sampling": str(parse_sampling(self.sampling if is_set else protocol.sampling)),
            "prompt": prompt,
            "marks": "default" if marked is protocol.shows_times else self.marks,
        }
        return ConditionSection(**(self.model_dump() | resolved))

    def as_condition(self) -> Condition:
        """Convert a resolved section to a `Condition`."""
        return Condition(**self.model_dump())
