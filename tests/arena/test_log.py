"""The log of a season: nothing in it changes unseen, and nothing in it is lost."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unreel.arena.submission.season_log import (
    BEGINNING,
    LOG,
    EntryState,
    SeasonLogEvent,
    append_log_event,
    append_log_events,
    read_season_log,
)
from unreel.core.errors import InvalidValueError, UnreadableSourceError


def _event(
    entry: str, state: EntryState = EntryState.SUBMITTED, *, team: str = "A"
) -> SeasonLogEvent:
    return SeasonLogEvent(entry=entry, state=state, at_us=7, kind="creator", team=team)


def _three(folder: Path) -> list[str]:
    for name in ("one", "two", "three"):
        append_log_event(folder, _event(name))
    return (folder / LOG).read_text(encoding="utf-8").splitlines(keepends=True)


def _put(folder: Path, lines: list[str]) -> None:
    (folder / LOG).write_text("".join(lines), encoding="utf-8")


def test_a_log_tells_what_was_written_in_order(tmp_path: Path) -> None:
    for state in (
        EntryState.SUBMITTED,
        EntryState.CHECKED,
        EntryState.ACCEPTED,
        EntryState.PLAYED,
        EntryState.WITHDRAWN,
    ):
        append_log_event(tmp_path, _event("Wan", state))
    history = read_season_log(tmp_path)
    assert [event.state for event in history.events] == [
        EntryState.SUBMITTED,
        EntryState.CHECKED,
        EntryState.ACCEPTED,
        EntryState.PLAYED,
        EntryState.WITHDRAWN,
    ]
    assert history.state("Wan") is EntryState.WITHDRAWN
    assert history.state("nobody") is None
    history.require_whole(history.head)


def test_no_log_is_an_empty_one(tmp_path: Path) -> None:
    assert read_season_log(tmp_path).events == ()
    assert read_season_log(tmp_path).head == BEGINNING


@pytest.mark.parametrize("number", [0, 1])
def test_a_removed_line_shows(tmp_path: Path, number: int) -> None:
    lines = _three(tmp_path)
    del lines[number]
    _put(tmp_path, lines)
    with pytest.raises(UnreadableSourceError, match="removed"):
        read_season_log(tmp_path).require_whole()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_edited_line_shows(tmp_path: Path, number: int) -> None:
    lines = _three(tmp_path)
    lines[number] = lines[number].replace('"team":"A"', '"team":"B"')
    _put(tmp_path, lines)
    with pytest.raises(UnreadableSourceError, match="edited"):
        read_season_log(tmp_path).require_whole()


def test_exchanged_lines_show(tmp_path: Path) -> None:
    first, second, third = _three(tmp_path)
    _put(tmp_path, [second, first, third])
    assert read_season_log(tmp_path).broken


def test_lines_cut_off_at_the_end_show_to_whoever_kept_the_last_hash(tmp_path: Path) -> None:
    lines = _three(tmp_path)
    head = read_season_log(tmp_path).head
    _put(tmp_path, lines[:2])
    shorter = read_season_log(tmp_path)
    shorter.require_whole()
    with pytest.raises(UnreadableSourceError, match="lines were removed"):
        shorter.require_whole(head)


def test_a_log_that_grew_still_holds_the_hash_of_before(tmp_path: Path) -> None:
    _three(tmp_path)
    head = read_season_log(tmp_path).head
    append_log_event(tmp_path, _event("four"))
    read_season_log(tmp_path).require_whole(head)


@given(cut=st.integers(min_value=1, max_value=400))
def test_a_torn_last_line_is_told_and_survived(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("season")
    data = "".join(_three(folder)).encode()
    cut = min(cut, len(data.splitlines()[-1]))
    (folder / LOG).write_bytes(data[:-cut])
    append_log_event(folder, _event("four"))
    history = read_season_log(folder)
    history.require_whole()
    # Without the line's end alone, the line is whole; without all of it, there is none.
    kept = ["one", "two", *(["three"] if cut == 1 else []), "four"]
    assert [event.entry for event in history.events] == kept
    assert len(history.torn) == (cut > 1)


def test_a_changed_log_is_not_written_on(tmp_path: Path) -> None:
    lines = _three(tmp_path)
    _put(tmp_path, lines[1:])
    with pytest.raises(UnreadableSourceError, match="Put the log back"):
        append_log_event(tmp_path, _event("four"))


def test_states_follow_each_other(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="never submitted"):
        append_log_event(tmp_path, _event("Wan", EntryState.ACCEPTED))
    append_log_event(tmp_path, _event("Wan"))
    append_log_event(tmp_path, _event("Wan", EntryState.REFUSED))
    with pytest.raises(InvalidValueError, match="is refused"):
        append_log_event(tmp_path, _event("Wan", EntryState.PLAYED))
    append_log_event(tmp_path, _event("Wan"))


def test_what_plays_cannot_be_submitted_over(tmp_path: Path) -> None:
    for state in (EntryState.SUBMITTED, EntryState.CHECKED, EntryState.ACCEPTED):
        append_log_event(tmp_path, _event("Wan", state))
    with pytest.raises(InvalidValueError, match="another name"):
        append_log_event(tmp_path, _event("Wan", team="B"))


def test_a_name_that_was_played_is_never_given_again(tmp_path: Path) -> None:
    states = (EntryState.SUBMITTED, EntryState.CHECKED, EntryState.ACCEPTED, EntryState.WITHDRAWN)
    for state in (*states, *states[:3], EntryState.PLAYED, EntryState.WITHDRAWN):
        append_log_event(tmp_path, _event("Wan", state))
    with pytest.raises(InvalidValueError, match="another name"):
        append_log_event(tmp_path, _event("Wan"))


def test_a_refused_batch_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="is submitted"):
        append_log_events(tmp_path, lambda _: [_event("Wan"), _event("Wan", EntryState.PLAYED)])
    assert read_season_log(tmp_path).events == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{"before"', '{"note":"x","before"'),
        ('"hash":', '"hash":"' + "0" * 64 + '","hash":'),
        ('"entry":"two"', '"entry":"other","entry":"two"'),
        ('"event":{', '"event":{}, "event":{'),
    ],
)
def test_an_unknown_or_a_second_field_of_a_line_shows(tmp_path: Path, old: str, new: str) -> None:
    first, second, third = _three(tmp_path)
    _put(tmp_path, [first, second.replace(old, new, 1), third])
    with pytest.raises(UnreadableSourceError, match="line 2 has an unknown or a duplicate field"):
        read_season_log(tmp_path).require_whole()


def test_an_event_that_could_not_be_read_again_is_refused_before_it_is_written(
    tmp_path: Path,
) -> None:
    _three(tmp_path)
    before = (tmp_path / LOG).read_bytes()
    long = replace(_event("four"), reasons=("x" * (1 << 20),))
    with pytest.raises(InvalidValueError, match="Shorten its reasons"):
        append_log_event(tmp_path, long)
    assert (tmp_path / LOG).read_bytes() == before
    append_log_event(tmp_path, replace(long, reasons=("x" * ((1 << 20) - 1000),)))
    assert len(read_season_log(tmp_path).events) == 4


def test_words_of_a_later_release_do_not_break_the_chain(tmp_path: Path) -> None:
    append_log_event(tmp_path, _event("Wan"))
    line = json.loads((tmp_path / LOG).read_text(encoding="utf-8"))
    import hashlib

    line["event"]["colour"] = "red"
    event = json.dumps(line["event"], sort_keys=True, separators=(",", ":"))
    line["hash"] = hashlib.sha256(f"{line['before']}\n{event}".encode()).hexdigest()
    _put(tmp_path, [json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n"])
    assert read_season_log(tmp_path).broken == ()


@pytest.mark.parametrize("raw", ["null", "[]", '{"event": 3}', "[" * 100_000, "\x00", "{}"])
def test_what_is_no_line_is_told_as_torn(tmp_path: Path, raw: str) -> None:
    _put(tmp_path, [raw + "\n"])
    append_log_event(tmp_path, _event("Wan"))
    history = read_season_log(tmp_path)
    assert history.torn == (1,)
    assert [event.entry for event in history.events] == ["Wan"]


_WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from unreel.arena.submission.season_log import SeasonLogEvent, EntryState, append_log_event
for number in range(20):
    append_log_event(Path(sys.argv[1]), SeasonLogEvent(entry=f"{sys.argv[2]}-{number}", state=EntryState.SUBMITTED, at_us=0, kind="creator"))
"""


def test_writers_wait_for_each_other(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), name])
        for name in ("a", "b", "c")
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    history = read_season_log(tmp_path)
    history.require_whole()
    assert len(history.events) == 60
