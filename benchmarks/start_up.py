"""Processor time of short commands, side by side for any number of `unreel` executables.

    python benchmarks/start_up.py --starts 10 BEFORE/bin/unreel AFTER/bin/unreel

The executables take turns, and the first start of each is not counted. The processor time includes all child
processes: every command ends its confined processes and waits for them. "To the verdict" is read from
/proc at the moment when the first line of the verdict arrives. Nothing leaves this machine.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

MEASURES = ("help", "probe", "frames", "review, to the verdict", "review", "eval of 20 clips")
N_CLIPS = 20
LONGEST_S = 120
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_VERDICT = "sample.mp4: "


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="+", help="paths of `unreel` executables")
    parser.add_argument("--starts", type=int, default=10, help="counted starts of each command")
    parser.add_argument("--only", choices=MEASURES, action="append", help="measure only this")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    chosen = options.only or MEASURES
    seconds: dict[str, dict[str, list[float]]] = {
        measure: {command: [] for command in options.commands} for measure in chosen
    }
    with tempfile.TemporaryDirectory(prefix="unreel-start-") as name:
        folder = Path(name)
        _draw_clips(folder)
        for number in range(options.starts + 1):
            for command in options.commands:
                for measure, cpu_s in _measure(command, chosen, folder):
                    print(f"start {number}, {command} {measure}: {cpu_s:.2f} s", file=sys.stderr)
                    if number:
                        seconds[measure][command].append(cpu_s)
    print(json.dumps(seconds, indent=2) if options.json else _table(seconds))


def _draw_clips(folder: Path) -> None:
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    from synthesise import ClipRecipe, synthesise

    (folder / "clip.mp4").write_bytes(
        synthesise(ClipRecipe(width=640, height=360, n_frames=48, gop=24))
    )
    for index in range(N_CLIPS):
        side = "real" if index % 2 else "generated/drawn"
        clip = folder / "clips" / side / f"{index:02d}.mp4"
        clip.parent.mkdir(parents=True, exist_ok=True)
        clip.write_bytes(synthesise(ClipRecipe(n_frames=24, seed=index)))


def _measure(command: str, chosen: Sequence[str], folder: Path) -> Iterator[tuple[str, float]]:
    """Yield each measure of `chosen` with its seconds of processor time."""
    out = tempfile.mkdtemp(dir=folder)
    typed = {
        "help": ["--help"],
        "probe": ["probe", "clip.mp4"],
        "frames": ["frames", "clip.mp4", "--out", f"{out}/frames"],
        "review": ["review", "--sample", "--out", f"{out}/review"],
        "eval of 20 clips": [
            *("eval", "clips", "--protocol", "reality"),
            *("--model", "coin", "--out", f"{out}/run"),
        ],
    }
    for measure, arguments in typed.items():
        verdict = f"{measure}, to the verdict"
        if measure not in chosen and verdict not in chosen:
            continue
        to_verdict_s, cpu_s = _run([str(Path(command).absolute()), *arguments], folder)
        if verdict in chosen:
            yield verdict, to_verdict_s
        if measure in chosen:
            yield measure, cpu_s


def _run(command: list[str], folder: Path) -> tuple[float, float]:
    """Return the processor seconds to the verdict's first line (0 if there is none) and to the end."""
    errors = folder / "errors"
    to_verdict_s = 0.0
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=folder
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(_VERDICT):
                to_verdict_s = sum(map(_cpu_s, _family(process.pid)))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command} ended with {process.returncode}:\n{errors.read_text()[-3000:]}")
    return to_verdict_s, usage.ru_utime + usage.ru_stime


def _family(pid: int) -> Iterator[int]:
    """Yield `pid` and all its living descendants."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = children.read_text().split()
        except OSError:
            continue
        for child in found:
            yield from _family(int(child))


def _cpu_s(pid: int) -> float:
    """Return the processor seconds of a process and of the children that it has waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS_PER_S


def _table(seconds: dict[str, dict[str, list[float]]]) -> str:
    commands = list(next(iter(seconds.values())))
    lines = [
        f"| processor time, s: median (range) | {' | '.join(commands)} |",
        "|---" * (len(commands) + 1) + "|",
    ]
    for measure, by_command in seconds.items():
        cells = [
            f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})"
            for each in by_command.values()
        ]
        lines.append(f"| {measure} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
