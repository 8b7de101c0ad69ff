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
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from outside import attacks
from reviewers.test_outside import asked
from unreel.core.errors import InvalidSettingError, MachineError
from unreel.core.failure import Failure, FailureReason
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.external import confined_program
from unreel.reviewers.external.bubblewrap import (
    build_bubblewrap_command,
    find_program_readable_paths,
    find_program_sandbox_problem,
)
from unreel.reviewers.external.syscall_filter import NEWEST, build_syscall_filter
from unreel.reviewers.external.watchdog import OVER_LIMIT

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
    bool(find_program_sandbox_problem()), reason=find_program_sandbox_problem()
)


class Yard:
    """Files, sockets and a process outside the cage, all of the user who runs the program."""

    def __init__(self, base: Path, user: int) -> None:
        self.program = base / "own" / "program" / "attacks.py"
        self.outside = base / "outside"
        self.clip = base / "shown" / "clip.mp4"
        self.scratch = base / "shown" / "scratch"
        self.cage = base / "cage"
        for folder in (self.program.parent, self.outside, self.scratch, self.cage):
            folder.mkdir(parents=True)
        shutil.copy(attacks.__file__, self.program)
        for name in ("confined_program.py", "watchdog.py"):
            shutil.copy(Path(confined_program.__file__).with_name(name), self.cage)
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


def run_in_cage(
    yard: Yard, *words: str, memory_mb: int = 4096
) -> "subprocess.CompletedProcess[bytes]":
    """Run Python with `words` in a cage, as the yard's user."""
    python = _python_for(yard.user)
    command = [python, *words, "/clip/clip.mp4"]
    plan = {
        "folder": str(yard.scratch),
        "memory_mb": memory_mb,
        "filter": build_syscall_filter().hex(),
        "bubblewrap": build_bubblewrap_command(
            find_program_readable_paths(command), clip=yard.clip
        ),
        "graphics": False,
    }
    return subprocess.run(
        [
            python,
            "-I",
            "-S",
            "-B",
            str(yard.cage / "confined_program.py"),
            json.dumps(plan),
            *command,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        user=yard.user,
        cwd=yard.scratch,
        env={"PATH": os.defpath, "HOME": "/tmp"},
        timeout=120,
        check=False,
    )


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


WEAK = {
    *("read_a_secret", "list_a_folder", "read_beside_the_program", "read_passwords"),
    *("read_the_disk", "see_other_processes", "fill_the_disk"),
}
"""Attacks that the weak cage does not stop; none of them changes anything outside."""


@pytest.mark.parametrize("yard", [os.getuid()], indirect=True)
@pytest.mark.parametrize("weak", [pytest.param(False, marks=needs_bubblewrap), True])
def test_a_reviewer_runs_its_program_in_a_cage(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, weak: bool
) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, MARK)
    held = os.open(yard.outside / "secret", os.O_RDONLY)
    os.set_inheritable(held, True)  # noqa: FBT003
    command = (sys.executable, str(yard.program), yard.description())
    section = ReviewerSection(model="command:x", command=command, deadline_s=60.0)
    with caplog.at_level(logging.WARNING):
        outcome = asked(section.opener(key_hosts="", weak_cage=weak).open().reviewer)
    os.close(held)
    assert isinstance(outcome, Failure)
    assert outcome.reason is FailureReason.SERVER_ERROR, outcome
    assert {*_worked(caplog.text)} <= (WEAK if weak else set())
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
    done = run_in_cage(yard, "-c", code, memory_mb=400)
    assert done.returncode == OVER_LIMIT, done.stderr


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


@pytest.mark.parametrize("yard", [os.getuid()], indirect=True)
def test_a_stream_that_is_a_socket_is_refused(yard: Yard) -> None:
    ours, theirs = socket.socketpair()
    plan = {"folder": str(yard.scratch), "memory_mb": 1, "filter": "", "bubblewrap": ["bwrap"]}
    with ours, theirs:
        done = subprocess.run(
            [
                sys.executable,
                "-I",
                "-S",
                str(yard.cage / "confined_program.py"),
                json.dumps(plan),
                "true",
            ],
            stdin=theirs,
            capture_output=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == confined_program.NOT_CONFINED, done.stderr
    assert b"socket" in done.stderr


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
def test_without_bubblewrap_no_program_is_run_unless_that_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "detector.py").write_text("print('{\"score\": 0.5}')")
    command = (sys.executable, str(tmp_path / "detector.py"))
    section = ReviewerSection(model="command:x", command=command)
    assert section.opener(key_hosts="").name.startswith("command:x")
    with pytest.raises(MachineError, match=r"apt-get install bubblewrap.*--weak-cage"):
        section.opener(key_hosts="").open()
    outcome = asked(section.opener(key_hosts="", weak_cage=True).open().reviewer)
    assert not isinstance(outcome, Failure), outcome


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


def run_filter(rules: bytes, number: int, *arguments: int, machine: int) -> int:
    """The action of a filter for one system call."""
    data = struct.pack("=IIQ6Q", number, machine, 0, *arguments, *[0] * (6 - len(arguments)))
    steps, at, value = list(struct.iter_unpack("=HBBI", rules)), 0, 0
    tests: dict[int, Callable[[int, int], bool]] = {
        0x15: lambda a, k: a == k,
        0x25: lambda a, k: a > k,
        0x45: lambda a, k: bool(a & k),
    }
    while True:
        code, if_true, if_false, k = steps[at]
        at += 1
        if code == 0x06:
            return int(k)
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, k)
        elif code == 0x54:
            value &= k
        else:
            at += if_true if tests[code](value, k) else if_false


def test_the_filter_denies_what_nobody_reviewed_and_what_changes_files() -> None:
    pyseccomp = pytest.importorskip("pyseccomp")
    rules, machine = build_syscall_filter(), int(pyseccomp.system_arch())
    allow, refuse, unknown = 0x7FFF0000, 0x00050001, 0x00050026

    def call(name: str | int, *arguments: int) -> int:
        number = name if isinstance(name, int) else pyseccomp.resolve_syscall(machine, name)
        return run_filter(rules, number, *arguments, machine=machine)

    for number in (NEWEST + 1, 1000, 0x40000000 | 39, 0xFFFFFFFF):
        assert call(number) == unknown
    for number in (463, 466, 469, 452, 425, 467):
        assert call(number) == refuse
    for name in ("socket", "connect", "bind", "listen", "sendmsg", "setxattr", "ptrace", "mount"):
        assert call(name) == refuse, name
    for name in ("read", "write", "openat", "execve", "futex", "mmap", "recvfrom", "getdents64"):
        assert call(name) == allow, name
    assert call("ioctl", 3, 0x5401) == allow
    for command in (0x40086602, 0x1_4008_6602, 0x401C5820, 0x5412):
        assert call("ioctl", 3, command) == refuse
    assert call("socketpair", 1, 1 | 0o2000000) == allow
    assert call("socketpair", 1, 2) == refuse
    assert call("sendto", 3, 1, 1, 0, 0) == allow
    for address in (1, 1 << 40):
        assert call("sendto", 3, 1, 1, 0, address) == refuse
    assert call("clone", 0x01200011) == allow
    assert call("clone", 0x10000011) == refuse
    assert call(435) == unknown
    assert run_filter(rules, 39, machine=0x40000003) == 0x80000000
