"""Files that unreel makes stay in their folder, and are whole or not there."""

import contextlib
import itertools
import os
import socket
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.core.errors import InvalidValueError, UnsafeTargetError
from unreel.core.output_files import OutputDirectory, open_regular_user_file
from unreel.core.safe_names import make_safe_file_name

APPEND = os.O_WRONLY | os.O_APPEND


@pytest.fixture
def folder(tmp_path: Path) -> OutputDirectory:
    return OutputDirectory(tmp_path / "out")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim" / "letter.txt"
    path.parent.mkdir()
    path.write_text("mine")
    return path


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_private_and_so_is_its_folder(folder: OutputDirectory) -> None:
    path = folder.write("a/b.txt", b"text")
    assert path == folder.root / "a/b.txt"
    assert path.read_bytes() == b"text"
    assert (_mode(path), _mode(path.parent)) == (0o600, 0o700)


@pytest.mark.parametrize(("of_folder", "of_file"), [(0o755, 0o644), (0o700, 0o600), (0o750, 0o640)])
def test_a_published_file_can_be_read_by_whoever_may_read_its_folder(
    of_folder: int, of_file: int, tmp_path: Path
) -> None:
    tmp_path.chmod(of_folder)
    assert _mode(OutputDirectory(tmp_path, published=True).write("page.html", b"")) == of_file


def test_a_file_is_replaced_whole_and_never_emptied_in_place(folder: OutputDirectory) -> None:
    before = folder.write("page", b"old")
    with before.open("rb") as reader:
        folder.write("page", b"new and longer")
        assert reader.read() == b"old"
    assert before.read_bytes() == b"new and longer"


def test_an_error_leaves_what_was_there_and_nothing_else(folder: OutputDirectory) -> None:
    folder.write("rows", b"old")
    with contextlib.suppress(ZeroDivisionError), folder.create("rows") as file:
        file.write(b"half")
        1 / 0  # noqa: B018  any error
    assert [path.name for path in folder.root.iterdir()] == ["rows"]
    assert (folder.root / "rows").read_bytes() == b"old"


def _uses(directory: OutputDirectory, name: str, source: Path) -> dict[str, object]:
    return {
        "write": lambda: directory.write(name, b"owned"),
        "copy": lambda: directory.copy(source, name),
        "link": lambda: directory.link(source, name),
        "append": lambda: directory.append(name).close(),
        "open": lambda: os.close(directory.open(name, os.O_RDWR)),
        "open_fresh": lambda: os.close(directory.open_fresh(name, APPEND)),
        "remove": lambda: directory.remove(name),
        "read": lambda: directory.read(name).close(),
        "size": lambda: directory.size(name),
        "make": lambda: directory.make(name),
        "files": lambda: directory.files(name),
        "require_plain": lambda: directory.require_plain(name),
    }


