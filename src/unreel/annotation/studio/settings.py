"""Settings and secrets of a local Label Studio, and the file by which other commands find it.

Sign-up needs the organisation's link, telemetry is off, requests to the local network are blocked,
and files are served only from the folder of clip copies.
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.output_files import OutputDirectory
from unreel.core.settings import EnvironmentSettings, read_secret_variable

TOKEN = "LABEL_STUDIO_API_KEY"  # noqa: S105  the variable's name
"""Environment variable with the token of another server; Label Studio's own SDK reads it too."""
LEAD = "unreel@localhost"
"""Login of the account that the commands use."""
CLIPS = "media/clips"
"""Folder of clip copies below the state folder; Label Studio serves subfolders of its root, not the root itself."""
_CONNECTION = "studio.json"
_SECRETS = "secrets.json"
_NAMES = "names.json"
_UP = "Start one with `unreel annotate up`, or name one with --url"
_SAFE: Mapping[str, str] = {
    "LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK": "true",
    "LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED": "true",
    "SSRF_PROTECTION_ENABLED": "true",
    "COLLECT_ANALYTICS": "false",
    "LATEST_VERSION_CHECK": "false",
    "SENTRY_DSN": "",
    "FRONTEND_SENTRY_DSN": "",
    "FEATURE_FLAGS_OFFLINE": "true",
    "DEBUG": "false",
    "LOG_LEVEL": "WARNING",
    "CORS_ALLOW_ALL_ORIGINS": "false",
    "PYTHONSAFEPATH": "1",
    "PYTHONUNBUFFERED": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelStudioServerSettings:
    """Settings of one Label Studio server: address, database and data directory."""

    program: Path
    folder: Path
    """State folder of the server: secrets, data, log, and the clip copies that it serves."""
    host: str = "127.0.0.1"
    port: int = 8080
    database: str = field(default="", repr=False)
    """URL of a separate PostgreSQL database, with the password; "" for an SQLite file."""

    @property
    def address(self) -> str:
        """Return the URL of the Label Studio server for clients on the same machine."""
        host = "127.0.0.1" if self.host == "0.0.0.0" else self.host  # noqa: S104  compared, not bound
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelStudioConnection:
    """URL and token of a running Label Studio server, and the folder of the clips that it serves."""

    address: str
    token: str = field(repr=False)
    media: Path | None = None
    """Folder of the clip copies that the server serves; `None` for a server given by its URL."""


@dataclass(frozen=True, slots=True)
class LabelStudioSecrets:
    """Password and token of the Label Studio account that the commands use."""

    password: str = field(repr=False)
    token: str = field(repr=False)


def get_studio_state_folder(settings: EnvironmentSettings, named: Path | None = None) -> Path:
    """Return the folder with the state of Label Studio: `named`, or the default below unreel's state."""
    return (named or settings.state_folder / "studio").absolute()


def load_studio_secrets(folder: Path) -> LabelStudioSecrets:
    """Read the secrets of the Label Studio server in `folder`; create them (mode 0600) if missing."""
    stored = _read_json_object(folder, _SECRETS)
    if stored is None:
        # Before its first start, Label Studio accepts only a token of 40 hexadecimal digits.
        stored = {"password": secrets.token_urlsafe(24), "token": secrets.token_hex(20)}
        OutputDirectory(folder).write(_SECRETS, json.dumps(stored).encode())
    try:
        return LabelStudioSecrets(str(stored["password"]), str(stored["token"]))
    except KeyError as error:
        raise UnreadableSourceError(str(folder / _SECRETS), f"it has no {error}", _UP) from None


def read_copy_name_key(folder: Path) -> bytes:
    """Read the secret key from which file names of browser copies are derived; create it if missing.

    If the key is lost, copies are made again under new names; existing tasks keep their names in
    the ledger.
    """
    stored = _read_json_object(folder, _NAMES)
    if stored is None:
        stored = {"key": secrets.token_hex(32)}
        OutputDirectory(folder).write(_NAMES, json.dumps(stored).encode())
    return str(stored.get("key", "")).encode()


def build_studio_environment(
    settings: LabelStudioServerSettings, studio_secrets: LabelStudioSecrets
) -> dict[str, str]:
    """Return Label Studio's environment variables, with the secrets that arguments would reveal."""
    return {
        **_SAFE,
        "LABEL_STUDIO_BASE_DATA_DIR": str(settings.folder / "data"),
        "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT": str((settings.folder / CLIPS).parent),
        "LABEL_STUDIO_HOST": "",
        "LABEL_STUDIO_USERNAME": LEAD,
        "LABEL_STUDIO_PASSWORD": studio_secrets.password,
        "LABEL_STUDIO_USER_TOKEN": studio_secrets.token,
        **build_studio_database_variables(settings.database),
    }


def build_studio_database_variables(address: str) -> dict[str, str]:
    """Return the environment variables with which Label Studio finds its database.

    `address` is the URL of a PostgreSQL database; "" gives an SQLite file.
    """
    if not address:
        return {"DJANGO_DB": "sqlite"}
    parts = urlsplit(address)
    name = parts.path.lstrip("/")
    if parts.scheme.partition("+")[0] not in {"postgresql", "postgres"} or not name:
        raise InvalidSettingError(
            "--database",
            "Label Studio keeps its rows in PostgreSQL, or in a file",
            "Give postgresql://USER:PASSWORD@HOST:PORT/DATABASE, or leave it out",
        )
    return {
        "DJANGO_DB": "default",
        "POSTGRE_NAME": unquote(name),
        "POSTGRE_USER": unquote(parts.username or ""),
        "POSTGRE_PASSWORD": unquote(parts.password or ""),
        "POSTGRE_HOST": parts.hostname or "127.0.0.1",
        "POSTGRE_PORT": str(parts.port or 5432),
    }


def build_studio_database_url(ledger: str) -> str:
    """Return the URL of Label Studio's database beside the ledger's; "" if the ledger is a file."""
    parts = urlsplit(ledger)
    if parts.scheme.partition("+")[0] not in {"postgresql", "postgres"}:
        return ""
    return parts._replace(path=f"{parts.path}_studio", scheme="postgresql").geturl()


def store_studio_connection(folder: Path, address: str) -> None:
    """Store the URL of the running Label Studio server in `folder`, so that other commands find it."""
    document = {"address": address, "token_file": _SECRETS, "media": CLIPS}
    OutputDirectory(folder).write(_CONNECTION, json.dumps(document, indent=2).encode())


def delete_studio_connection(folder: Path) -> None:
    """Delete the stored URL of a Label Studio server that has stopped."""
    OutputDirectory(folder).remove(_CONNECTION)


def find_studio_connection(folder: Path, *, url: str | None = None) -> LabelStudioConnection:
    """Return URL and token of Label Studio: the server at `url`, or the one started from `folder`.

    The token for `url` comes from the environment.
    """
    if url:
        if (token := read_secret_variable(TOKEN)) is None:
            raise InvalidSettingError(
                TOKEN,
                f"not set, and {url} requires a token",
                f"Run `export {TOKEN}=...` with a token of its Account & Settings page",
            )
        return LabelStudioConnection(address=url.rstrip("/"), token=token)
    info = _read_json_object(folder, _CONNECTION)
    if info is None:
        raise InvalidSettingError("--url", f"no Label Studio was started from {folder}", _UP)
    own = load_studio_secrets(folder)
    media = folder / str(info.get("media", CLIPS))
    return LabelStudioConnection(address=str(info.get("address", "")), token=own.token, media=media)


def _read_json_object(folder: Path, name: str) -> dict[str, object] | None:
    try:
        with OutputDirectory(folder).read(name) as file:
            document = json.loads(file.read(1 << 20))
    except FileNotFoundError:
        return None
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise UnreadableSourceError(
            str(folder / name),
            "it is no JSON object",
            "Take it away and start Label Studio again with `unreel annotate up`",
        )
    return document
