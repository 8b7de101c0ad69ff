"""Downloads from the Hugging Face hub: the commit of a revision, its files, and checked, resumed copies of them.

`HF_TOKEN`, `HF_HOME`, `HF_ENDPOINT` and `HF_HUB_OFFLINE` work as in `huggingface_hub`, which sends
the requests. Its own download starts a file again after a kill; `download_file` continues it.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO, TYPE_CHECKING, Any, Literal

from unreel.core.errors import (
    InvalidSettingError,
    MachineError,
    UnreadableSourceError,
    raise_if_machine_error,
)
from unreel.core.output_files import OutputDirectory
from unreel.core.registry import needs_extra
from unreel.core.safe_names import require_relative_path

if TYPE_CHECKING:
    import httpx2

RepositoryKind = Literal["dataset", "model"]
PAGES = {"dataset": "https://huggingface.co/datasets/", "model": "https://huggingface.co/"}
"""Address of the page of a repository, without its id."""
FULL_HASH = 40
"""Length of the hash of a commit."""
_CHUNK_BYTES = 1 << 20
_TEMPORARY = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses that a later request may not have."""
_ATTEMPTS = 5
"""Maximum number of consecutive requests for a file that bring no byte."""
_LONGEST_WAIT_S = 60.0
_TRY_AGAIN = "Run the same command again: complete files are kept, and the others continue"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file at a URL with the size and the hash that its copy must have."""

    url: str
    path: str
    """Path in its repository, and below the folder of the download."""
    size: int | None = None
    sha256: str | None = None
    git_sha1: str | None = None
    """Hash of the file as a blob of git; the hub gives it for files without a SHA-256."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubRevision:
    """A repository of the hub at one commit."""

    repository: str
    kind: RepositoryKind
    sha: str
    is_gated: bool
    licence: str | None
    """Licence in the card of the repository; `None` if it names none."""
    files: tuple[RemoteFile, ...]

    @property
    def page(self) -> str:
        """Return the address of the page where the terms are accepted."""
        return f"{PAGES[self.kind]}{self.repository}"


def resolve_revision(
    repository: str, revision: str | None = None, *, kind: RepositoryKind = "dataset"
) -> HubRevision:
    """Return the commit of `revision`, a branch, tag, short or full hash, with its files; default `main`.

    Raises:
        UnreadableSourceError: The hub has no such repository or revision, or gives no access to it.
        MachineError: The hub cannot be reached.
    """
    with needs_extra("hub"):
        from huggingface_hub import HfApi, hf_hub_url
        from huggingface_hub.hf_api import RepoFile
    api = HfApi()
    with _convert_hub_errors(repository, kind):
        if revision and len(revision) < FULL_HASH and set(revision) <= set("0123456789abcdef"):
            commits = api.list_repo_commits(repository, repo_type=kind)
            revision = next(
                (c.commit_id for c in commits if c.commit_id.startswith(revision)), revision
            )
        info = api.repo_info(repository, revision=revision, repo_type=kind)
        entries = api.list_repo_tree(repository, revision=info.sha, repo_type=kind, recursive=True)
        files = tuple(
            RemoteFile(
                url=hf_hub_url(repository, entry.path, repo_type=kind, revision=info.sha),
                path=require_relative_path(entry.path),
                size=entry.size,
                sha256=entry.lfs.sha256 if entry.lfs else None,
                git_sha1=None if entry.lfs else entry.blob_id,
            )
            for entry in entries
            if isinstance(entry, RepoFile)
        )
    card = getattr(info, "card_data", None)
    licence = card.get("license") if card else None
    return HubRevision(
        repository=repository,
        kind=kind,
        sha=str(info.sha),
        is_gated=bool(info.gated),
        licence=", ".join(map(str, licence)) if isinstance(licence, list) else licence,
        files=files,
    )