USES = tuple(_uses(OutputDirectory(Path()), "", Path()))
OUTSIDE = (
    "../victim/letter.txt",
    "{victim}",
    "a/../../victim/letter.txt",
    "..",
    ".",
    "a//b",
    "a\0b",
)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", OUTSIDE)
def test_no_name_leads_out_of_the_folder(
    name: str, use: str, folder: OutputDirectory, victim: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_text("other")
    name = name.replace("{victim}", str(victim))
    with pytest.raises(InvalidValueError, match="inside its folder"):
        _uses(folder, name, source)[use]()  # type: ignore[operator]
    assert victim.read_text() == "mine"
    assert not folder.root.exists()


@given(st.text(st.sampled_from("./\\\0~ab\n") | st.characters(), max_size=40))
def test_any_name_is_refused_or_stays_inside(tmp_path_factory, name: str) -> None:
    above = tmp_path_factory.mktemp("above")
    folder = OutputDirectory(above / "out")
    # A part may be too long, or hold what no file system of ours writes down.
    with contextlib.suppress(InvalidValueError, OSError, UnicodeEncodeError):
        path = folder.write(name, b"x")
        assert path.resolve().is_relative_to(folder.root)
    assert {path.name for path in above.iterdir()} <= {"out"}
    folder.write(make_safe_file_name(name), b"x")
    assert (folder.root / make_safe_file_name(name)).is_file()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("dangling", [False, True], ids=["link", "dangling"])
def test_no_link_on_the_way_is_followed(
    use: str, folder: OutputDirectory, victim: Path, tmp_path: Path, *, dangling: bool
) -> None:
    source = tmp_path / "source"
    source.write_text("other")
    folder.root.mkdir()
    (folder.root / "a").symlink_to(tmp_path / "nowhere" if dangling else victim.parent)
    with pytest.raises(UnsafeTargetError, match="name another folder"):
        _uses(folder, "a/letter.txt", source)[use]()  # type: ignore[operator]
    assert victim.read_text() == "mine"
    assert [path.name for path in victim.parent.iterdir()] == ["letter.txt"]
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("use", ["write", "copy", "link", "open_fresh", "remove"])
def test_a_link_in_the_place_of_a_file_goes_and_what_it_leads_to_stays(
    use: str, folder: OutputDirectory, victim: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_text("other")
    folder.root.mkdir()
    target = folder.root / "page"
    target.symlink_to(victim)
    _uses(folder, "page", source)[use]()  # type: ignore[operator]
    assert victim.read_text() == "mine"
    assert not target.is_symlink()
    assert target.exists() == (use != "remove")


def _put(kind: str, at: Path, victim: Path) -> None:
    match kind:
        case "link":
            at.symlink_to(victim)
        case "dangling":
            at.symlink_to(victim.parent / "new")
        case "loop":
            at.symlink_to(at)
        case "hard link":
            at.hardlink_to(victim)
        case "pipe":
            os.mkfifo(at)
        case "socket":
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(str(at))
        case "folder":
            at.mkdir()
        case "device":
            os.mknod(at, stat.S_IFCHR | 0o600, os.makedev(1, 5))


ODD = ("link", "dangling", "loop", "pipe", "socket", "folder", "device")


@pytest.mark.parametrize("use", ["append", "open", "read"])
@pytest.mark.parametrize("kind", [*ODD, "hard link"])
def test_what_is_opened_in_place_is_a_regular_file_of_ours(
    kind: str, use: str, folder: OutputDirectory, victim: Path
) -> None:
    if kind == "device" and os.geteuid() != 0:
        pytest.skip("only root makes devices")
    if (use, kind) == ("read", "hard link"):
        pytest.skip("it is read as any file")
    folder.root.mkdir()
    _put(kind, folder.root / "lock", victim)
    with pytest.raises(UnsafeTargetError, match="lock"):
        _uses(folder, "lock", victim)[use]()  # type: ignore[operator]
    assert victim.read_text() == "mine"
    assert [path.name for path in victim.parent.iterdir()] == ["letter.txt"]


def test_another_users_file_is_not_opened_in_place(folder: OutputDirectory) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    path = folder.write("lock", b"theirs")
    os.chown(path, 12345, 12345)
    with pytest.raises(UnsafeTargetError, match="another user"):
        folder.open("lock", os.O_RDWR)
    assert path.read_bytes() == b"theirs"
    os.chown(folder.root, 12345, 12345)  # as on a mount that gives everything to one user
    os.close(folder.open("lock", os.O_RDWR))


@pytest.mark.parametrize("kind", ["link", "dangling", "loop", "pipe", "socket"])
def test_whatever_lies_there_is_replaced_without_waiting(
    kind: str, folder: OutputDirectory, victim: Path
) -> None:
    folder.root.mkdir()
    _put(kind, folder.root / "page", victim)
    assert folder.write("page", b"new").read_bytes() == b"new"
    assert victim.read_text() == "mine"


def test_the_folder_that_was_named_may_itself_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    OutputDirectory(tmp_path / "out").write("a/b", b"x")
    assert (tmp_path / "disk/a/b").read_bytes() == b"x"


@pytest.mark.parametrize("kind", ["file", "dangling"])
def test_a_root_that_is_no_folder_is_refused_in_words(kind: str, folder: OutputDirectory) -> None:
    if kind == "file":
        folder.root.write_text("mine")
    else:
        folder.root.symlink_to(folder.root.parent / "nowhere")
    with pytest.raises(UnsafeTargetError, match="is not a folder"):
        folder.write("a", b"x")
    assert not (folder.root.parent / "nowhere").exists()


def test_a_link_anywhere_in_a_table_is_found(folder: OutputDirectory, victim: Path) -> None:
    folder.write("t.lance/data/1.lance", b"")
    folder.require_plain("t.lance", whole=True)
    (folder.root / "t.lance/data/2.lance").symlink_to(victim)
    folder.require_plain("t.lance")
    with pytest.raises(UnsafeTargetError, match=r"2\.lance"):
        folder.require_plain("t.lance", whole=True)


def test_many_who_open_one_lock_at_once_get_the_same_file(folder: OutputDirectory) -> None:
    folder.make()
    start, found = threading.Barrier(8), []

    def work() -> None:
        start.wait()
        descriptor = folder.open("lock", os.O_RDWR)
        found.append(os.fstat(descriptor).st_ino)
        os.close(descriptor)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_link_that_comes_and_goes_is_never_written_through(
    folder: OutputDirectory, tmp_path: Path
) -> None:
    """A neighbour swaps a folder for a link as fast as it can, while files are written below it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    folder.make("a")
    done = threading.Event()

    def swap() -> None:
        way = folder.root / "a"
        for number in itertools.count():
            if done.is_set():
                return
            with contextlib.suppress(OSError):
                way.rename(folder.root / f"away-{number}")
            with contextlib.suppress(OSError):
                way.symlink_to(outside)
            with contextlib.suppress(OSError):
                way.unlink()

    neighbour = threading.Thread(target=swap)
    neighbour.start()
    try:
        for number in range(2000):
            with contextlib.suppress(UnsafeTargetError, FileNotFoundError):
                folder.write(f"a/{number}", b"x")
    finally:
        done.set()
        neighbour.join()
    assert list(outside.iterdir()) == []


def test_a_pipe_is_not_waited_for_when_a_clip_is_copied(
    folder: OutputDirectory, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "clip.mp4")
    with pytest.raises(OSError, match="not a regular file"):
        folder.copy(tmp_path / "clip.mp4", "copy.mp4")
    assert not folder.root.exists()
    with pytest.raises(OSError, match="not a regular file"):
        open_regular_user_file(tmp_path)


def test_a_folder_goes_with_all_it_holds_and_what_its_links_name_stays(
    folder: OutputDirectory, victim: Path
) -> None:
    folder.write("old/inner/a.txt", b"a")
    (folder.root / "old" / "link").symlink_to(victim.parent)
    folder.remove_folder("old")
    folder.remove_folder("never there")
    assert list(folder.root.iterdir()) == []
    assert victim.read_text() == "mine"


def test_a_file_of_another_disk_is_linked_by_its_name(
    folder: OutputDirectory, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    folder.link(victim, "letter.txt")
    assert (folder.root / "letter.txt").readlink() == victim
