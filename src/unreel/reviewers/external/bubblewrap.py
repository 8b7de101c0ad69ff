"""File system of a program in a bubblewrap sandbox, and a check that bubblewrap works here."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from unreel.core.errors import InvalidSettingError, MachineError

CLIP_FOLDER = Path("/clip")
"""Folder of the clip inside the sandbox."""
SCRATCH = "/tmp"  # noqa: S108  a folder of the program's own, in memory
_SCRATCH_BYTES = 1 << 30
_SHARED_BYTES = 1 << 29
_PROBE_S = 20.0
_SYSTEM = tuple(map(Path, ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/sbin")))
_OF_SYSTEM = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
_NOBODYS = tuple(map(Path, ("/tmp", "/var/tmp", "/dev/shm")))  # noqa: S108  compared
_OF_MACHINE = tuple(map(Path, ("/dev", "/etc", "/proc", "/run", "/sys")))
_GRAPHICS = ("nvidia*", "dri", "kfd")
_SHEBANG_BYTES = 256


def require_program_sandbox() -> None:
    """Raise `MachineError` if bubblewrap is missing or the kernel does not let it work."""
    if problem := find_program_sandbox_problem():
        raise MachineError(problem, get_program_sandbox_remedy())


def get_program_sandbox_remedy() -> str:
    """Return how to make the bubblewrap sandbox work on this machine; "" if it works."""
    if not find_program_sandbox_problem():
        return ""
    if shutil.which("bwrap"):
        return "Install bubblewrap 0.7 or later and allow user namespaces"
    return "Install it with `apt-get install bubblewrap`"


@cache
def find_program_sandbox_problem() -> str:
    """Return why this machine cannot run programs in a bubblewrap sandbox; "" if it can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap, which confines programs, is not installed"
    try:
        done = subprocess.run(  # noqa: S603  our own options
            [*build_bubblewrap_command(()), "--", "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"bubblewrap does not work here ({type(error).__name__})"
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return f"bubblewrap does not work here ({last})"
    return ""


def build_bubblewrap_command(
    readable: Sequence[Path], *, clip: Path | None = None, graphics: bool = False
) -> list[str]:
    """Return the command up to the program, which may read system folders, `clip` and `readable`."""
    command = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--unshare-user"]
    command += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    for path in _SYSTEM:
        if path.is_symlink():
            command += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            command += ["--ro-bind", str(path), str(path)]
    for name in _OF_SYSTEM:
        command += ["--ro-bind-try", name, name]
    # The kernel lets root write to settings in /proc without any capability.
    command += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    command += ["--size", str(_SHARED_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108  its own
    command += ["--size", str(_SCRATCH_BYTES), "--tmpfs", SCRATCH]
    if graphics:
        for device in (found for name in _GRAPHICS for found in sorted(Path("/dev").glob(name))):
            command += ["--dev-bind", str(device), str(device)]
        command += ["--ro-bind", "/sys", "/sys"]
    for path in sorted({*readable}):
        command += ["--ro-bind", str(path), str(path)]
    if clip is not None:
        command += ["--ro-bind", str(clip), str(CLIP_FOLDER / clip.name)]
    return [*command, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", SCRATCH]


def find_program_readable_paths(command: Sequence[str]) -> tuple[Path, ...]:
    """Return the paths, besides system folders, that the program of `command` must read.

    These are its interpreter, its own folder and the files among its arguments. Its own folder is
    the folder of the program or, if an interpreter runs it, of the first file argument.

    Raises:
        InvalidSettingError: Its own folder is a home, temporary or system folder.
    """
    program = shutil.which(command[0])
    if program is None:
        return ()
    first = Path(program).absolute()
    chain = [link for link in _iter_program_interpreters(first) if not _is_system_path(link)]
    libraries = [path for link in chain for path in _list_python_folders(link) or [link]]
    files = [Path(word) for word in command[1:] if word.startswith("/") and Path(word).is_file()]
    if "/" in command[0] and not _list_python_folders(first) and not _is_system_path(first):
        files.insert(0, first)
    dirs = [_require_dedicated_folder(files[0])] if files and not _is_system_path(files[0]) else []
    readable = (*libraries, *dirs, *(file for file in files[1:] if not _is_system_path(file)))
    return tuple(dict.fromkeys(readable))


def _require_dedicated_folder(file: Path) -> Path:
    folder = file.parent
    real, home = folder.resolve(), Path.home().resolve()
    if (
        real in (home, *home.parents, *_NOBODYS)
        or any(real.is_relative_to(shared) for shared in _OF_MACHINE)
        or (real / ".ssh").exists()
    ):
        raise InvalidSettingError(
            "command",
            f"the program could read all of {str(folder)!a}",
            f"Move {file.name!a} to a folder of its own",
        )
    return folder


def _iter_program_interpreters(program: Path) -> Iterator[Path]:
    """Yield a program, the targets of its symbolic links, and the interpreter of a script."""
    waiting, seen = [program], set[Path]()
    while waiting:
        path = Path(os.path.abspath(waiting.pop()))  # noqa: PTH100  links are followed one by one
        if path in seen or not path.exists():
            continue
        seen.add(path)
        yield path
        if path.is_symlink():
            waiting.append(path.parent / path.readlink())
        elif (script := _find_script_interpreter(path)) is not None:
            waiting.append(script)
        settings = path.parent.parent / "pyvenv.cfg"
        if settings.is_file():
            named = dict(
                line.split(" = ", 1)
                for line in settings.read_text(encoding="utf-8", errors="replace").splitlines()
                if " = " in line
            )
            waiting.append(Path(named.get("home", path.parent)) / path.name)


def _find_script_interpreter(file: Path) -> Path | None:
    with file.open("rb") as opened:
        line = opened.read(_SHEBANG_BYTES).partition(b"\n")[0]
    if not line.startswith(b"#!"):
        return None
    parts = [part for part in os.fsdecode(line[2:]).split() if not part.startswith("-")]
    if len(parts) > 1 and parts[0].endswith("/env"):
        return Path(shutil.which(parts[1]) or parts[1])
    return Path(parts[0]) if parts else None


def _list_python_folders(program: Path) -> list[Path]:
    """Return the library folders of a Python interpreter or script; empty for another program."""
    prefix = program.parent.parent
    if (prefix / "pyvenv.cfg").is_file() or any((prefix / "lib").glob("python3*")):
        parts = (program.parent, prefix / "pyvenv.cfg", prefix / "lib", prefix / "lib64")
        return [path for path in parts if path.exists()]
    return []


def _is_system_path(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _SYSTEM)
