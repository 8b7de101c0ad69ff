"""Types of keyword arguments in the Python API, and checks of arguments."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Literal, TypedDict, get_args

from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.question import Condition
from unreel.protocols.protocol import Mode
from unreel.reviewers.contract import Reviewer

Model = str | Reviewer
"""Name as for `--model`, or an object that answers requests."""
Models = Model | Sequence[Model]
Way = Mapping[str, str] | Condition
"""Input settings of questions: a `Condition`, or some of its fields; the others have their defaults."""

_MEMBERS = ("name", "wants", "box_space", "answer", "close")


class ReviewerKeys(TypedDict, total=False):
    """Keyword arguments for reviewers given by name, as in `[reviewer]`; objects do not use them."""

    recorded: str | Path
    """File of the answers that the model `recorded` replays."""
    max_tokens: int
    show: Literal["frames", "video", "clip"]
    family: str
    box_space: str
    deadline_s: float
    max_connections: int
    max_requests: int
    max_cost_usd: Decimal | float
    prices: str | Path
    gpus: float
    command: Sequence[str]
    """Command line of the model `command:NAME`."""
    url: str
    """URL of the model `http:NAME`."""
    score_means: Literal["generated", "real"]
    threshold: float


class RecipeKeys(ReviewerKeys, total=False):
    """Keyword arguments of `evaluate`, named like the keys of a recipe."""

    layout: str
    mapping: Mapping[str, str]
    split: str
    limit: int
    choice: Literal["balanced", "first"]
    seed: int
    parser: Mode


def convert_condition_to_fields(way: Way) -> dict[str, str]:
    """Convert a condition, given as an object or a mapping, to the fields of a recipe."""
    return asdict(way) if isinstance(way, Condition) else dict(way)


def require_reviewer_object(model: object) -> None:
    """Raise if `model` is neither the name of a reviewer nor a reviewer object.

    Raises:
        InvalidSettingError: The object lacks a member of `Reviewer`.
    """
    missing = [member for member in _MEMBERS if not hasattr(model, member)]
    if missing and not isinstance(model, str):
        raise InvalidSettingError(
            "model",
            f"{model!r} is not a Reviewer, missing attributes: {', '.join(missing)}",
            "Give a name such as 'coin', or an object as docs/python.md shows one",
        )


def require_parser_name(parser: Mode) -> Mode:
    """Return `parser` if it is a known parser name.

    Raises:
        UnknownNameError: No parser has that name.
    """
    if parser not in get_args(Mode):
        raise UnknownNameError("parser", parser, get_args(Mode))
    return parser
