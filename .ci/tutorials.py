"""Types each tutorial of the site as a new user would: the wheel, an empty environment, a fresh folder, top to bottom.

    python .ci/tutorials.py [--uv PROGRAM] [--folder DIR] [TUTORIAL ...]    # default: all of tutorials.toml

`pip install` is typed as the page has it; uv does it, with the wheel of this checkout. `tutorials.toml` has what replaces
what a check cannot bring. A command with "in a terminal of its own" runs beside the others, until the next such command of
the same program. Prints the table of docs/release.md; logs are in the folder. The exit status is 1 if a command failed.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from chat import Reply, says, serve_chat  # noqa: E402
from docs.test_consoles import read_console  # noqa: E402
from postgres import USER, Postgres, running  # noqa: E402
from scripted import ANSWERS  # noqa: E402

STUBS = ROOT.parent / "shared/stack/torchvision_cpu.py"
STATUS = re.compile(r"^=status= (\d+) of (\d+)$", re.MULTILINE)
OWN = "# in a terminal of its own"
SERVE = """[ -z "$S_{name}" ] || {{ kill $S_{name}; wait $S_{name}; }}
{command} </dev/null >server-{name}.log 2>&1 &
S_{name}=$!
while kill -0 $S_{name} && ! grep -q http:// server-{name}.log; do sleep 1; done
cat server-{name}.log; grep -q http:// server-{name}.log"""
CLIPS = """import os, sys; sys.path.insert(0, os.environ["ROOT"] + "/examples/quickstart")
from run import Path, write_clips; write_clips(Path(sys.argv[2]), n_clips=int(sys.argv[1]))"""
PIP = """pip() {
  local wanted=("${@:2}") torch=()
  [[ "$*" != *local* && "$*" != *train* ]] || torch=(torch==2.13.0+cpu)
  "$UV" pip install -q "${wanted[@]/%]/] @ $WHEEL}" "${torch[@]}"
}"""


def answer(body: bytes, _headers: Message) -> Reply:
    """Return the scripted answer to the protocol's prompt."""
    protocols = {b"coordinates": "trace", b"for real and": "reality"}
    return says(
        ANSWERS[next((name for mark, name in protocols.items() if mark in body), "realism")]
    )


