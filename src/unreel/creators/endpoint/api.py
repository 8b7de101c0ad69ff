"""API of a service that makes clips: requests, job states and the URL of the clip."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field, JsonValue, field_validator

from unreel.core.errors import InvalidSettingError
from unreel.recipes.section import MOST_PARTS, RecipeSection, Text

_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_RESERVED: Final = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "cookie"}
)
Words = Annotated[tuple[Text, ...], Field(max_length=MOST_PARTS)]


class ServiceApi(RecipeSection):
    """API preset of a service. Paths are relative to its URL; `{id}` is the job's id.

    Positions in a reply are keys separated by dots, with numbers for list items. In the body,
    `{text}`, `{image}`, `{seconds}`, `{size}`, `{width}`, `{height}`, `{seed}` and `{model}` are
    replaced by the values of a brief; a key without a value is omitted.
    """

    submit: Text = "jobs"
    """Where a job is posted."""
    body: dict[str, JsonValue] = Field(
        default={
            "model": "{model}",
            "prompt": "{text}",
            "image": "{image}",
            "seconds": "{seconds}",
            "width": "{width}",
            "height": "{height}",
            "seed": "{seed}",
        }
    )
    id: Text = "id"
    """Position of the job's id in the reply to a submission."""
    status: Text = "jobs/{id}"
    """Where a job is looked after."""
    state: Text = "status"
    """Position of the job's state in that reply."""
    done: Words = ("succeeded", "completed", "done")
    failed: Words = ("failed", "canceled", "cancelled", "error", "expired")
    error: Text = "error"
    """Position of the reason of a failure."""
    result: Text = "url"
    """Position of the clip's URL."""
    content: Text = ""
    """Path of the clip at the service itself, if it reports no URL; requested with the key."""
    version: Text = "model"
    """Position of the model's version."""
    sizes: Words = ()
    """The sizes that it makes, such as `1280x720`; any where none is named."""
    seconds: Annotated[tuple[int | str, ...], Field(max_length=MOST_PARTS)] = ()
    """The lengths that it makes, as it wants them written; any whole one where none is named."""
    key_header: Text = "Authorization"
    key_prefix: Text = "Bearer "

    @field_validator("key_header")
    @classmethod
    def _header_is_one(cls, name: str) -> str:
        if not _HEADER.fullmatch(name) or name.lower() in _RESERVED:
            setting, problem = "key_header", f"{name!a} cannot carry a key"
            raise InvalidSettingError(setting, problem, "Write Authorization or x-api-key")
        return name

    @field_validator("key_prefix")
    @classmethod
    def _prefix_is_plain(cls, prefix: str) -> str:
        if not prefix.isascii() or not prefix.isprintable():
            setting, problem = "key_prefix", f"{prefix!a} fits in no header"
            raise InvalidSettingError(setting, problem, 'Write "Bearer " or ""')
        return prefix

    @field_validator("sizes")
    @classmethod
    def _sizes_are_sizes(cls, sizes: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [size for size in sizes if not re.fullmatch(r"[1-9]\d{0,4}x[1-9]\d{0,4}", size)]
        if wrong:
            setting, problem = "sizes", f"{wrong[0]!a} is no size"
            raise InvalidSettingError(setting, problem, "Write width x height, such as 1280x720")
        return sizes

    @field_validator("seconds")
    @classmethod
    def _seconds_are_whole(cls, seconds: tuple[int | str, ...]) -> tuple[int | str, ...]:
        wrong = [each for each in seconds if not re.fullmatch(r"[1-9]\d{0,3}", str(each))]
        if wrong:
            setting, problem = "seconds", f"{wrong[0]!a} is no number of seconds"
            raise InvalidSettingError(setting, problem, "Write whole seconds, such as 4 or '4'")
        return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPreset:
    """A known service API, and its home URL if it has one; the key of the home is sent only there."""

    api: ServiceApi
    home: str = ""
    home_key: str = ""
    """Variable of the key that the home is sent."""


OPENAI: Final = ServiceApi(
    submit="videos",
    body={
        "model": "{model}",
        "prompt": "{text}",
        "seconds": "{seconds}",
        "size": "{size}",
        "input_reference": {"image_url": "{image}"},
    },
    status="videos/{id}",
    done=("completed",),
    failed=("failed",),
    error="error.message",
    content="videos/{id}/content",
    sizes=("1280x720", "720x1280"),
    seconds=("4", "8", "12"),
)
SHAPES: Final[Mapping[str, ApiPreset]] = {
    "jobs": ApiPreset(api=ServiceApi()),
    "openai": ApiPreset(api=OPENAI, home="https://api.openai.com/v1", home_key="OPENAI_API_KEY"),
}
"""`openai` follows the reference of the Videos API: POST /videos, GET /videos/{id} and .../content."""
