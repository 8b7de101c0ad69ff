"""Settings of the desk, read from `desk.toml`."""

from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from unreel.core.errors import InvalidSettingError
from unreel.core.input_files import read_toml_file
from unreel.core.server_keys import ServerAddress, parse_server_url
from unreel.protocols.protocol import Mode
from unreel.recipes.validation import (
    Checked,
    Connections,
    Count,
    Deadline,
    Line,
    RecipeSection,
    Text,
    validate_recipe_sections,
)


class ReviewerSet(RecipeSection):
    """Named set of models and questions that a person can choose on the page."""

    name: Line
    models: tuple[Text, ...] = ()
    """Model names as for `--model`; without models, only the file itself is examined."""
    protocols: tuple[Text, ...] = ()
    """Protocol names; by default `trace` and `realism`, or the protocols of a trained checkpoint."""
    condition: dict[str, Text] = Field(default_factory=dict)
    parser: Mode = "lenient"
    recorded: Path | None = None
    prices: Path | None = None
    deadline_s: Deadline | None = None
    box_space: Text | None = None
    records: tuple[Text, ...] = ()
    """Runs of `unreel eval` with the measured accuracy of the models."""
    passport: Path | None = None
    """Passport of `unreel calibrate`, with the answers of the models about real footage."""


class ProxySettings(RecipeSection):
    """Reverse proxy that signs people in."""

    address: Text
    """IP address from which the proxy connects."""
    user_header: Line
    """Header with the name of the user, such as `X-Auth-Request-Email`."""

    @field_validator("address")
    @classmethod
    def _address_is_an_ip(cls, address: str) -> str:
        return str(ip_address(address))


FILE_ONLY = ReviewerSet(name="No model: findings in the file only")


class DeskSettings(RecipeSection):
    """Content of `desk.toml`; relative paths start at its folder."""

    cases: Path = Path("desk-cases")
    reviewers: Annotated[tuple[ReviewerSet, ...], Field(min_length=1)] = (FILE_ONLY,)
    roots: tuple[Path, ...] = ()
    """Folders of this machine from which the page may add clips."""
    proxy: ProxySettings | None = None
    signing_key: Path | None = None
    """Private SSH key that signs bundles."""
    timestamp_url: Text | None = None
    """Address of a timestamp authority (RFC 3161), which receives the hash of each bundle's manifest."""
    retain_days: Count | None = None
    """Age in days at which cases are moved to the trash; by default they are kept."""
    max_mb: Count = 2048
    """Maximum size of an upload in MB."""
    upload_s: Deadline = 600.0
    at_once: Connections = 2
    """Maximum number of cases under review at the same time."""

    @field_validator("timestamp_url")
    @classmethod
    def _authority_has_an_address(cls, url: str | None) -> str | None:
        if url is not None:
            parse_server_url(url)
        return url

    @property
    def max_request_bytes(self) -> int:
        """Return the maximum size of one upload in bytes."""
        return self.max_mb << 20

    @property
    def max_held_bytes(self) -> int:
        """Return the maximum size of all concurrent uploads together, which are in temporary files."""
        return 4 * self.max_request_bytes


def read_desk_settings(path: Path | None, cases: Path | None) -> DeskSettings:
    """Read the settings of the desk from the file at `path`; the defaults if it is `None`.

    `cases`, if given, replaces the folder of cases.

    Raises:
        UnreadableSourceError: The file cannot be read.
        InvalidSettingError: A key is unknown, or a value is invalid.
    """
    values = {} if path is None else read_toml_file(path, "desk file")
    base = Path() if path is None else path.parent
    file = _resolve_paths(validate_recipe_sections(DeskSettings, values), base)
    if len({each.name for each in file.reviewers}) < len(file.reviewers):
        raise InvalidSettingError(
            "reviewers", "two sets have the same name", "Give each set its own name"
        )
    roots = tuple((base / root).resolve() for root in file.roots)
    for root in roots:
        if not root.is_dir():
            raise InvalidSettingError(
                "roots", f"{root} is not a folder", "Name a folder that exists"
            )
    reviewers = tuple(_resolve_paths(each, base) for each in file.reviewers)
    folder = (cases or file.cases).resolve()
    return file.model_copy(update={"cases": folder, "roots": roots, "reviewers": reviewers})


def _resolve_paths(section: Checked, base: Path) -> Checked:
    paths = {name: base / value for name, value in section if isinstance(value, Path)}
    return section.model_copy(update=paths)


def require_sign_in_proxy(settings: DeskSettings, host: str) -> None:
    """Require a proxy that signs people in, if other machines can reach the server at `host`.

    Raises:
        InvalidSettingError: `host` is not a loopback address, and the settings have no proxy.
    """
    is_loopback = ServerAddress(scheme="http", host=host, port=1).is_loopback
    if settings.proxy is None and not is_loopback:
        raise InvalidSettingError(
            "--host",
            f"everyone who can reach {host} could open your cases",
            "Use --host 127.0.0.1, or set [proxy] address and user_header in desk.toml",
        )
