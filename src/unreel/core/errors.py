"""Every error that unreel raises on purpose.

    UnreelError
    ├── InvalidValueError     (ValueError)   a value that cannot be
    ├── InvalidSettingError   (ValueError)   a setting that cannot be used
    ├── UnknownNameError      (LookupError)  a name that no table holds
    ├── MissingExtraError     (ImportError)  an optional package is not installed
    ├── UnreadableSourceError (OSError)      a file or table of the user's that cannot be read
    ├── UnsafeTargetError     (RuntimeError) a file that cannot be written without touching another's
    ├── SandboxError          (RuntimeError) strangers' files cannot be opened safely on this machine
    └── MediaError            (RuntimeError) one clip cannot be opened or decoded: carries a Failure

Each message ends with what to do next. `args` are the constructor's parameters, so that an error
survives the trip between processes.
"""

import difflib
from collections.abc import Sequence

from unreel.core.failure import Failure


class UnreelError(Exception):
    """The root: catch it to catch all that unreel raises on purpose."""


class InvalidValueError(UnreelError, ValueError):
    """A value was refused because it cannot be."""


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
    """A name was asked for that its table does not hold."""

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        super().__init__(kind, name, known)
        self.kind = kind
        self.name = name
        self.known = known

    def __str__(self) -> str:
        close = difflib.get_close_matches(self.name, self.known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        return f"no {self.kind} is named {self.name!r}.{hint} Known: {', '.join(self.known)}"


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
    """A file, folder or table that the user named cannot be read as what it should be."""

    def __init__(self, source: str, problem: str, remedy: str) -> None:
        super().__init__(source, problem, remedy)
        self.source = source
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.source}: {self.problem}. {self.remedy}"


class UnsafeTargetError(UnreelError, RuntimeError):
    """Something lies where a file should be written that would lead the writing elsewhere."""

    def __init__(self, target: str, problem: str) -> None:
        super().__init__(target, problem)
        self.target = target
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.target!a} {self.problem}. Take it away, or name another folder"


class SandboxError(UnreelError, RuntimeError):
    """The confined process that opens strangers' files does not work on this machine."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.problem}. Open files that you trust with --trusted"


class MediaError(UnreelError, RuntimeError):
    """One clip cannot be opened or decoded; `failure` is the row that says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure

    def __str__(self) -> str:
        return str(self.failure)
