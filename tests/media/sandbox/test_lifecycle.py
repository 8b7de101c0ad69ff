"""Processes come when needed, work side by side, and are gone when their caller is."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pace import slowness
from stalls import Stalls
from unreel.core.errors import SandboxError
from unreel.core.failure import Failure, FailureReason
from unreel.media.messages import TaskReplyPayload
from unreel.media.sandbox import LAYERS, FileSandbox, SandboxLimits

HERE = Path(__file__).parent

CALLER = f"""
import os, signal, sys, threading, time
from pathlib import Path
sys.path.insert(0, {str(HERE)!r})
from unreel.media.sandbox import SandboxLimits, FileSandbox
sandbox = FileSandbox(SandboxLimits(seconds=60), tasks="hostile_tasks:TASKS")
sandbox("echo", Path(sys.argv[1]), {{}})
work = threading.Thread(target=sandbox, args=("sleep", Path(sys.argv[1]), {{}}), daemon=True)
work.start()
while not (children := Path(f"/proc/{{sandbox._zygote.pid}}/task/{{sandbox._zygote.pid}}/children").read_text()):
    time.sleep(0.01)
"""

ENDINGS = {
    "exits": "print(sandbox._zygote.pid, children, flush=True)",
    "fails": "print(sandbox._zygote.pid, children, flush=True); raise SystemExit(3)",
    "is killed": "print(sandbox._zygote.pid, children, flush=True); os.kill(os.getpid(), signal.SIGKILL)",
    "is killed while its fork lives on": (
        "forked = os.fork()\n"
        "if not forked: time.sleep(8); os._exit(0)\n"
        "print(sandbox._zygote.pid, children, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    ),
}


def _zygote_pid(sandbox: FileSandbox) -> int:
    assert sandbox._zygote is not None
    return sandbox._zygote.pid


def _children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _soon(condition: Callable[[], bool], *, seconds: float = 5) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False


def test_real_time_priority_is_not_passed_on_to_what_opens_strangers_files(clip: Path) -> None:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pytest.skip("only a privileged user may take real-time priority")
    try:
        with FileSandbox() as sandbox:
            sandbox("probe", clip, {})
            assert os.sched_getscheduler(_zygote_pid(sandbox)) == os.SCHED_OTHER
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def test_nothing_runs_before_the_first_call_and_after_the_last(
    clip: Path, hostile: FileSandbox
) -> None:
    with FileSandbox(tasks="hostile_tasks:TASKS") as sandbox:
        assert sandbox._zygote is None
        assert isinstance(sandbox("echo", clip, {}), TaskReplyPayload)
        pid = _zygote_pid(sandbox)
        assert _runs(pid)
    assert not _runs(pid)


def test_a_woken_sandbox_is_up_before_its_first_call_and_ends_with_its_block(clip: Path) -> None:
    with FileSandbox(tasks="hostile_tasks:TASKS") as sandbox:
        sandbox.wake()
        assert _soon(lambda: sandbox._zygote is not None, seconds=30)
        pid = _zygote_pid(sandbox)
        assert isinstance(sandbox("echo", clip, {}), TaskReplyPayload)
        assert _zygote_pid(sandbox) == pid
    assert not _runs(pid)


def test_a_zygote_killed_between_calls_is_replaced(hostile: FileSandbox, clip: Path) -> None:
    for _ in range(3):
        assert isinstance(hostile("echo", clip, {}), TaskReplyPayload)
        lost = _zygote_pid(hostile)
        os.kill(lost, signal.SIGKILL)
        assert isinstance(hostile("echo", clip, {}), TaskReplyPayload)
        assert _zygote_pid(hostile) != lost
        assert not _runs(lost)


def test_a_zygote_killed_during_a_call_takes_its_child_along(
    hostile: FileSandbox, clip: Path
) -> None:
    assert isinstance(hostile("echo", clip, {}), TaskReplyPayload)
    zygote = _zygote_pid(hostile)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(hostile, "sleep", clip, {})
        assert _soon(lambda: bool(_children_of(zygote)))
        (child,) = _children_of(zygote)
        os.kill(zygote, signal.SIGKILL)
        result = call.result(timeout=10)
    assert isinstance(result, Failure)
    assert result.reason is FailureReason.WORKER_DIED
    assert _soon(lambda: not _runs(child))
    assert isinstance(hostile("echo", clip, {}), TaskReplyPayload)


def test_a_child_out_of_time_is_gone_at_once(hostile: FileSandbox, clip: Path) -> None:
    hostile("echo", clip, {})
    hostile.run("sleep", clip, request={}, limits=SandboxLimits(seconds=0.2))
    assert _children_of(_zygote_pid(hostile)) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_process_outlives_a_caller_that(ending: str, clip: Path) -> None:
    script = CALLER + ENDINGS[ending]
    with subprocess.Popen([sys.executable, "-c", script, clip], stdout=subprocess.PIPE) as caller:
        assert caller.stdout is not None
        pids = [int(word) for word in caller.stdout.readline().split()]
        assert len(pids) == 2
        assert _soon(lambda: not any(map(_runs, pids)), seconds=4), pids


def test_ctrl_c_in_the_caller_ends_the_child_and_spares_the_zygote(clip: Path) -> None:
    script = CALLER + (
        "print(sandbox._zygote.pid, children, flush=True)\n"
        "try: sandbox('sleep', Path(sys.argv[1]), {})\n"
        "except KeyboardInterrupt: print(type(sandbox('echo', Path(sys.argv[1]), {})).__name__)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, clip], stdout=subprocess.PIPE, start_new_session=True
    ) as caller:
        assert caller.stdout is not None
        zygote, _ = map(int, caller.stdout.readline().split())
        assert _soon(lambda: len(_children_of(zygote)) == 2)
        os.killpg(caller.pid, signal.SIGINT)
        assert caller.stdout.readline() == b"TaskReplyPayload\n"


def test_calls_from_several_threads_run_at_once_and_are_not_mixed_up(
    hostile: FileSandbox, tmp_path: Path, stalls: Stalls
) -> None:
    def ask(number: int) -> bool:
        path = tmp_path / f"{number}.mp4"
        path.write_bytes(f"{number:04d}".encode())
        got = hostile("echo", path, {"number": number})
        return isinstance(got, TaskReplyPayload) and (got.header["asked"], got.blobs[0]) == (
            {"number": number},
            f"{number:04d}".encode(),
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(200)))
        started = time.monotonic()
        naps = [
            pool.submit(hostile, "nap", tmp_path / f"{n}.mp4", {"seconds": 1}) for n in range(8)
        ]
        assert all(isinstance(nap.result(), TaskReplyPayload) for nap in naps)
        assert time.monotonic() - started < 4 * slowness() + stalls.seconds()


def test_a_fork_of_the_caller_gets_a_zygote_of_its_own(hostile: FileSandbox, clip: Path) -> None:
    hostile("echo", clip, {})
    script = (
        "import os, sys; from pathlib import Path\n"
        f"sys.path.insert(0, {str(HERE)!r})\n"
        "from unreel.media.sandbox import FileSandbox\n"
        "sandbox = FileSandbox(tasks='hostile_tasks:TASKS'); clip = Path(sys.argv[1])\n"
        "sandbox('echo', clip, {}); first = sandbox._zygote.pid\n"
        "if not os.fork(): print('fork', type(sandbox('echo', clip, {})).__name__, sandbox._zygote.pid != first)\n"
        "else: os.wait(); print('caller', type(sandbox('echo', clip, {})).__name__, sandbox._zygote.pid == first)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, clip], check=True, capture_output=True, text=True, timeout=60
    )
    assert ran.stdout.splitlines() == ["fork TaskReplyPayload True", "caller TaskReplyPayload True"]


def test_many_calls_leave_no_descriptor_and_no_zombie(hostile: FileSandbox, clip: Path) -> None:
    def descriptors(pid: int | str) -> int:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))

    hostile("echo", clip, {})
    zygote = _zygote_pid(hostile)
    before = descriptors("self"), descriptors(zygote)
    for task in ["echo", "exit-3", "say-garbage", "raise-media-error"] * 25:
        hostile(task, clip, {})
    assert _zygote_pid(hostile) == zygote
    assert descriptors("self") == before[0]
    # The zygote hangs up a moment after its report: the first call's line may be counted above.
    assert _soon(lambda: descriptors(zygote) <= before[1])
    assert _children_of(zygote) == []


def test_a_child_inherits_neither_environment_nor_descriptors(
    hostile: FileSandbox, clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "token")
    with FileSandbox(tasks="hostile_tasks:TASKS") as sandbox:
        result = sandbox("surroundings", clip, {})
    assert isinstance(result, TaskReplyPayload)
    got = result.header["got"]
    assert "token" not in str(got)
    assert len(got["descriptors"]) == 5  # three times /dev/null, the file, the pipe


@pytest.mark.parametrize("target", ["no_such_module:TASKS", "hostile_tasks:NO_SUCH_TABLE"])
def test_a_zygote_that_cannot_load_its_tasks_says_so(
    hostile: FileSandbox, clip: Path, target: str
) -> None:
    with pytest.raises(SandboxError, match=r"did not start: .*(no_such_module|NO_SUCH_TABLE)"):
        FileSandbox(tasks=target)("echo", clip, {})


@pytest.mark.parametrize("layer", ["pyseccomp", "landlock"])
def test_a_machine_without_a_layer_works_if_it_may_and_says_what_is_missing(
    layer: str, clip: Path, tmp_path: Path, hostile: FileSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{layer}.py").write_text("raise ImportError", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    limits, tasks = SandboxLimits(seconds=1), "hostile_tasks:TASKS"
    with FileSandbox(limits, tasks=tasks, without_seccomp=True) as sandbox:
        assert set(LAYERS) - sandbox.protection() == {layer.removeprefix("py")}
        assert isinstance(sandbox("echo", clip, {}), TaskReplyPayload)
        for task in ["read-passwd", "unix-socket", "list-root", "allocate-2-gb", "loop"]:
            assert isinstance(sandbox(task, clip, {}), Failure), task


def test_a_machine_without_seccomp_is_refused_unless_that_was_asked_for(
    clip: Path, tmp_path: Path, hostile: FileSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyseccomp.py").write_text("raise ImportError", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with FileSandbox(tasks="hostile_tasks:TASKS") as sandbox:
        for _ in range(2):
            with pytest.raises(SandboxError, match=r"seccomp.*apt-get install.*WITHOUT_SECCOMP=1"):
                sandbox("echo", clip, {})
        with pytest.raises(SandboxError, match="seccomp"):
            sandbox.protection()
        assert sandbox._zygote is None


@pytest.fixture
def unfiltered(
    tmp_path: Path, hostile: FileSandbox, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FileSandbox]:
    """The hostile sandbox on a machine without libseccomp."""
    (tmp_path / "pyseccomp.py").write_text("raise RuntimeError", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    limits, tasks = SandboxLimits(seconds=1), "hostile_tasks:TASKS"
    with FileSandbox(limits, tasks=tasks, without_seccomp=True) as sandbox:
        yield sandbox


def test_without_a_filter_even_forked_processes_end_with_their_child(
    unfiltered: FileSandbox, clip: Path
) -> None:
    result = unfiltered("fork", clip, {})
    if isinstance(result, TaskReplyPayload):  # root, whom RLIMIT_NPROC does not bind
        assert _soon(lambda: not _runs(result.header["got"]))
