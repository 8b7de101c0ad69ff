"""Locations that are never overwritten, because they may contain a user's work."""

from pathlib import Path

from unreel.core.errors import InvalidSettingError


def require_free(file: Path, setting: str) -> None:
    """Refuse a file that is there already.

    Raises:
        InvalidSettingError: It is there, be it a link that leads nowhere.
    """
    if file.exists() or file.is_symlink():
        problem = f"{file} is there already"
        raise InvalidSettingError(setting, problem, "Name another one, or take it away first")


def require_empty(folder: Path, setting: str) -> None:
    """Refuse a folder that holds something, or that is none of its own.

    Raises:
        InvalidSettingError: It holds something, or is a file or a link.
    """
    if folder.is_symlink() or not folder.is_dir() or any(folder.iterdir()):
        require_free(folder, setting)
