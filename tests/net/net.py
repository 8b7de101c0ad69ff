"""Record what the commands of unreel print and write on fixed inputs, or compare it with the record.

    python tests/net/net.py record|check [--only PREFIX]

Each group of commands of `work.py` runs twice in a new folder of its own: with `--json`, and without it for the printed
tables and the pages. The pages of `CONSOLES` run as recorded. Times, versions, dates, addresses and the path of the
folder are left out. `check` prints each difference, each command with `--json` that no group runs, and each option and command
that is gone or new, and ends with status 1 if one of them is not in `intended.toml`. PREFIX is the name of a group or
the beginning of a command.
"""

import argparse
import contextlib
import csv
import hashlib
import json
import multiprocessing
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

if __name__ == "__main__":  # the folder of the script has another `net`
    sys.path[0] = str(Path(__file__).parents[1])

from net.commands import HERE, call, find_differences
from net.model_server import Model, serve_model
from net.services import SERVICES
from net.stored_work import set_address
from net.studio_snapshot import StudioSnapshot, serve_snapshot
from net.work import COMMANDS, list_commands, prepare, read_consoles

GOLDENS = HERE / "goldens"
INTENDED = HERE / "intended.toml"
ELSEWHERE = {
    "train run": "test_killed_training.py",
    "train card": "test_killed_training.py",
    "arena check": "tests/arena/test_entry_check.py",
    "runs restore": "tests/evaluation/test_damaged_runs.py",
    "models get": "tests/catalogue/test_owner_prompts.py",
    "benchmarks get": "tests/catalogue/test_download.py",
    "calibrate": "tests/cli/test_calibrate.py",
    "seen add": "tests/cli/test_seen.py",
    "seen find": "tests/cli/test_seen.py",
}
"""Commands with `--json` that only other tests run: they need another environment, or 5462f705 lacks them."""
LEAVING = frozenset(
    {
        "annotate convert", "train plan", "published check", "published make", "published show",
        "arena submit", "arena withdraw", "arena log", "arena watch", "runs repair",
    }
)  # fmt: skip
"""Commands of 5462f705 that are removed; no group runs them."""
STATE_ONLY = frozenset({"doctor"})
"""Commands that describe this machine: only the names of their values are compared."""
_TIMES = re.compile(
    r"(latency_us|latency_s|_seconds|^seconds|^Seconds.*|n_older_files|n_leftover_files|took_us|took_s|^Took.*|size_bytes|_at|version|versions|elapsed\w*|since|when|created|ended_at|rate_per_s|seconds_per\w*)$"
)
_TEXT = {".csv", ".json", ".jsonl", ".md", ".toml", ".txt", ".yaml", ".yml", ".py", ".cff"}
_KEYED_BY_PATH = re.compile(r"ingest\.lance$|/found/clips-")
"""Tables whose keys contain the path of the folder."""
_MEASURED = re.compile(r"\d\.\d{1,3}( to \d\.\d{1,3},?)?")
"""Whole line of a page that may be a measured time; the tables beside the page have all other figures."""
_MAX_WRITTEN = 6000
"""Characters of a page or file; of a longer one, a hash of each line is kept."""
_SHOWN = 4
"""Differences that are printed of a command."""


class _PageText(HTMLParser):
    """Lines of text of an HTML page, without scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count the elements around whose text is not shown."""
        self._hidden += tag in {"script", "style"}

    def handle_endtag(self, tag: str) -> None:
        """Leave an element whose text is not shown."""
        self._hidden -= tag in {"script", "style"}

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        line = " ".join(data.split())
        if line and not self._hidden:
            self.lines.append(line)


