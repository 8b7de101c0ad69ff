"""One door for each dangerous thing: text becomes an id, and a file is made, in one place only."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "unreel"
MODULES = sorted(SOURCE.rglob("*.py"))
ID_MAKERS = {"core/clip.py", "core/content_ids.py", "core/safe_names.py"}


def _calls(path: Path) -> Iterator[ast.Call]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def test_text_becomes_the_id_of_a_clip_behind_one_door() -> None:
    elsewhere = [
        f"{path.relative_to(SOURCE)}:{call.lineno}"
        for path in MODULES
        if path.relative_to(SOURCE).as_posix() not in ID_MAKERS
        for call in _calls(path)
        if isinstance(call.func, ast.Name) and call.func.id == "ClipId"
    ]
    assert elsewhere == [], "use core.names.read_clip_id, or an id of core.identity"


DOOR = "core/output_files.py"
MAKING = {
    *("chmod", "copy2", "copyfile", "copytree", "extract", "extractall", "hardlink_to", "link_to"),
    *("lchmod", "link", "makedirs", "mkdir", "mkfifo", "mknod", "mkstemp", "mktemp", "move"),
    *("removedirs", "rename", "renames", "rmdir", "rmtree", "save", "symlink", "symlink_to"),
    *("touch", "truncate", "unlink", "write_bytes", "write_table", "write_text", "write_dataset"),
    "ParquetWriter",
}
"""Names of functions and methods that make, change or take away files, whoever has them."""
WRITING_FLAGS = {"O_APPEND", "O_CREAT", "O_RDWR", "O_TMPFILE", "O_TRUNC", "O_WRONLY"}
ELSEWHERE = {
    # into memory, or into a file that the door opened
    ("curation/freeze/media.py", "ParquetWriter"),
    ("curation/freeze/media.py", "write_table"),
    ("desk/custody_bundle.py", "open"),
    ("evaluation/export.py", "ParquetWriter"),
    ("media/encode.py", "open"),
    ("media/picture.py", "save"),
    ("media/sound.py", "open"),
    ("testing/creators.py", "save"),
    ("testing/reviewers.py", "save"),
    # through the door, which has methods of the same names
    ("annotation/ledger/connection.py", "open"),
    ("annotation/publishing/publish.py", "rename"),
    ("engine/start_log.py", "rename"),
    ("reviewers/endpoint/budget.py", "open"),
    ("engine/writer_lock.py", "open"),
    ("asking/sql_answers.py", "open"),
    ("report/clips/clip_files.py", "link"),
    ("training/checkpoints.py", "rename"),
    ("reviewers/local/vllm_server.py", "link"),
    ("training/export.py", "link"),
    ("training/run.py", "link"),
    # Lance writes by itself, after the place was looked at
    ("engine/table_writer.py", "write_dataset"),
    # a processor writes itself into a draft that the door made
    ("training/grpo.py", "save"),
    # the device that keeps nothing
    ("evaluation/run_check.py", "open"),
    # in memory, so that all code is loaded before the child is confined
    ("benchmarks/parquet_task.py", "write_table"),
    # rows of a table
    ("asking/answer_table.py", "replace"),
    # features of a clip, no file
    ("reviewers/baselines/fitting.py", "extract"),
    # a store of objects that is no folder of this machine
    ("engine/location.py", "put"),
}


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _makes_files(call: ast.Call) -> bool:
    name = _name(call)
    if name == "open":
        words = [each.value for each in ast.walk(call) if isinstance(each, ast.Constant)]
        modes = [word for word in words if isinstance(word, str) and 0 < len(word) <= 3]
        flags = {each.attr for each in ast.walk(call) if isinstance(each, ast.Attribute)}
        return bool(flags & WRITING_FLAGS) or any(set(mode) & set("wax+") for mode in modes)
    if name == "replace":  # of a text it takes two, of a value it takes names
        return isinstance(call.func, ast.Attribute) and len(call.args) == 1 and not call.keywords
    if name == "put":
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        return isinstance(owner, ast.Call) and _name(owner) == "objects"
    return name in MAKING


def test_files_are_made_behind_one_door() -> None:
    made = {
        (path.relative_to(SOURCE).as_posix(), _name(call), call.lineno)
        for path in MODULES
        if path != SOURCE / DOOR
        for call in _calls(path)
        if _makes_files(call)
    }
    outside = [
        f"{path}:{line}: {name}" for path, name, line in made if (path, name) not in ELSEWHERE
    ]
    assert sorted(outside) == [], "write through core.writing.Folder, or Place.put"
    assert {(path, name) for path, name, _ in made} == ELSEWHERE, (
        "an exception that is none any more"
    )
