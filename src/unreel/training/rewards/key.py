"""All that an answer is marked by, as one value that travels as JSON."""

from dataclasses import dataclass
from typing import Any, Final

from unreel.benchmarks.truth import read_truths, write_truths
from unreel.core.small_documents import parse_json
from unreel.protocols.protocol import ParserOptions, get_protocol
from unreel.protocols.space import BoxSpace
from unreel.recipes.check import check_sections
from unreel.recipes.section import Count, RecipeSection, Text
from unreel.training.rewards.reward import NOTHING, AnswerReward, compute_reward
from unreel.training.rewards.terms import RewardTerms

LONGEST: Final = 20_000
"""Maximum number of characters. A longer answer gets no reward, because parsing it would delay the
training.
"""


class _BoxSpaceField(RecipeSection):
    name: Text
    width: Count
    height: Count


class _WrittenKey(RecipeSection):
    protocol: Text
    prompt: Text
    space: _BoxSpaceField | None
    truths: str
    terms: RewardTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKey:
    """Key that scores answers to one question, complete in itself."""

    protocol: str
    prompt: str
    """Name of the variant that was asked."""
    space: BoxSpace | None
    """Coordinates of the boxes, for a protocol that asks for one."""
    truths: tuple[Any, ...]
    terms: RewardTerms

    def mark(self, text: str) -> AnswerReward:
        """Return the reward of `text`, parsed by the protocol's strict parser; no text raises."""
        if len(text) > LONGEST:
            return NOTHING
        reading = ParserOptions(mode="strict", prompt=self.prompt, space=self.space)
        verdict = get_protocol(self.protocol).parse(text, reading)
        return compute_reward(verdict, self.truths, self.terms, prompt=self.prompt)

    def write(self) -> str:
        """Return the key as JSON."""
        space = self.space
        return _WrittenKey(
            protocol=self.protocol,
            prompt=self.prompt,
            space=_BoxSpaceField(name=space.name, width=space.width, height=space.height)
            if space
            else None,
            truths=write_truths(self.protocol, self.truths),
            terms=self.terms,
        ).model_dump_json()


def read_key(text: str) -> AnswerKey:
    """Read the output of `AnswerKey.write`.

    Raises:
        InvalidSettingError: It is something else.
    """
    written = check_sections(_WrittenKey, parse_json(text.encode()))
    space = written.space
    return AnswerKey(
        protocol=written.protocol,
        prompt=written.prompt,
        space=BoxSpace(space.name, space.width, space.height) if space else None,
        truths=read_truths(written.protocol, written.truths),
        terms=written.terms,
    )
