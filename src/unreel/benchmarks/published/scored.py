"""Read the output of `unreel score --json`: metrics with their creators and conditions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from unreel.core.document import parse_object, read_bytes
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.estimate import Scorecard
from unreel.core.question import Condition
from unreel.protocols.protocol import protocol

_MOST: Final = 64 << 20
_CARD: Final = TypeAdapter(Scorecard)
_CONDITION: Final = TypeAdapter(Condition)
_PROMPT: Final = "paper"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScorecardFile:
    """One scorecard, whose answers it is about, and how the questions were put."""

    reviewer: str
    card: Scorecard
    thinks: bool
    """Whether thoughts were asked for before the answer."""
    variant: str = ""
    """What was done to the clips, as the paper's lines say it: ` + Audio`, ` - Watermark`."""


def read_scored(named: str) -> list[ScorecardFile]:
    """The scorecards of a file, `NAME=FILE` or `FILE`, whose name without ending is the reviewer's then.

    Of people's votes the majorities are taken: each clip counts once.

    Raises:
        UnreadableSourceError: `unreel score --json` did not write it.
    """
    name, _, file = named.rpartition("=") if not Path(named).is_file() else ("", "", named)
    path = Path(file)
    try:
        document = parse_object(read_bytes(path, most=_MOST))
        return list(_scored(document, name or path.stem))
    except (InvalidValueError, ValidationError, KeyError, TypeError) as error:
        problem = f"no scores ({type(error).__name__})"
        remedy = "Give what `unreel score ... --json` prints"
        raise UnreadableSourceError(str(path), problem, remedy) from error


def _scored(document: Mapping[str, Any], reviewer: str) -> Iterator[ScorecardFile]:
    if "scorecard" in document:
        card = _CARD.validate_python(document["scorecard"])
        asked = Condition(prompt=document.get("prompt", _PROMPT))
        yield _under(asked, card, reviewer)
    elif isinstance(document["scores"], dict):
        card = _CARD.validate_python(document["scores"]["majority"])
        yield ScorecardFile(reviewer=reviewer, card=card, thinks=False)
    else:
        for score in document["scores"]:
            card = _CARD.validate_python(score["scorecard"])
            yield _under(_CONDITION.validate_python(score["condition"]), card, reviewer)


def _under(condition: Condition, card: Scorecard, reviewer: str) -> ScorecardFile:
    instrument = protocol(card.instrument.protocol)
    thinks = instrument.prompt(condition.prompt).asks_to_think
    audio = " + Audio" if condition.audio == "on" else ""
    watermark = " - Watermark" if condition.watermark == "removed" else ""
    return ScorecardFile(
        reviewer=reviewer,
        card=card,
        thinks=thinks if condition.thinking == "default" else condition.thinking == "on",
        variant=f"{audio}{watermark}",
    )
