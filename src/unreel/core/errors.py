"""All errors that unreel raises deliberately.

    UnreelError
    ├── InvalidValueError     (ValueError)   an invalid value
    ├── InvalidSettingError   (ValueError)   an unusable setting
    ├── UnknownNameError      (LookupError)  a name that is missing from its table
    ├── MissingExtraError     (ImportError)  an optional package is not installed
    ├── UnreadableSourceError (OSError)      a user's file or table that cannot be read
    ├── UnsafeTargetError     (RuntimeError) an existing link or file would redirect a write
    ├── MachineError          (OSError)      a machine, store or server error for all items
    │   ├── KeyRejectedError                 a server rejects every available key
    │   └── RequestsRejectedError            a server rejects the first questions alike
    ├── SandboxError          (RuntimeError) untrusted files cannot be opened safely here
    └── MediaError            (RuntimeError) a clip cannot be opened or decoded: has a Failure

Each message ends with the next step for the user. `args` are the constructor's parameters, so
that an error can be sent between processes.
"""

import difflib
import errno
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from unreel.core.failure import Failure, FailureReason

GO_ON = "Run the same command again: committed results are kept"
DISK_FULL_REMEDY = f"Make room. {GO_ON}"
_WRITABLE = f"Make it writable or name another place. {GO_ON}"
_FILES = f"Allow more open files, for example with `ulimit -n 4096`. {GO_ON}"
_REFUSALS = {
    errno.ENOSPC: DISK_FULL_REMEDY,
    errno.EDQUOT: DISK_FULL_REMEDY,
    errno.EROFS: _WRITABLE,
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
}
"""Remedies for system errors that affect all items, by error number: the job ends. Other errors affect one item."""
_OTHERWISE = f"Repair it. {GO_ON}"
_BY_RUST = re.compile(r"\(os error (\d+)\)")
"""Pattern of system errors in messages of Lance and obstore."""
_SOURCE_LINE = re.compile(r", \S+\.rs:\d+:\d+")


def suggest_names(name: str, known: Sequence[str]) -> str:
    """Return advice for an unknown `name`: the nearest of the `known` names, and all of them."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    return f"{hint}Known: {', '.join(known)}"


class UnreelError(Exception):
    """Base class of all errors that unreel raises deliberately."""


class InvalidValueError(UnreelError, ValueError):
    """Error for an invalid value."""


class InvalidSettingError(UnreelError, ValueError):
    """A setting has an unknown name or an unusable value."""

    def __init__(self, setting: str, problem: str, remedy: str) -> None:
        super().__init__(setting, problem, remedy)
        self.setting = setting
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.setting}: {self.problem}. {self.remedy}"


class UnknownNameError(UnreelError, LookupError):
    """Error for a requested name that is missing from its table."""

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        super().__init__(kind, name, known)
        self.kind = kind
        self.name = name
        self.known = known

    def __str__(self) -> str:
        return f"no {self.kind} is named {self.name!r}. {suggest_names(self.name, self.known)}"


class MissingExtraError(UnreelError, ImportError):
    """An optional package is not installed."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(module, extra)
        self.module = module
        self.extra = extra

    def __str__(self) -> str:
        return (
            f"{self.module!r} is not installed. Install it with: pip install 'unreel[{self.extra}]'"
        )


class UnreadableSourceError(UnreelError, OSError):
    """Error for a user's file, directory or table that cannot be read in the expected format."""

    def __init__(self, source: str, problem: str, remedy: str) -> None:
        super().__init__(source, problem, remedy)
        self.source = source
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.source}: {self.problem}. {self.remedy}"


class UnsafeTargetError(UnreelError, RuntimeError):
    """An existing link or file would redirect a write."""

    def __init__(self, target: str, problem: str) -> None:
        super().__init__(target, problem)
        self.target = target
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.target!a} {self.problem}. Take it away, or name another folder"


class MachineError(UnreelError, OSError):
    """Error of the machine, its store or a server that affects every item of a job: disk space, a key."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}. {self.remedy}"


class KeyRejectedError(MachineError):
    """Error for a server that rejects the API key, so that every question to it would fail."""


class RequestsRejectedError(MachineError):
    """Error for a server that rejects the first questions with one message, such as an unknown model."""


class SandboxError(UnreelError, RuntimeError):
    """Error if the sandbox process that opens untrusted files does not work on this machine."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.problem}. Open files that you trust with --trusted"


class MediaError(UnreelError, RuntimeError):
    """Error for a clip that cannot be opened or decoded; `failure` has the reason."""

    def __init__(self, reason: FailureReason, detail: str) -> None:
        super().__init__(reason, detail)
        self.failure = Failure(reason, detail)

    def __str__(self) -> str:
        return str(self.failure)


def raise_if_machine_error(error: BaseException) -> None:
    """Raise a `MachineError` if the machine caused `error`, directly or through its chain of causes.

    Call it before an error becomes the failure of an item: a full disk is not the fault of a clip.
    Raise `MachineError` if the chain has one, the disk is full or read-only, or too many files are
    open.
    """
    for cause in _iter_error_chain(error):
        if isinstance(cause, MachineError):
            raise cause
        remedy = _REFUSALS.get(_get_error_number(cause))
        if remedy is not None:
            raise MachineError(format_library_error(cause), remedy) from error


def require_disk_space(folder: Path, needed_bytes: int) -> None:
    """Raise if the disk of `folder` has less free space than `needed_bytes`.

    Raise `MachineError` if the disk has too little free space.
    """
    stats = os.statvfs(folder)
    free_bytes = stats.f_bavail * stats.f_frsize
    if stats.f_blocks and free_bytes < needed_bytes:  # some file systems report nothing
        raise MachineError(
            f"No space left on device: at {folder} {free_bytes:,} bytes are free and {needed_bytes:,} needed for the next results",
            DISK_FULL_REMEDY,
        )


def raise_if_key_rejected(failure: Failure) -> None:
    """Raise if the reason of `failure` is a rejected key, which makes every other item fail too.

    Raise `KeyRejectedError` if the server rejects the key.
    """
    if failure.reason is FailureReason.KEY_REJECTED:
        raise KeyRejectedError(
            f"the key is rejected, so no question is sent ({failure.detail})",
            f"{failure.reason.remedy} {GO_ON}",
        )


def convert_to_unreel_error(error: Exception) -> UnreelError | None:
    """Return `error` as an `UnreelError` with a remedy; `None` if it is a bug."""
    try:
        raise_if_machine_error(error)
    except MachineError as refusal:
        return refusal
    if isinstance(error, UnreelError):
        return error
    for cause in _iter_error_chain(error):
        if isinstance(cause, UnreelError):
            return cause
        if isinstance(cause, OSError) or _get_error_number(cause):
            return MachineError(format_library_error(cause), _OTHERWISE)
    return None


def format_library_error(error: object) -> str:
    """Return the first line of an error's message, without source locations of its library."""
    line = str(error).strip().partition("\n")[0].removeprefix("External error: ")
    return _SOURCE_LINE.sub("", line).rstrip(". ")


def _iter_error_chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop(0)
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            waiting += cause.exceptions
        waiting += [cause.__cause__, cause.__context__]


def _get_error_number(error: BaseException) -> int:
    if isinstance(error, OSError) and isinstance(error.errno, int):
        return error.errno
    named = _BY_RUST.search(str(error))
    return int(named[1]) if named else 0
