"""Entries are checked before any money is spent, and every try is written down."""

import itertools
from pathlib import Path

import pytest

from arena.entrants import (
    N_SCENES,
    clip,
    creator,
    grounds_of,
    write_entry,
    write_made,
    write_season,
)
from unreel.arena.fairness.team_attempts import collect_team_attempts
from unreel.arena.submission.creator_checks import EntryCheckContext
from unreel.arena.submission.entry import (
    ENTRIES,
    EntryFindingSeverity,
    add_accepted_entries,
    format_entry_file_name,
    log_played_entries,
    read_accepted_entries,
    read_entry_file,
)
from unreel.arena.submission.season_log import EntryState, read_season_log
from unreel.arena.submission.submit import (
    ENTERING,
    SubmissionResult,
    submit_team_entry,
    withdraw_team_entry,
)
from unreel.core.errors import InvalidSettingError, InvalidValueError, UnreadableSourceError
from unreel.engine.location import StorageLocation
from unreel.engine.writer_lock import build_writer_lock


class Ground:
    """One season to enter, and a clock that ticks."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.season = write_season(root)
        self.ticks = itertools.count(1)

    @property
    def grounds(self) -> EntryCheckContext:
        return grounds_of(self.season, self.root)

    @property
    def folder(self) -> Path:
        return self.root / "played"

    def submit(self, section: str, **given: object) -> SubmissionResult:
        handed = write_entry(self.root, section, **given)
        return submit_team_entry(handed, self.grounds, clock=lambda: next(self.ticks))


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def _refused_for(outcome: SubmissionResult) -> set[str]:
    assert outcome.state is EntryState.REFUSED
    return {f.check for f in outcome.findings if f.weight is EntryFindingSeverity.REFUSES}


def test_a_whole_entry_is_accepted_and_plays(ground: Ground) -> None:
    write_made(ground.root / "ours")
    outcome = ground.submit(creator())
    assert outcome.state is EntryState.ACCEPTED
    history = read_season_log(ground.folder)
    assert [event.state for event in history.events] == [
        EntryState.SUBMITTED,
        EntryState.CHECKED,
        EntryState.ACCEPTED,
    ]
    assert outcome.head == history.head
    season = add_accepted_entries(ground.season, ground.folder)
    assert [each.name for each in season.recipe.creator] == ["House", "Ours"]


def test_what_was_checked_is_what_is_played(ground: Ground) -> None:
    ours = write_made(ground.root / "ours")
    ground.submit(creator())
    before = (ours / "scene-0.mp4").read_bytes()
    (ours / "scene-0.mp4").write_bytes(b"something else")
    (entered,) = read_accepted_entries(ground.folder)
    assert entered.recipe.creator is not None
    kept = Path(entered.recipe.creator.keys.folder)  # type: ignore[attr-defined]
    assert kept == (ground.folder / ENTRIES / format_entry_file_name("Ours")).absolute()
    assert (kept / "scene-0-image+text.mp4").read_bytes() == before


def test_other_bytes_are_another_stable_name(ground: Ground) -> None:
    write_made(ground.root / "ours")
    write_made(ground.root / "others", seed=200)
    ground.submit(creator())
    ground.submit(creator("Ours too", folder="others"), name="second")
    one, other = (each.recipe.creator for each in read_accepted_entries(ground.folder))
    assert one is not None
    assert other is not None
    assert one.stable_name.rpartition("-")[2] != other.stable_name.rpartition("-")[2]


def test_missing_and_unknown_scenes_are_named(ground: Ground) -> None:
    ours = write_made(ground.root / "ours")
    (ours / "scene-1.mp4").rename(ours / "scene-77.mp4")
    outcome = ground.submit(creator())
    assert _refused_for(outcome) == {"ids"}
    told = " ".join(map(str, outcome.findings))
    assert "scene-1-image+text" in told
    assert "scene-77.mp4" in told
    assert not (ground.folder / ENTRIES / format_entry_file_name("Ours")).exists()


def test_hidden_scenes_are_not_asked_for(ground: Ground) -> None:
    ours = write_made(ground.root / "ours")
    (ours / "scene-2.mp4").unlink()
    grounds = grounds_of(ground.season, ground.root, hidden=frozenset({"scene-2"}))
    outcome = submit_team_entry(write_entry(ground.root, creator()), grounds, clock=lambda: 1)
    assert outcome.state is EntryState.ACCEPTED


def test_a_copy_of_a_real_clip_is_refused(ground: Ground) -> None:
    ours = write_made(ground.root / "ours")
    (ours / "scene-3.mp4").write_bytes(clip(3, crf=36))
    outcome = ground.submit(creator())
    assert _refused_for(outcome) == {"copies"}
    assert "scene-3-image+text of real-3" in str(outcome.findings[0])


def test_the_real_clip_of_another_scene_is_refused_too(ground: Ground) -> None:
    ours = write_made(ground.root / "ours")
    (ours / "scene-0.mp4").write_bytes(clip(2, crf=30))
    assert _refused_for(ground.submit(creator())) == {"copies"}


def test_one_clip_under_two_names_is_refused(ground: Ground) -> None:
    ours = write_made(ground.root / "ours")
    (ours / "scene-0.mp4").write_bytes((ours / "scene-1.mp4").read_bytes())
    assert _refused_for(ground.submit(creator())) == {"duplicates"}


@pytest.mark.parametrize(
    ("given", "check"),
    [({"n_frames": 4}, "length"), ({"width": 24, "height": 24}, "size")],
)
def test_clips_that_are_too_short_or_small_are_refused(
    ground: Ground, given: dict[str, int], check: str
) -> None:
    write_made(ground.root / "ours", **given)
    assert check in _refused_for(ground.submit(creator()))


def test_what_cannot_be_decoded_is_refused(ground: Ground) -> None:
    ours = write_made(ground.root / "ours")
    (ours / "scene-0.mp4").write_bytes(b"not a clip")
    outcome = ground.submit(creator())
    assert _refused_for(outcome) == {"decoding"}


def test_a_link_out_of_the_folder_is_not_followed(ground: Ground) -> None:
    ours = write_made(ground.root / "ours")
    (ours / "scene-0.mp4").unlink()
    (ours / "scene-0.mp4").symlink_to(ground.root / "bench" / "clips" / "real-0.mp4")
    assert "ids" in _refused_for(ground.submit(creator()))


def test_an_entry_without_a_licence_is_refused(ground: Ground) -> None:
    write_made(ground.root / "ours")
    assert _refused_for(ground.submit(creator(), licence="")) == {"licence"}


def test_a_longer_clip_is_accepted_with_a_warning(ground: Ground) -> None:
    write_made(ground.root / "ours", n_frames=40)
    outcome = ground.submit(creator())
    assert outcome.state is EntryState.ACCEPTED
    (length,) = [f for f in outcome.findings if f.check == "length"]
    assert length.weight is EntryFindingSeverity.WARNS
    assert len(length.clips) == N_SCENES


def test_files_that_tell_the_sides_apart_are_warned_of(tmp_path: Path) -> None:
    season = write_season(tmp_path, n_scenes=6)
    write_made(tmp_path / "ours", n_scenes=6, width=160)
    outcome = submit_team_entry(
        write_entry(tmp_path, creator()), grounds_of(season, tmp_path), clock=lambda: 1
    )
    assert outcome.state is EntryState.ACCEPTED
    assert any(f.check == "audit" and "160 x 128" in f.words for f in outcome.findings)


def test_a_name_of_the_season_is_taken(ground: Ground) -> None:
    write_made(ground.root / "ours")
    with pytest.raises(InvalidSettingError, match="another name"):
        ground.submit(creator("House"))
    assert read_season_log(ground.folder).events == ()


def test_a_name_that_others_rows_could_be_taken_for_is_refused(tmp_path: Path) -> None:
    held = '[[creator]]\nname = "Wan/text"\nkind = "frozen"\n'
    season = write_season(tmp_path, more=held)
    write_made(tmp_path / "ours")
    for name in ("Wan", "House/text"):
        handed = write_entry(tmp_path, creator(name))
        with pytest.raises(InvalidSettingError, match="another name"):
            submit_team_entry(handed, grounds_of(season, tmp_path), clock=lambda: 1)


def test_an_entry_that_plays_is_not_submitted_over(ground: Ground) -> None:
    write_made(ground.root / "ours")
    ground.submit(creator())
    with pytest.raises(InvalidValueError, match="another name"):
        ground.submit(creator(), team="Red")


def test_the_same_clips_under_another_name_are_refused(ground: Ground) -> None:
    write_made(ground.root / "ours")
    ground.submit(creator())
    outcome = ground.submit(creator("Ours again"), team="Red", name="second")
    assert _refused_for(outcome) == {"identity"}


def test_one_entry_at_a_time_is_looked_at(ground: Ground) -> None:
    write_made(ground.root / "ours")
    ground.folder.mkdir()
    with (
        build_writer_lock(StorageLocation(str(ground.folder / ENTERING))),
        pytest.raises(UnreadableSourceError, match="Wait for it to end"),
    ):
        ground.submit(creator())
    assert read_season_log(ground.folder).events == ()


def test_who_plays_in_the_season_already_is_not_entered_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    season = write_season(tmp_path, more='[[reviewer]]\nmodel = "openai/gpt-5"\n')
    section = '[reviewer]\nmodel = "openai/gpt-5"\ntitle = "Ours"\n'
    outcome = submit_team_entry(
        write_entry(tmp_path, section), grounds_of(season, tmp_path), clock=lambda: 1
    )
    assert _refused_for(outcome) == {"identity"}
    assert "openai/gpt-5" in str(outcome.findings[0])


def test_tries_are_counted_by_team_refused_ones_too(ground: Ground) -> None:
    write_made(ground.root / "ours")
    assert ground.submit(creator(), licence="").attempt == 1
    assert ground.submit(creator()).attempt == 2
    write_made(ground.root / "others", seed=300)
    assert ground.submit(creator("B", folder="others", more="seed = 9"), name="b").attempt == 3
    (tries,) = collect_team_attempts(read_season_log(ground.folder))
    assert (tries.submitted, tries.ranked, tries.unranked) == (3, "Ours", ("B",))
    assert tries.seeds == (0, 0, 9)


def test_a_withdrawn_entry_plays_no_more_and_stays_in_the_log(ground: Ground) -> None:
    write_made(ground.root / "ours")
    ground.submit(creator())
    log_played_entries(ground.folder, ["Ours", "House"], at_us=9)
    log_played_entries(ground.folder, ["Ours", "House"], at_us=10)
    withdraw_team_entry(ground.folder, "Ours", reason="a better one comes", retire=False, at_us=11)
    assert read_accepted_entries(ground.folder) == []
    assert [event.state for event in read_season_log(ground.folder).events][-2:] == [
        EntryState.PLAYED,
        EntryState.WITHDRAWN,
    ]
    with pytest.raises(InvalidValueError, match="is withdrawn"):
        withdraw_team_entry(ground.folder, "Ours", reason="", retire=False, at_us=12)


def test_nobody_can_be_withdrawn_who_never_came(ground: Ground) -> None:
    with pytest.raises(InvalidValueError, match="never submitted"):
        withdraw_team_entry(ground.folder, "Nobody", reason="", retire=True, at_us=1)


def test_a_control_cannot_be_entered(ground: Ground) -> None:
    section = '[creator]\nname = "Held"\nkind = "frozen"\ncreator = "Sora"\n'
    assert _refused_for(ground.submit(section)) == {"kind"}


def test_a_lost_entry_is_told(ground: Ground) -> None:
    write_made(ground.root / "ours")
    ground.submit(creator())
    (ground.folder / ENTRIES / f"{format_entry_file_name('Ours')}.json").unlink()
    with pytest.raises(UnreadableSourceError, match="withdraw"):
        read_accepted_entries(ground.folder)


def test_a_reviewer_is_asked_about_a_clip_that_nobody_knows(ground: Ground) -> None:
    outcome = ground.submit('[reviewer]\nmodel = "always-generated"\ntitle = "Mine"\n')
    assert _refused_for(outcome) == {"kind"}
    answers = ground.root / "answers.jsonl"
    answers.write_text('{"name": "real-0", "answer": "<answer>real</answer>"}\n', encoding="utf-8")
    section = '[reviewer]\nmodel = "recorded"\nrecorded = "answers.jsonl"\ntitle = "Told"\n'
    assert ground.submit(section, name="told").state is EntryState.ACCEPTED
    (entered,) = read_accepted_entries(ground.folder)
    assert entered.recipe.reviewer is not None
    assert entered.recipe.reviewer.recorded == str(answers)


def test_a_reviewer_that_cannot_be_opened_is_refused(ground: Ground) -> None:
    section = '[reviewer]\nmodel = "recorded"\nrecorded = "nowhere.jsonl"\ntitle = "Told"\n'
    assert _refused_for(ground.submit(section)) == {"opening"}


def test_a_served_reviewer_without_a_price_is_refused_where_money_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    season = write_season(tmp_path, more="[budget]\nmax_cost_usd = 5\n")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    section = '[reviewer]\nmodel = "openai/gpt-5"\ntitle = "Served"\n'
    outcome = submit_team_entry(
        write_entry(tmp_path, section), grounds_of(season, tmp_path), clock=lambda: 1
    )
    assert "price" in _refused_for(outcome)


@pytest.mark.parametrize("text", ["", '[creator]\nname = "A"\nkind = "folder"\nfolder = "x"\n'])
def test_an_entry_enters_one_board(tmp_path: Path, text: str) -> None:
    file = tmp_path / "entry.toml"
    reviewer = '[reviewer]\nmodel = "coin"\n' if text else ""
    file.write_text(f'team = "Blue"\n{text}{reviewer}', encoding="utf-8")
    with pytest.raises(InvalidSettingError, match="one board"):
        read_entry_file(file)
