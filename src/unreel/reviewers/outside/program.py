"""Program of a recipe's `command`: arguments, and the files that define it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unreel.core.errors import InvalidSettingError
from unreel.core.identity import clip_id, digest

CLIP_PLACE: Final = "{clip}"
"""Stands for the clip's path; where no argument has it, the path comes last."""


@dataclass(frozen=True, slots=True)
class ExternalProgram:
    """A command whose files are named by their whole paths."""

    command: tuple[str, ...]
    identity: tuple[str, ...]
    """Its words, with the digest of each file in the place of its path."""

    def with_clip(self, clip: Path) -> list[str]:
        """The command for one clip."""
        if any(CLIP_PLACE in word for word in self.command):
            return [word.replace(CLIP_PLACE, str(clip)) for word in self.command]
        return [*self.command, str(clip)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSettings:
    """Settings of a program: timeout per clip, concurrency and confinement."""

    seconds: float = 120.0
    at_once: int = 2
    graphics: bool = False
    """Whether it may open the graphics cards."""
    weak: bool = False
    """Whether it runs without bubblewrap, where it may read all that its user may read."""


def beside(command: Sequence[str], base: Path) -> list[str]:
    """`command` with the whole paths of those words that name files from the folder `base`."""
    return [_whole(word, base, first=number == 0) or word for number, word in enumerate(command)]


def read_program(command: Sequence[str], base: Path) -> ExternalProgram:
    """The program that `command` names; paths are relative to `base`. The first word may be found by PATH.

    Raises:
        InvalidSettingError: There is no command, or it names a program that is not there.
    """
    if not command or not command[0].strip() or any("\0" in word for word in command):
        setting, problem = "command", "names no program"
        raise InvalidSettingError(setting, problem, 'Write command = ["python", "detector.py"]')
    words = beside(command, base)
    if "/" in command[0] and not _is_file(Path(words[0])):
        setting, problem = "command", f"there is no program at {words[0]!a}"
        raise InvalidSettingError(setting, problem, "Name a file that can be run")
    files = [_whole(word, base, first=number == 0) for number, word in enumerate(words)]
    identity = [
        digest("file", clip_id(Path(file))) if file else word
        for word, file in zip(words, files, strict=True)
    ]
    return ExternalProgram(tuple(words), tuple(identity))


def _whole(word: str, base: Path, *, first: bool) -> str | None:
    """The path of the file that `word` names; `None` where it names none, or is looked for by PATH."""
    if CLIP_PLACE in word or (first and "/" not in word):
        return None
    file = base / Path(word).expanduser()
    return str(file.absolute()) if _is_file(file) else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