def download_file(
    file: RemoteFile, output: OutputDirectory, *, on_bytes: Callable[[int], None] = lambda _: None
) -> tuple[int, int]:
    """Write the file to its path below `output`; return the bytes that were received, and those received twice.

    Bytes go to a file `PATH.HASH.part`, which later calls continue and which is renamed after its
    size and hash were checked. If another process downloads the same file, wait for it. A complete
    file is only checked. `on_bytes` receives the change of the number of bytes that are here.

    Raises:
        UnreadableSourceError: The file does not have the stated size or hash, or may not be read.
        MachineError: The server cannot be reached, or the disk is full.
    """
    part = f"{file.path}.{(file.sha256 or file.git_sha1 or 'new')[:12]}.part"
    with _open_locked(output, part) as stream:
        if (size := output.size(file.path)) is not None:
            with output.read(file.path) as present:
                digest = _start_hash(file, present, size)
            source = str(output.root / file.path)
            _require_content(file, size, digest, source, "Delete it to download it again")
            on_bytes(size)
            output.remove(part)
            return 0, 0
        with output.read(part) as present:
            copy = _PartialCopy(file, stream, present, on_bytes)
        try:
            _receive_rest(file, copy)
            try:
                _require_content(
                    file, copy.size, copy.digest, file.url, "Run the same command again"
                )
            except UnreadableSourceError:
                output.remove(part)
                on_bytes(-copy.size)
                raise
            os.fsync(stream.fileno())
            output.move_entry(part, file.path)
        except OSError as error:
            raise_if_machine_error(error)
            raise
    return copy.n_received, copy.n_repeated


class _PartialCopy:
    """The bytes of a file that are here, with their hash, and how many bytes were received."""

    def __init__(
        self,
        file: RemoteFile,
        stream: IO[bytes],
        present: IO[bytes],
        on_bytes: Callable[[int], None],
    ) -> None:
        self._file, self._stream, self._on_bytes = file, stream, on_bytes
        self.size = os.fstat(stream.fileno()).st_size
        self.digest = _start_hash(file, present, self.size)
        self.n_received = self.n_repeated = 0
        on_bytes(self.size)

    def write(self, chunk: bytes) -> None:
        self._stream.write(chunk)
        self._stream.flush()
        self.digest.update(chunk)
        self.size += len(chunk)
        self.n_received += len(chunk)
        self._on_bytes(len(chunk))

    def restart(self) -> None:
        self._on_bytes(-self.size)
        self.n_repeated += self.size
        os.ftruncate(self._stream.fileno(), 0)
        self.size, self.digest = 0, _start_hash(self._file)


def _receive_rest(file: RemoteFile, copy: _PartialCopy) -> None:
    """Request the missing bytes of `file`, again after an error that may pass."""
    n_failures = 0
    while copy.size != file.size:
        size, wait_s = copy.size, 0.5 * 2**n_failures
        try:
            with _request_from(file, size) as (response, offset):
                if offset != size:  # the server ignores the range
                    copy.restart()
                for chunk in response.iter_raw():
                    copy.write(chunk)
            if file.size is None or copy.size >= file.size:
                return
            problem = f"the server ended after {copy.size:,} of {file.size:,} bytes"
        except _TemporaryError as error:
            wait_s, problem = error.wait_s or wait_s, str(error)
        n_failures = 1 if copy.size > size else n_failures + 1
        if n_failures >= _ATTEMPTS:
            raise MachineError(f"{file.path}: {problem}", _TRY_AGAIN)
        time.sleep(min(wait_s, _LONGEST_WAIT_S))


class _TemporaryError(Exception):
    """Error of a request that a later request may not have; the server may name the seconds to wait."""

    def __init__(self, problem: str, wait_s: float = 0.0) -> None:
        super().__init__(problem)
        self.wait_s = wait_s


@contextmanager
def _request_from(file: RemoteFile, size: int) -> "Iterator[tuple[httpx2.Response, int]]":
    """Request the bytes of `file` from `size` on; yield the response and the offset of its first byte."""
    with needs_extra("hub"):
        import httpx2
        from huggingface_hub import constants
        from huggingface_hub.utils._headers import build_hf_headers
        from huggingface_hub.utils._http import get_session, hf_raise_for_status

    # Only the hub receives the token, also after a redirect to another host.
    headers = build_hf_headers() if file.url.startswith(f"{constants.ENDPOINT}/") else {}
    headers["Accept-Encoding"] = "identity"  # a range of a compressed body is no range of the file
    if size:
        headers["Range"] = f"bytes={size}-"
    with _convert_hub_errors(file.path, "dataset"):
        try:
            with get_session().stream(
                "GET", file.url, headers=headers, timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT
            ) as response:
                if response.status_code in _TEMPORARY:
                    wait = response.headers.get("Retry-After", "")
                    problem = f"the server answered status {response.status_code}"
                    raise _TemporaryError(problem, float(wait) if wait.isdecimal() else 0.0)
                if response.is_error:
                    response.read()
                hf_raise_for_status(response)
                yield response, size if response.status_code == HTTPStatus.PARTIAL_CONTENT else 0
        except (httpx2.NetworkError, httpx2.TimeoutException, httpx2.RemoteProtocolError) as error:
            raise _TemporaryError(_describe_connection_error(error)) from error