def measure_times() -> tuple[float, float]:
    """Return the present time and the processor time of all ended commands, in seconds."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic(), spent.ru_utime + spent.ru_stime


@dataclass
class TutorialScript:
    """Shell script that types the commands of one tutorial, and what it replaces or skips."""

    lines: list[str] = field(default_factory=lambda: [PIP])
    commands: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    n_replaced: int = 0
    n_skipped: int = 0

    def add(self, command: str, *, accepted: int = 0) -> None:
        """Add one command, and the line that tells its status."""
        run = f"{{\n{command}\n}} </dev/null"
        if OWN in command:
            bare = command.partition(OWN)[0].strip()
            run = SERVE.format(command=bare, name="_".join(bare.split()[:2]))
        self.lines.append(f"cat <<'=typed='\n\n$ {command}\n=typed=\n{run}")
        self.lines.append(f'printf "\\n=status= $? of {accepted}\\n"')
        self.commands.append(command)

    def add_page(self, page: str, spec: dict[str, Any]) -> None:
        """Add all commands of a page."""
        for command in spec.get("prepare", []):
            self.add(command)
        for typed, _shown in read_console(page):
            rules = [rule for rule in spec.get("rule", []) if re.search(rule["match"], typed)]
            self.reasons += [rule["why"] for rule in rules if rule["why"] not in self.reasons]
            if any(rule.get("skip") for rule in rules):
                self.n_skipped += 1
                continue
            end = re.search(r"# ends with status (\d)", typed)
            command, accepted = typed, int(end[1]) if end else 0
            for rule in rules:
                for before in rule.get("before", []):
                    self.add(before)
                command = re.sub(rule["match"], rule.get("by", r"\g<0>"), command)
                accepted = rule.get("status", accepted)
            self.n_replaced += command != typed
            self.add(command, accepted=accepted)
        self.lines.append("kill $(jobs -p); wait")


def try_tutorial(
    name: str, spec: dict[str, Any], options: argparse.Namespace, store: Postgres, chat: int
) -> bool:
    """Type one tutorial in an empty environment, print its row, and return whether all commands worked."""
    folder, started = options.folder / name, measure_times()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "here").mkdir(parents=True)
    env = folder / "env"
    subprocess.run([options.uv, "venv", "-q", env], check=True)
    inherited = os.environ.items()  # noqa: TID251  where packages come from
    environment = {k: v for k, v in inherited if k.startswith(("UV_", "PIP_", "SSL_"))}
    environment["UV_CACHE_DIR"] = subprocess.check_output(
        [options.uv, "cache", "dir"], text=True
    ).strip()
    environment |= {"HOME": str(folder), "OMP_NUM_THREADS": "1"}
    environment |= {"UV": options.uv, "VIRTUAL_ENV": str(env)}
    environment |= {"PATH": f"{env}/bin:{store.programs}:/usr/local/bin:/usr/bin:/bin"}
    environment |= {"PGHOST": "127.0.0.1", "PGPORT": str(store.port), "PGDATABASE": "postgres"}
    environment |= {"PGUSER": USER, "PGPASSWORD": store.password, "CLIPS": CLIPS}
    environment |= {"ROOT": str(ROOT), "STUBS": str(STUBS), "DEV": str(Path(sys.executable).parent)}
    environment |= {
        "WHEEL": next(options.folder.glob("unreel-*.whl")).as_uri(),
        "CHAT": f"@http://127.0.0.1:{chat}/v1",
    }
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    script = TutorialScript()
    script.add_page(page, spec)
    log = options.folder / f"{name}.log"
    command, here = ["/bin/bash", "-c", "\n".join(script.lines)], folder / "here"
    with log.open("w", encoding="utf-8") as out:
        subprocess.run(command, cwd=here, env=environment, stdout=out, stderr=out, check=False)
    ends = STATUS.findall(log.read_text(encoding="utf-8", errors="replace"))
    ends += [("none", "0")] * (len(script.commands) - len(ends))
    failed = [
        typed
        for typed, (status, accepted) in zip(script.commands, ends, strict=True)
        if status != accepted
    ]
    n_typed = len(read_console(page)) - script.n_skipped
    row = [f"[{name}]({name}.md)", page.count("```console\n"), n_typed, script.n_replaced]
    row += [script.n_skipped, len(failed)]
    row += [f"{now - before:.0f}" for now, before in zip(measure_times(), started, strict=True)]
    row += ["; ".join(filter(None, script.reasons))]
    print("|", " | ".join(map(str, row)), "|", flush=True)
    for command in failed:
        print(f"FAILED: {command}", flush=True)
    return not failed


def main() -> int:
    """Build the wheel, type the tutorials, and return the exit status."""
    specs = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tutorials", nargs="*", metavar="TUTORIAL", help=", ".join(specs))
    parser.add_argument("--uv", default=shutil.which("uv") or "uv")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "tutorials"))
    options = parser.parse_args()
    for old in options.folder.glob("*.whl"):
        old.unlink()
    build = [options.uv, "build", "-q", "--wheel", "--out-dir", str(options.folder), str(ROOT)]
    subprocess.run(build, check=True)
    print(
        "| tutorial | blocks | commands | replaced | skipped | failed | seconds | processor seconds | replaced or skipped, and by what |"
    )
    with serve_chat(answer) as chat, running() as store:
        worked = [
            try_tutorial(name, specs[name], options, store, chat)
            for name in options.tutorials or specs
        ]
    return int(not all(worked))


if __name__ == "__main__":
    sys.exit(main())
