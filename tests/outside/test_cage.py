"""Programs that attack from inside their cage: nothing outside changes, for root and for another user."""

import contextlib
import ctypes
import fcntl
import json
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outside import attacks
from reviewers.test_outside import asked
from unreel.core.errors import InvalidSettingError, MachineError
from unreel.core.failure import Failure, FailureReason
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.external.program_sandbox import (
    build_bubblewrap_command,
    build_sandboxed_command,
    find_program_readable_paths,
    find_program_sandbox_problem,
    open_syscall_filter,
    run_sandboxed_program,
)

MARK = "b7c1-never-outside"
NOBODY = 65534
GET_FLAGS = 0x80086601
SECRETS = (
    "FALSVC",
    "DATABASE_URL",
    "GITHUB_PAT",
    "OPENAI_CUSTOM_HEADERS",
    "HTTPS_PROXY",
    "AWS_PROFILE",
)
needs_bubblewrap = pytest.mark.skipif(
    bool(find_program_sandbox_problem()[0]), reason=find_program_sandbox_problem()[0]
)


class Yard:
    """Files, sockets and a process outside the cage, all of the user who runs the program."""

    def __init__(self, base: Path, user: int) -> None:
        self.program = base / "own" / "program" / "attacks.py"
        self.outside = base / "outside"
        self.clip = base / "shown" / "clip.mp4"
        self.scratch = base / "shown" / "scratch"
        for folder in (self.program.parent, self.outside, self.scratch):
            folder.mkdir(parents=True)
        shutil.copy(attacks.__file__, self.program)
        (base / "own" / "beside").write_text(MARK)
        self.clip.write_bytes(b"clip")
        for name in ("secret", "open", "removable", "marked"):
            (self.outside / name).write_text(MARK)
            (self.outside / name).chmod(0o600 if name == "secret" else 0o666)
        with contextlib.suppress(OSError):
            os.setxattr(self.outside / "marked", "user.kept", b"1")
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._ears = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
        self._ears += [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
        self._ears[0].bind(("127.0.0.1", 0))
        self._ears[1].bind(str(self.outside / "ear"))
        (self.outside / "ear").chmod(0o777)
        self._ears[2].bind(f"\0{base.name}")
        self._queue = ctypes.CDLL(None).msgget(os.getpid(), 0o1666)
        for path in (base, *base.rglob("*")):
            os.chown(path, user, user)
        self._victim = subprocess.Popen(
            ["unreel-victim", "300"], executable="/bin/sleep", user=user, env={"KEY": MARK}
        )
        self.user = user
        self._files_before = self._files()

    def description(self) -> str:
        """What the attacks are told."""
        named = {
            name: str(self.outside / name) for name in ("secret", "open", "removable", "marked")
        }
        return json.dumps(
            {
                **named,
                "mark": MARK,
                "folder": str(self.outside),
                "tcp": self._tcp.getsockname()[1],
                "udp": self._ears[0].getsockname()[1],
                "socket": str(self.outside / "ear"),
                "abstract": self._ears[2].getsockname()[1:].decode(),
                "queue": os.getpid(),
                "victim": self._victim.pid,
            }
        )

    def changes(self) -> list[str]:
        """What is not as it was."""
        changed = []
        now = self._files()
        changed += [
            name
            for name in now.keys() | self._files_before.keys()
            if now.get(name) != self._files_before.get(name)
        ]
        for ear in (self._tcp, *self._ears):
            ear.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                changed.append(
                    f"socket {ear.recv(100) if ear is not self._tcp else _accept(ear)!r}"
                )
        if self._victim.poll() is not None:
            changed.append("the victim is dead")
        libc = ctypes.CDLL(None)
        if libc.msgrcv(self._queue, ctypes.create_string_buffer(100), 90, 0, 0o4000) >= 0:
            changed.append("message queue")
        return changed

    def close(self) -> None:
        self._victim.kill()
        self._victim.wait()
        ctypes.CDLL(None).msgctl(self._queue, 0, None)
        for ear in (self._tcp, *self._ears):
            ear.close()

    def _files(self) -> dict[str, object]:
        """Content and attributes of every file."""
        return {str(path): self._describe(path) for path in sorted(self.outside.parent.rglob("*"))
                if not path.is_relative_to(self.scratch)}  # fmt: skip

    def _describe(self, path: Path) -> object:
        status = path.lstat()
        said: list[object] = [status.st_mode, status.st_uid, status.st_nlink]
        if path.is_file():
            with path.open("rb") as file:
                with contextlib.suppress(OSError):
                    said.append(fcntl.ioctl(file, GET_FLAGS, bytes(8)))
                said += [file.read(), status.st_mtime_ns]
            said.append({name: os.getxattr(path, name) for name in os.listxattr(path)})
        return said


def _accept(server: socket.socket) -> object:
    connection, address = server.accept()
    connection.close()
    return address


def _users() -> list[Any]:
    other = pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
    return [os.getuid(), pytest.param(NOBODY, marks=other)]


@pytest.fixture(params=_users())
def yard(request: pytest.FixtureRequest) -> Iterator[Yard]:
    with tempfile.TemporaryDirectory(prefix="unreel-yard-") as folder:
        Path(folder).chmod(0o755)
        made = Yard(Path(folder), request.param)
        yield made
        made.close()


def _python_for(user: int) -> str:
    """An interpreter that `user` may run."""
    for python in (sys.executable, f"{sys.base_prefix}/bin/python3", "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            if (
                subprocess.run([python, "-c", ""], user=user, check=False, timeout=60).returncode
                == 0
            ):
                return python
    pytest.skip(f"user {user} can run no Python here")


def run_in_cage(yard: Yard, *words: str) -> "subprocess.CompletedProcess[bytes]":
    """Run Python with `words` in the sandbox, as the yard's user."""
    command = [_python_for(yard.user), *words, "/clip/clip.mp4"]
    bubblewrap = build_bubblewrap_command(find_program_readable_paths(command), clip=yard.clip)
    rules, report = open_syscall_filter(), os.memfd_create("report")
    try:
        return subprocess.run(
            build_sandboxed_command(
                bubblewrap, command, rules=rules, report=report, memory=1 << 32
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=(rules, report),
            user=yard.user,
            cwd=yard.scratch,
            env={"PATH": os.defpath, "HOME": "/tmp"},
            timeout=120,
            check=False,
        )
    finally:
        os.close(rules)
        os.close(report)


def _worked(text: str) -> list[str]:
    """The names of the attacks that worked."""
    (numbers,) = re.findall(r"WORKED([ 0-9]*)", text)
    return [attacks.ATTACKS[int(number)].__name__ for number in numbers.split()]


@needs_bubblewrap
def test_no_attack_has_an_effect_outside(yard: Yard) -> None:
    done = run_in_cage(yard, str(yard.program), yard.description())
    assert done.returncode == 3, done.stderr
    assert _worked(done.stderr.decode()) == []
    assert yard.changes() == []


def test_without_a_cage_the_attacks_work_and_are_noticed(yard: Yard) -> None:
    done = subprocess.run(
        [_python_for(yard.user), str(yard.program), yard.description(), str(yard.clip)],
        capture_output=True,
        user=yard.user,
        cwd=yard.scratch,
        env={"GITHUB_PAT": MARK},
        timeout=120,
        check=False,
    )
    assert len(_worked(done.stderr.decode())) > len(attacks.ATTACKS) / 2
    assert len(yard.changes()) > 5


@needs_bubblewrap
@pytest.mark.parametrize("yard", [os.getuid()], indirect=True)
def test_a_reviewer_runs_its_program_in_a_cage(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, MARK)
    held = os.open(yard.outside / "secret", os.O_RDONLY)
    os.set_inheritable(held, True)  # noqa: FBT003
    command = (sys.executable, str(yard.program), yard.description())
    section = ReviewerSection(model="command:x", command=command, deadline_s=60.0)
    with caplog.at_level(logging.WARNING):
        outcome = asked(section.opener(key_hosts="").open().reviewer)
    os.close(held)
    assert isinstance(outcome, Failure)
    assert outcome.reason is FailureReason.SERVER_ERROR, outcome
    assert _worked(caplog.text) == []
    assert yard.changes() == []


HOGS = {
    "written to a memfd": """
import os
held = os.memfd_create("hog")
for _ in range(1500): os.write(held, bytes(1 << 20))
""",
    "shared and unmapped again": """
import mmap
held = mmap.mmap(-1, 1500 << 20)
for start in range(0, 1500 << 20, 1 << 24):
    held[start : start + (1 << 24)] = bytes(1 << 24)
    held.madvise(mmap.MADV_DONTNEED, start, 1 << 24)
""",
    "private to many processes": """
import os
for _ in range(8):
    if os.fork() == 0: break
held = b"x" * (190 << 20)
""",
}


@needs_bubblewrap
@pytest.mark.parametrize("yard", [os.getuid()], indirect=True)
@pytest.mark.parametrize("kind", HOGS)
def test_all_memory_that_a_program_takes_counts(yard: Yard, kind: str) -> None:
    code = f"{HOGS[kind]}\nimport time\ntime.sleep(60)"
    command = [sys.executable, "-c", code]
    ended = run_sandboxed_program(
        build_bubblewrap_command(find_program_readable_paths(command), clip=yard.clip),
        command,
        name="command:x",
        environment={"PATH": os.defpath},
        seconds=60,
        stop=threading.Event(),
        memory_bytes=400 << 20,
    )
    assert isinstance(ended, Failure), ended
    assert ended.reason is FailureReason.OUT_OF_MEMORY


HONEST = """
import asyncio, json, multiprocessing, pathlib, sqlite3, subprocess, sys, tempfile, threading

def double(n): return 2 * n

async def sleep(): await asyncio.sleep(0.01); return 1

if __name__ == "__main__":
    assert asyncio.run(sleep()) == 1
    with multiprocessing.Pool(2) as pool:
        assert pool.map(double, [1, 2]) == [2, 4]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(double, [3]) == [6]
    thread = threading.Thread(target=double, args=(1,)); thread.start(); thread.join()
    assert subprocess.run(["cat"], input=b"x", capture_output=True).stdout == b"x"
    with tempfile.TemporaryDirectory() as folder:
        sqlite3.connect(pathlib.Path(folder, "db")).execute("create table t (a)")
    import numpy
    pathlib.Path("here.txt").write_text(pathlib.Path(__file__).with_name("weights").read_text())
    assert pathlib.Path(sys.argv[1]).read_text() == "named"
    print(json.dumps({"score": float(numpy.float64(len(pathlib.Path(sys.argv[2]).read_bytes()) > 0))}))
"""


@needs_bubblewrap
def test_an_honest_program_finds_what_it_needs(tmp_path: Path) -> None:
    for name, text in {
        "own/detector.py": HONEST,
        "own/weights": "w",
        "else/named": "named",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    command = (sys.executable, str(tmp_path / "own/detector.py"), str(tmp_path / "else/named"))
    section = ReviewerSection(model="command:x", command=command, deadline_s=60.0)
    outcome = asked(section.opener(key_hosts="").open().reviewer)
    assert not isinstance(outcome, Failure), outcome


@needs_bubblewrap
def test_a_program_that_closes_its_streams_and_sleeps_ends_at_its_deadline(tmp_path: Path) -> None:
    code = "import os, time; os.close(1); os.close(2); time.sleep(60)"
    ended = run_sandboxed_program(
        build_bubblewrap_command(find_program_readable_paths([sys.executable])),
        [sys.executable, "-c", code],
        name="command:x",
        environment={"PATH": os.defpath},
        seconds=2,
        stop=threading.Event(),
    )
    assert isinstance(ended, Failure), ended
    assert ended.reason is FailureReason.OUT_OF_TIME


@pytest.fixture
def without_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    find = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, **rest: None if name == "bwrap" else find(name, **rest)
    )
    find_program_sandbox_problem.cache_clear()
    yield
    find_program_sandbox_problem.cache_clear()


@pytest.mark.usefixtures("without_bubblewrap")
def test_without_bubblewrap_no_program_is_run(tmp_path: Path) -> None:
    (tmp_path / "detector.py").write_text("print('{\"score\": 0.5}')")
    command = (sys.executable, str(tmp_path / "detector.py"))
    section = ReviewerSection(model="command:x", command=command)
    assert section.opener(key_hosts="").name.startswith("command:x")
    with pytest.raises(MachineError, match="apt-get install bubblewrap"):
        section.opener(key_hosts="").open()


@needs_bubblewrap
def test_a_program_beside_files_of_others_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home" / "user"
    (home / "own").mkdir(parents=True)
    for folder in (home, home / "own", home.parent):
        (folder / "detector.py").write_text("")
    monkeypatch.setenv("HOME", str(home))
    for folder in (home, home.parent):
        with pytest.raises(InvalidSettingError, match="folder of its own"):
            find_program_readable_paths(["python3", str(folder / "detector.py")])
    assert home / "own" in find_program_readable_paths(
        ["python3", str(home / "own" / "detector.py")]
    )
    assert find_program_readable_paths(["/usr/bin/env", "x"]) == ()