@contextmanager
def _open_locked(output: OutputDirectory, part: str) -> Iterator[IO[bytes]]:
    """Open `part` for appending with a lock that other processes wait for."""
    while True:
        with output.append(part) as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            # The process that had the lock may have renamed or removed the file.
            if os.fstat(stream.fileno()).st_nlink and output.size(part) is not None:
                yield stream
                return


def _start_hash(file: RemoteFile, present: IO[bytes] | None = None, size: int = 0) -> Any:
    """Return the hash object of `file`, updated with the first `size` bytes of `present`."""
    if file.sha256 or not file.git_sha1:
        digest = hashlib.sha256()
    else:
        digest = hashlib.sha1(f"blob {file.size}\0".encode(), usedforsecurity=False)
    while present is not None and size > 0:
        chunk = present.read(min(size, _CHUNK_BYTES))
        digest.update(chunk)
        size -= len(chunk) or size
    return digest


def _require_content(file: RemoteFile, size: int, digest: Any, source: str, remedy: str) -> None:
    """Raise if the size or the hash of a copy is not the one of `file`."""
    if file.size not in {None, size}:
        problem = f"the file must have {file.size:,} bytes, got {size:,}"
        raise UnreadableSourceError(source, problem, remedy)
    expected = file.sha256 or file.git_sha1
    if expected not in {None, digest.hexdigest()}:
        problem = f"the file must have the hash {expected}, got {digest.hexdigest()}"
        raise UnreadableSourceError(source, problem, remedy)


@contextmanager
def _convert_hub_errors(name: str, kind: RepositoryKind) -> Iterator[None]:
    """Convert an error of `huggingface_hub` about the repository or file `name` into one of unreel."""
    import httpx2
    from huggingface_hub import errors

    try:
        yield
    except errors.OfflineModeIsEnabled as error:
        raise UnreadableSourceError(
            name, "not downloaded, and HF_HUB_OFFLINE is set", "Unset HF_HUB_OFFLINE to download it"
        ) from error
    except errors.GatedRepoError as error:
        raise UnreadableSourceError(
            name,
            "the owner gives access only to accounts that accepted the terms",
            f"Accept them at {_find_page(error, name, kind)}, then set HF_TOKEN to a token of that account",
        ) from error
    except errors.RevisionNotFoundError as error:
        raise UnreadableSourceError(
            name, "the hub has no such revision", "Check the revision"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise UnreadableSourceError(
            name,
            "the hub has no such repository, or no access to it is given",
            f"Check {_find_page(error, name, kind)}, and HF_TOKEN if the repository is private",
        ) from error
    except errors.HFValidationError as error:
        raise InvalidSettingError("repository", str(error), "Write OWNER/NAME") from error
    except errors.HfHubHTTPError as error:
        problem = f"{name}: the hub answered status {error.response.status_code}"
        raise MachineError(problem, _TRY_AGAIN) from error
    except (httpx2.NetworkError, httpx2.TimeoutException, httpx2.RemoteProtocolError) as error:
        problem = f"{name}: {_describe_connection_error(error)}"
        raise MachineError(problem, _TRY_AGAIN) from error


def _describe_connection_error(error: Exception) -> str:
    return f"the connection to the server failed ({str(error) or type(error).__name__})"


def _find_page(error: Any, name: str, kind: RepositoryKind) -> str:
    repository = getattr(error, "repo_id", None) or name
    kind = "model" if getattr(error, "repo_type", None) == "model" else kind
    return f"{PAGES[kind]}{repository}"
