"""Description of a video service: its API, URL and key header, price and spend limit."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Final

from pydantic import Field, JsonValue, field_validator

from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.core.server_keys import ServerAddress, parse_server_url
from unreel.recipes.validation import MOST_PARTS, RecipeSection, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoServiceEndpoint:
    """URL of a video service, and the HTTP header with its API key."""

    url: str
    header: str = "Authorization"
    prefix: str = "Bearer "
    key: str | None = field(default=None, repr=False)

    @property
    def server(self) -> ServerAddress:
        """Return the server address of the service."""
        return parse_server_url(self.url)

    def redact(self, text: str) -> str:
        """Return `text` with the API key replaced, because a server may repeat the key."""
        return text.replace(self.key, "[key]") if self.key else text


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipPrice:
    """Price of clips at a video service: per clip and per second."""

    usd_per_clip: Decimal = Decimal(0)
    usd_per_second: Decimal = Decimal(0)

    def cost_usd(self, seconds: int) -> Decimal:
        """Return the price of a clip of `seconds` in USD."""
        return self.usd_per_clip + seconds * self.usd_per_second


class GenerationLimits:
    """Limits on clips and cost of one run. A failed job stays counted, because it may be charged."""

    def __init__(
        self, *, price: ClipPrice | None, max_clips: int | None, max_cost_usd: Decimal | None
    ) -> None:
        self._price = price
        self._max_clips = max_clips
        self._max_cost_usd = max_cost_usd
        self._n_clips = 0
        self._spent_usd = Decimal(0)

    def cost_usd(self, seconds: int) -> Decimal | None:
        """Return the price of a clip of `seconds` in USD; `None` if no price is set."""
        return None if self._price is None else self._price.cost_usd(seconds)

    def reserve(self, seconds: int) -> Failure | None:
        """Count one job and its cost before it is submitted; return a failure if a limit is exceeded."""
        cost = self.cost_usd(seconds) or Decimal(0)
        if self._max_clips is not None and self._n_clips >= self._max_clips:
            detail = f"not asked: {self._n_clips} clips of max_clips={self._max_clips} are ordered"
            return Failure(FailureReason.BUDGET_SPENT, detail)
        if self._max_cost_usd is not None and self._spent_usd + cost > self._max_cost_usd:
            spent = f"{self._spent_usd} of max_cost_usd={self._max_cost_usd}"
            detail = f"not asked: {spent} are spent, and this clip costs {cost}"
            return Failure(FailureReason.BUDGET_SPENT, detail)
        self._n_clips += 1
        self._spent_usd += cost
        return None

    def release(self, seconds: int) -> None:
        """Subtract a job that the service did not accept, and its cost, from the counts."""
        self._n_clips -= 1
        self._spent_usd -= self.cost_usd(seconds) or Decimal(0)


_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_RESERVED: Final = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "cookie"}
)
Words = Annotated[tuple[Text, ...], Field(max_length=MOST_PARTS)]


class VideoServiceApi(RecipeSection):
    """API of a video service. Paths are relative to its URL; `{id}` is the job's id.

    Positions in a reply are keys separated by dots, with numbers for list items. In the body,
    `{text}`, `{image}`, `{seconds}`, `{size}`, `{width}`, `{height}`, `{seed}` and `{model}` are
    replaced by the values of a brief; a key without a value is omitted.
    """

    submit: Text = "jobs"
    """Path to which a job is submitted."""
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
    """Path from which the status of a job is read."""
    state: Text = "status"
    """Position of the job's state in the status reply."""
    done: Words = ("succeeded", "completed", "done")
    failed: Words = ("failed", "canceled", "cancelled", "error", "expired")
    error: Text = "error"
    """Position of the failure's reason in the status reply."""
    result: Text = "url"
    """Position of the clip's URL in the status reply."""
    content: Text = ""
    """Path of the clip at the service itself, requested with the API key; used instead of `result` if set."""
    version: Text = "model"
    """Position of the model's version in the status reply."""
    sizes: Words = ()
    """Supported sizes, such as `1280x720`; every size if empty."""
    seconds: Annotated[tuple[int | str, ...], Field(max_length=MOST_PARTS)] = ()
    """Supported lengths in seconds, as the number or text that the service expects; every whole number if empty."""
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
        wrong = [value for value in seconds if not re.fullmatch(r"[1-9]\d{0,3}", str(value))]
        if wrong:
            setting, problem = "seconds", f"{wrong[0]!a} is no number of seconds"
            raise InvalidSettingError(setting, problem, "Write whole seconds, such as 4 or '4'")
        return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoServiceApiPreset:
    """Known service API, with its official URL if it has one; that URL's key is sent only there."""

    api: VideoServiceApi
    home: str = ""
    home_key: str = ""
    """Environment variable of the API key for the official URL."""


OPENAI: Final = VideoServiceApi(
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
SHAPES: Final[Mapping[str, VideoServiceApiPreset]] = {
    "jobs": VideoServiceApiPreset(api=VideoServiceApi()),
    "openai": VideoServiceApiPreset(
        api=OPENAI, home="https://api.openai.com/v1", home_key="OPENAI_API_KEY"
    ),
}
"""API presets by name. `openai` follows the Videos API: POST /videos, GET /videos/{id} and .../content."""
