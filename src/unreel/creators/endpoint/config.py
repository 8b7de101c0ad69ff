"""`kind = "endpoint"`: recipe keys of a video service, its API, timeouts and spend limits."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator, model_validator

from unreel.core.errors import InvalidSettingError, suggest_names
from unreel.core.retry import RetryPolicy
from unreel.core.server_keys import (
    ServerAddress,
    find_server_key_variable,
    parse_server_url,
    require_encrypted_connection,
)
from unreel.core.settings import read_secret_variable
from unreel.creators.contract import Creator
from unreel.creators.endpoint.service import (
    SHAPES,
    ClipPrice,
    GenerationLimits,
    VideoServiceApi,
    VideoServiceApiPreset,
    VideoServiceEndpoint,
    Words,
)
from unreel.creators.kind import CreatorEnvironment, CreatorKeys
from unreel.recipes.validation import (
    Connections,
    Count,
    Deadline,
    RecipeNumberUnit,
    Text,
    validate_recipe_sections,
)

_MIB = 1 << 20
Dollars = Annotated[Decimal, Field(ge=0, le=10**6), RecipeNumberUnit("US dollars")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceApiKeyVariable:
    """Server of a service, and the environment variable of its API key. It never contains the key."""

    server: ServerAddress
    variable: str | None
    needs_key: bool
    """Whether the service requires a key."""


class EndpointCreatorConfig(CreatorKeys):
    """`kind = "endpoint"`: a video service with its API, timeouts and spend limits."""

    besides: ClassVar[frozenset[str]] = frozenset(
        {"url", "download_hosts", "deadline_s", "attempt_s", "poll_s", "max_mb", "max_connections"}
        | {"max_clips", "max_cost_usd", "usd_per_clip", "usd_per_second"}
    )
    at_once: ClassVar[int] = 8

    shape: Text = "jobs"
    """Name of an API preset in `unreel.creators.endpoint.service`: `jobs` or `openai`."""
    url: Text = ""
    """URL of the service; by default the official URL of the preset, if it has one."""
    model: Text = ""
    """Name of the model, as sent to the service; it is omitted from the request if empty."""
    api: dict[str, Any] = Field(default_factory=dict)
    """Changes to the preset: paths, the body, positions in a reply (see `VideoServiceApi`)."""
    download_hosts: Words = ()
    """Hosts from which clips may be downloaded, besides the service's own."""
    deadline_s: Deadline = 1800.0
    """Timeout in seconds of a whole job, from submission to its end; also that of a download from the service."""
    attempt_s: Deadline = 120.0
    """Timeout in seconds of one request."""
    poll_s: Annotated[
        float, Field(gt=0, le=3600, allow_inf_nan=False), RecipeNumberUnit("seconds")
    ] = 10.0
    max_mb: Annotated[int, Field(ge=1, le=16_384), RecipeNumberUnit("MiB")] = 1024
    max_connections: Connections = 16
    max_clips: Count | None = None
    """Maximum number of jobs that one run submits."""
    max_cost_usd: Dollars | None = None
    """Maximum cost of one run in USD; requires a price."""
    usd_per_clip: Dollars | None = None
    usd_per_second: Dollars | None = None

    @field_validator("shape")
    @classmethod
    def _shape_is_known(cls, shape: str) -> str:
        if shape not in SHAPES:
            setting, problem = "shape", f"no shape is named {shape!r}"
            raise InvalidSettingError(setting, problem, suggest_names(shape, list(SHAPES)))
        return shape

    @model_validator(mode="after")
    def _can_be_asked(self) -> "EndpointCreatorConfig":
        self.spoken()
        if not self._address():
            setting, problem = "url", f"the shape {self.shape!r} has no home"
            raise InvalidSettingError(setting, problem, "Write url = 'https://host/v1'")
        parse_server_url(self._address())
        if self.max_cost_usd is not None and self.price is None:
            setting, problem = "max_cost_usd", "the price of a clip is unknown"
            remedy = "Write usd_per_clip or usd_per_second"
            raise InvalidSettingError(setting, problem, remedy)
        if self.attempt_s > self.deadline_s:
            setting, problem = "attempt_s", "longer than deadline_s"
            raise InvalidSettingError(setting, problem, "Write a shorter one")
        return self

    @property
    def price(self) -> ClipPrice | None:
        """Return the price of a clip; `None` if the recipe sets none."""
        if self.usd_per_clip is None and self.usd_per_second is None:
            return None
        zero = Decimal(0)
        return ClipPrice(
            usd_per_clip=self.usd_per_clip or zero, usd_per_second=self.usd_per_second or zero
        )

    def label(self, title: str) -> str:
        return self.model or title

    def identity(self) -> str:
        return f"{self.model} {self.spoken().model_dump_json()}"

    def spoken(self) -> VideoServiceApi:
        """Return the API of the service: the preset with the changes from the recipe."""
        return validate_recipe_sections(VideoServiceApi, self._shape.api.model_dump() | self.api)

    def contact(self, key_hosts: str) -> ServiceApiKeyVariable:
        """Return the server and the environment variable of its API key.

        The variable is the preset's at its official URL, otherwise the one that `key_hosts` assigns.

        Raises:
            InvalidSettingError: The key would be sent unencrypted.
        """
        server = parse_server_url(self._address())
        home = bool(self._shape.home) and server == parse_server_url(self._shape.home)
        variable = self._shape.home_key if home else find_server_key_variable(server, key_hosts)
        if variable is not None:
            require_encrypted_connection(server, variable)
        return ServiceApiKeyVariable(server=server, variable=variable, needs_key=home)

    def way(self, key_hosts: str) -> VideoServiceEndpoint:
        """Return the URL of the service with its API key.

        Raises:
            InvalidSettingError: The key would be sent unencrypted, or the official URL has no key.
        """
        api, contact = self.spoken(), self.contact(key_hosts)
        key = None if contact.variable is None else read_secret_variable(contact.variable)
        if contact.needs_key and not key:
            problem = f"not set, and {contact.server} requires a key"
            remedy = f"Run `export {contact.variable}=...` with your key, or name another url"
            raise InvalidSettingError(str(contact.variable), problem, remedy)
        return VideoServiceEndpoint(
            url=self._address(), header=api.key_header, prefix=api.key_prefix, key=key
        )

    def open(self, name: str, env: CreatorEnvironment) -> Creator:
        from unreel.creators.endpoint.creator import EndpointCreator, VideoServiceLimits

        return EndpointCreator(
            name,
            model=self.model,
            api=self.spoken(),
            way=self.way(env.settings.key_hosts),
            terms=VideoServiceLimits(
                patience=RetryPolicy(deadline_s=self.deadline_s, attempt_s=self.attempt_s),
                poll_s=self.poll_s,
                max_bytes=self.max_mb * _MIB,
                download_hosts=self.download_hosts,
                max_connections=self.max_connections,
            ),
            purse=GenerationLimits(
                price=self.price, max_clips=self.max_clips, max_cost_usd=self.max_cost_usd
            ),
        )

    @property
    def _shape(self) -> VideoServiceApiPreset:
        return SHAPES[self.shape]

    def _address(self) -> str:
        return self.url or self._shape.home
