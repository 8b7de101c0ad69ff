"""Settings of the desk, read from `desk.toml`."""

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, field_validator

from unreel.core.errors import InvalidSettingError
from unreel.core.server_keys import ServerAddress
from unreel.core.small_documents import read_toml
from unreel.protocols.protocol import Mode
from unreel.recipes.check import check_sections
from unreel.recipes.section import Connections, Count, Deadline, Line, RecipeSection, Text

_MB: Final = 1 << 20
_HELD_UPLOADS: Final = 4
"""Uploads of the largest size that may be under way together."""


class ReviewerSet(RecipeSection):
    """Named choice of models and questions on the page."""

    name: Line
    models: tuple[Text, ...] = ()
    """Names as `--model` takes them; none for the findings in the file alone."""
    protocols: tuple[Text, ...] = ()
    """`trace` and `realism` unless set, or the protocols of a trained checkpoint."""
    condition: dict[str, Text] = Field(default_factory=dict)
    parser: Mode = "lenient"
    recorded: Text | None = None
    prices: Text | None = None
    deadline_s: Deadline | None = None
    box_space: Text | None = None
    records: tuple[Text, ...] = ()
    """Runs of `unreel eval` with the measured accuracy of the models."""


FILE_ONLY: Final = ReviewerSet(name="No model: findings in the file only")


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


class DeskFile(RecipeSection):
    """Content of `desk.toml`; relative paths start at its folder."""

    cases: Text = "desk-cases"
    reviewers: Annotated[tuple[ReviewerSet, ...], Field(min_length=1)] = (FILE_ONLY,)
    roots: tuple[Text, ...] = ()
    """Folders of this machine whose clips the page may take."""
    proxy: ProxySettings | None = None
    signing_key: Text | None = None
    """Private SSH key that signs bundles."""
    retain_days: Count | None = None
    """Age in days at which cases are deleted; never unless set."""
    max_mb: Count = 2048
    """Largest upload in MB."""
    upload_s: Deadline = 600.0
    at_once: Connections = 2
    """Number of cases under work at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskSettings:
    """Settings of one desk, with absolute paths."""

    cases: Path
    reviewers: tuple[ReviewerSet, ...] = (FILE_ONLY,)
    roots: tuple[Path, ...] = ()
    proxy: ProxySettings | None = None
    signing_key: Path | None = None
    retain_days: int | None = None
    max_request_bytes: int = 2048 * _MB
    upload_s: float = 600.0
    at_once: int = 2
    trusted: bool = False

    @property
    def max_held_bytes(self) -> int:
        """Return the limit of all uploads under way together; they are held in temporary files."""
        return _HELD_UPLOADS * self.max_request_bytes


def read_desk_settings(path: Path | None, *, cases: Path | None, trusted: bool) -> DeskSettings:
    """Return the settings of the file at `path`, or the defaults; `cases` overrides its folder.

    Raises:
        UnreadableSourceError: The file cannot be read.
        InvalidSettingError: A key is unknown, or a value cannot be used.
    """
    values = {} if path is None else read_toml(path, "desk file")
    file = check_sections(DeskFile, values)
    base = Path() if path is None else path.parent
    names = [each.name for each in file.reviewers]
    if len(set(names)) < len(names):
        setting, problem = "reviewers", "two sets have the same name"
        raise InvalidSettingError(setting, problem, "Give each set its own name")
    return DeskSettings(
        cases=(cases or base / file.cases).resolve(),
        reviewers=tuple(_resolve_paths(each, base) for each in file.reviewers),
        roots=tuple(_require_folder(base / root) for root in file.roots),
        proxy=file.proxy,
        signing_key=None if file.signing_key is None else (base / file.signing_key).resolve(),
        retain_days=file.retain_days,
        max_request_bytes=file.max_mb * _MB,
        upload_s=file.upload_s,
        at_once=file.at_once,
        trusted=trusted,
    )


def require_proxy(settings: DeskSettings, host: str) -> None:
    """Refuse to listen beyond this machine without a proxy that signs people in.

    Raises:
        InvalidSettingError: It would.
    """
    is_loopback = ServerAddress(scheme="http", host=host, port=1).is_loopback
    if settings.proxy is None and not is_loopback:
        setting, problem = "--host", f"everybody who reaches {host} could open your cases"
        remedy = "Use --host 127.0.0.1, or set [proxy] address and user_header in desk.toml"
        raise InvalidSettingError(setting, problem, remedy)


def _resolve_paths(chosen: ReviewerSet, base: Path) -> ReviewerSet:
    paths = {name: getattr(chosen, name) for name in ("recorded", "prices")}
    resolved = {name: str(base / path) for name, path in paths.items() if path is not None}
    return chosen.model_copy(update=resolved)


def _require_folder(root: Path) -> Path:
    if not root.is_dir():
        setting, problem = "roots", f"{root} is no folder"
        raise InvalidSettingError(setting, problem, "Name a folder that exists")
    return root.resolve()