class Recorder:
    """Runs the commands of one group in the present folder and keeps what they print and write."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._replacements = [
            (re.escape(str(Path.cwd())), "<folder>"),
            (re.escape(tempfile.gettempdir()) + r"/(?!unreel-net)[\w./-]+", "<temporary>"),
            (re.escape(version("unreel")), "<version>"),
            (r"\b0\.\d+\.\d+\.dev\d+\+\w+(\.\w+)?", "<version>"),
            (r"127\.0\.0\.1:\d+", "<address>"),
            (r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?(Z|UTC|[+-]\d\d:\d\d))?)?", "<time>"),
            (r"\d+ (January|February|March|April|May|June|July|August|September|October|November|December) \d{4}", "<time>"),
            (r"(?<![\w.])[\d.,]+( clips| frames|)(/s\b| a second\b| per second\b)", "N/s"),
            (r"(?<![\w.])[\d.,]+ (ms|min|s|h) left", "N left"),
            (r"(?<![\w.])[\d.,]+ (ms|s) (per|at most|at the median)", "N s \\2"),
            (r"clips-[0-9a-f]{16}", "clips-<hash>"),
            (r"cases/[0-9a-f]{16}", "cases/<case>"),
            (r"\d\d:\d\d(:\d\d)? UTC", "<time>"),
            (r"in \d+ files?, version \d+", "in N files, version N"),
            (r"answered in [\d.]+ s", "answered in N s"),
        ]  # fmt: skip
        self._files: dict[str, tuple[int, int]] = {}
        self._find_changed_files()
        self.entries: dict[str, dict[str, Any]] = {}

    def run(self, words: list[str], mode: str) -> None:
        """Run one command."""
        name = self._name(shlex.join(words))
        has_json = _has_json(words)
        if mode == "json" and has_json:
            words = [*words, "--json"]
        n_asked = len(self._model.asked)
        result = call(*words)
        stderr = self.normalise(result.stderr).splitlines()
        if mode == "json":
            entry = {"asked": len(self._model.asked) - n_asked}
            if has_json:
                entry["json_status"] = result.exit_code
                entry["json"] = self._document(words, result.stdout)
        else:
            entry = {"status": result.exit_code, "last line of stderr": "".join(stderr[-1:])}
            if result.exit_code and result.exception and not stderr:
                entry["exception"] = self.normalise(str(result.exception))
            if words[0] not in STATE_ONLY:
                entry["stdout"] = self.normalise(result.stdout).splitlines()
            entry |= self.written()
        self.entries[name] = entry

    def run_shell(self, command: str) -> None:
        """Run one command of a console: commands of unreel in this process, others in a shell."""
        if command.startswith(("pip ", "git ")):
            return
        line = re.sub(r" \|\| true$", "", command.replace("\\\n", " "))
        line = re.sub(r"\s+#.*$", "", line)
        if line.startswith("unreel ") and not re.search(r"[|<>;&]", line):
            self.run(shlex.split(line)[1:], "table")
            return
        words = [shutil.which("bash") or "bash", "-c", command]
        result = subprocess.run(words, check=False, capture_output=True, text=True)
        entry = {"status": result.returncode, "stdout": self.normalise(result.stdout).splitlines()}
        self.entries[self._name(command)] = entry | self.written()

    def _name(self, command: str) -> str:
        name = self.normalise(command)
        count = 2
        while name in self.entries:
            name = f"{self.normalise(command)} ({count})"
            count += 1
        return name

    def normalise(self, text: str) -> str:
        """Return `text` without what differs from run to run."""
        for pattern, replacement in self._replacements:
            text = re.sub(pattern, replacement, text)
        return text

    def _document(self, words: list[str], stdout: str) -> Any:
        try:
            document = json.loads(stdout)
        except ValueError:
            return self.normalise(stdout).splitlines()
        return self.strip(document, names_only=words[0] in STATE_ONLY)

    def strip(self, document: Any, *, names_only: bool = False) -> Any:
        """Return a JSON document without times and versions; floats have 9 digits."""
        if isinstance(document, dict):
            if (
                "place" in document
            ):  # of a frozen benchmark, whose digest covers the path of its source
                document = {key: value for key, value in document.items() if key != "digest"}
            if "n_older_files" in document:  # of a table, whose commits depend on the time
                document = {key: value for key, value in document.items() if key != "n_files"}
            return {
                self.normalise(key): self.strip(value, names_only=names_only)
                for key, value in document.items()
                if not _TIMES.search(key)
            }
        if isinstance(document, list):
            members = document[:1] if names_only else document
            return [self.strip(one, names_only=names_only) for one in members]
        if isinstance(document, str) and not names_only:
            with contextlib.suppress(ValueError):
                if document.startswith("{"):
                    return self.strip(json.loads(document))
            return self.normalise(document)
        value = float(f"{document:.9g}") if isinstance(document, float) else document
        return None if names_only else value

    def _find_changed_files(self) -> list[Path]:
        files = {}
        for folder, folders, names in os.walk("."):
            folders[:] = [name for name in folders if not name.endswith((".lance", "__pycache__"))]
            for name in names:
                path = Path(folder, name)
                with contextlib.suppress(FileNotFoundError):
                    files[str(path)] = (path.stat().st_mtime_ns, path.stat().st_size)
        changed = [Path(path) for path in sorted(files) if self._files.get(path) != files[path]]
        self._files = files
        return changed

    def written(self) -> dict[str, Any]:
        """Return the pages and files that were written since the last call."""
        texts, others = {}, []
        for path in self._find_changed_files():
            name = self.normalise(str(path))
            if path.suffix == ".html":
                page = _PageText()
                page.feed(path.read_text(encoding="utf-8"))
                lines = [
                    _MEASURED.sub("N", one) if _MEASURED.fullmatch(one) else one
                    for one in page.lines
                ]
                texts[name] = self._shorten(lines)
            elif path.suffix in _TEXT:
                texts[name] = self._shorten(self._read_lines(path))
            else:
                others.append(name)
        written = {"pages": texts, "files": others}
        return {name: paths for name, paths in written.items() if paths}

    def _read_lines(self, path: Path) -> list[str]:
        text = path.read_text(encoding="utf-8")
        match path.suffix:
            case ".json" | ".jsonl":
                documents = [text] if path.suffix == ".json" else text.splitlines()
                return [
                    json.dumps(self.strip(json.loads(one)), sort_keys=True) for one in documents
                ]
            case ".csv":
                header, *rows = csv.reader(text.splitlines())
                timed = [bool(_TIMES.search(name)) for name in header]
                kept = [
                    [cell for cell, is_time in zip(row, timed, strict=False) if not is_time]
                    for row in (header, *rows)
                ]
                return [",".join(row) for row in kept]
        return text.splitlines()

    def _shorten(self, lines: list[str]) -> list[str]:
        lines = [self.normalise(line) for line in lines]
        if sum(map(len, lines)) <= _MAX_WRITTEN:
            return lines
        return ["hashed", *(hashlib.sha256(line.encode()).hexdigest()[:8] for line in lines)]

    def read_keys(self) -> dict[str, list[str]]:
        """Return the beginnings of the keys of every Lance table below the present folder."""
        import lance

        tables = sorted(path for path in Path().rglob("*.lance") if path.is_dir())
        tables = [path for path in tables if not _KEYED_BY_PATH.search(str(path))]
        keys = {}
        for table in tables:
            column = lance.dataset(str(table)).to_table(columns=["key"])["key"].to_pylist()
            keys[str(table)] = sorted(str(key)[:12] for key in column)
        return keys


def _has_json(words: list[str]) -> bool:
    command = _find_command(words)
    return any("--json" in option.opts for option in command.params)


def _find_command(words: list[str]) -> click.Command:
    from unreel.cli.main import unreel

    command: click.Command = unreel
    for word in words:
        below = None
        if isinstance(command, click.Group):
            below = command.get_command(click.Context(command), word)
        if below is None:
            break
        command = below
    return command


def run_group(group: str, mode: str, consoles: dict[str, list[str]]) -> dict[str, Any]:
    """Run a group in a new folder; return an entry for each of its commands."""
    sys.argv = ["unreel"]  # messages repeat the command
    os.environ |= {"COLUMNS": "100", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}  # noqa: TID251
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:  # noqa: TID251
        del os.environ[name]  # noqa: TID251
    # The length of the path decides where printed tables break their lines.
    folder = Path(tempfile.mkdtemp(prefix="unreel-net-", dir="/tmp"), "work")
    folder.mkdir()
    started = time.monotonic()
    try:
        with contextlib.chdir(folder), serve_model() as model:
            entries = _run_group_here(group, mode, consoles, model)
    finally:
        shutil.rmtree(folder.parent, ignore_errors=True)
    sys.stderr.write(f"{time.monotonic() - started:5.1f} s  {group} {mode}\n")
    return entries


def _run_group_here(
    group: str, mode: str, consoles: dict[str, list[str]], model: Model
) -> dict[str, Any]:
    if group in consoles:
        recorder = Recorder(model)
        for command in consoles[group]:
            recorder.run_shell(command)
        return recorder.entries
    prepare(group, model.name)
    with contextlib.ExitStack() as stack:
        if group == "campaign":
            contents = json.loads(Path("snapshot.json").read_text(encoding="utf-8"))
            studio = stack.enter_context(serve_snapshot(StudioSnapshot(**contents)))
            set_address(studio.address)
        recorder = Recorder(model)
        for words in list_commands(group, model.name):
            recorder.run(words, mode)
    if group == "services" and mode == "table":
        for name, service in SERVICES.items():
            recorder.entries[name] = {"json": recorder.strip(service(model.name))}
    if mode == "json":
        recorder.entries["keys of stored rows"] = {"keys": recorder.read_keys()}
    return recorder.entries


def list_options() -> dict[str, Any]:
    """Return the options of every command with their defaults."""
    from unreel.cli.main import unreel

    def walk(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        context = click.Context(command)
        names = {
            " ".join((*option.opts, *option.secondary_opts)): _describe(option)
            for option in command.params
        }
        yield " ".join(path), {"options": names}
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                yield from walk(below, (*path, name))

    commands = dict(walk(unreel, ()))
    return {name: entry for name, entry in commands.items() if name not in {"", *LEAVING}}


def _describe(option: click.Parameter) -> str:
    kind = option.type.name
    if isinstance(option.type, click.Choice):
        kind = "|".join(map(str, option.type.choices))
    default = option.default
    if (
        default is None
        or callable(default)
        or "UNSET" in repr(default)
        or "Sentinel" in repr(default)
    ):
        return kind
    return f"{kind}, default {default}".replace(sys.executable, "<python>")


def run_groups(only: str, consoles: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    """Run the groups that have a command with that beginning; return their entries."""
    jobs = [
        (group, mode)
        for group in COMMANDS
        for mode in ("json", "table")
        if _is_wanted(group, only, [shlex.join(words) for words in list_commands(group, "MODEL")])
    ]
    jobs += [(page, "table") for page in consoles if _is_wanted(page, only, consoles[page])]
    documents: dict[str, dict[str, Any]] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context) as pool:
        running = [(job, pool.submit(run_group, *job, consoles)) for job in jobs]
        for (group, _), result in running:
            entries = documents.setdefault(group, {})
            for name, entry in result.result().items():
                entries[name] = entries.get(name, {}) | entry
    if "options".startswith(only):
        documents["options"] = list_options()
    return documents


def _is_wanted(group: str, only: str, commands: list[str]) -> bool:
    typed = [command.removeprefix("unreel ") for command in commands]
    return group.startswith(only) or any(command.startswith(only) for command in typed)


def record(only: str) -> int:
    """Write the goldens, and empty the list of intended differences."""
    GOLDENS.mkdir(exist_ok=True)
    consoles = read_consoles()
    for group, entries in run_groups(only, consoles).items():
        document = {"commands": consoles[group]} if group in consoles else {}
        _golden(group).write_text(_format(document | {"entries": entries}), encoding="utf-8")
    if not only:
        INTENDED.write_text("# [[difference]]\n# command = \"its beginning\"\n# reason = \"\"\n", encoding="utf-8")  # fmt: skip
    return 0


def _golden(group: str) -> Path:
    return GOLDENS / f"{Path(group).stem}.json"


def _format(document: dict[str, Any]) -> str:
    """Return the document with one line for each command, so that versions of it can be compared."""
    entries = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'), sort_keys=True, ensure_ascii=False)}"
        for name, entry in document["entries"].items()
    )
    commands = json.dumps(document.get("commands", []))
    return f'{{"commands": {commands},\n"entries": {{\n{entries}\n}}}}\n'


def check(only: str) -> int:
    """Compare the commands with the goldens; print the differences and return the exit status."""
    goldens = {path.stem: json.loads(path.read_text("utf-8")) for path in GOLDENS.glob("*.json")}
    consoles = {f"{name}.md": one["commands"] for name, one in goldens.items() if one["commands"]}
    intended = tomllib.loads(INTENDED.read_text(encoding="utf-8")).get("difference", [])
    used, n_found = set(), 0
    documents = run_groups(only, consoles)
    for group, entries in documents.items():
        before = goldens[Path(group).stem]["entries"]
        for name in before | entries:
            if not (group.startswith(only) or name.removeprefix("unreel ").startswith(only)):
                continue
            title = (
                f"options of unreel {name}" if group == "options" else f"{Path(group).stem}: {name}"
            )
            lines = list(find_differences({"": before.get(name)}, {"": entries.get(name)}))
            if name not in before or name not in entries:
                lines = ["gone" if name in before else "new"]
            left = []
            for line in lines:
                reason = _find_reason(intended, name, title, line)
                used |= {reason} - {None}
                left += [line] if reason is None else []
            n_found += len(left)
            if left:
                more = [f"... {len(left)} differences"] * (len(left) > _SHOWN)
                sys.stdout.write("\n  ".join([title, *left[:_SHOWN], *more]) + "\n")
    if not only:
        for name in _list_uncovered(documents):
            n_found += 1
            sys.stdout.write(f"not covered: unreel {name} --json\n")
        for index in set(range(len(intended))) - used:
            sys.stdout.write(f"intended, but equal: {intended[index]['command']}\n")
    sys.stdout.write(f"{n_found} differences that are not intended\n")
    return int(n_found > 0)


def _find_reason(intended: list[dict[str, str]], name: str, title: str, line: str) -> int | None:
    for index, one in enumerate(intended):
        begins = name.removeprefix("unreel ").startswith(one["command"])
        if (begins or title.startswith(one["command"])) and one.get("where", "") in line:
            return index
    return None


def _list_uncovered(documents: dict[str, dict[str, Any]]) -> list[str]:
    named = [name for group, entries in documents.items() if group != "options" for name in entries]
    return [
        name
        for name in documents["options"]
        if _has_json(name.split())
        and name not in ELSEWHERE
        and not any(f"{one} ".startswith(f"{name} ") for one in named)
    ]


def main() -> int:
    """Record or check."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=["record", "check"])
    parser.add_argument(
        "--only", default="", metavar="PREFIX", help="group, or beginning of a command"
    )
    given = parser.parse_args()
    return (record if given.action == "record" else check)(given.only)


if __name__ == "__main__":
    sys.exit(main())
