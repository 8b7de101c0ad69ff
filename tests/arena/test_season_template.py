"""`unreel arena init` writes a season file that can be planned."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from unreel.arena.season.folder import read_season, write_season_template
from unreel.cli.main import unreel
from unreel.core.errors import InvalidSettingError

TABLE = 'location,label,creator\na.mp4,real,\nb.mp4,generated,First "one"\nc.mp4,generated,Second\n'


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for name in "abc":
        (tmp_path / f"{name}.mp4").write_bytes(b"clip")
    file = tmp_path / "clips.csv"
    file.write_text(TABLE, encoding="utf-8")
    return file


def test_the_file_names_the_creators_and_the_benchmark_from_its_own_folder(
    table: Path, tmp_path: Path
) -> None:
    (tmp_path / "seasons").mkdir()
    file = tmp_path / "seasons" / "autumn.toml"
    assert write_season_template(table, file) == ['First "one"', "Second"]
    season = read_season(file)
    assert season.benchmark.resolve() == table
    assert [each.name for each in season.recipe.creator] == ['First "one"', "Second"]


def test_a_benchmark_of_real_clips_gets_a_control(table: Path, tmp_path: Path) -> None:
    table.write_text("location,label\na.mp4,real\n", encoding="utf-8")
    assert write_season_template(table, tmp_path / "season.toml") == []
    (creator,) = read_season(tmp_path / "season.toml").recipe.creator
    assert creator.kind == "degrade"


def test_an_existing_file_is_kept(table: Path, tmp_path: Path) -> None:
    file = tmp_path / "season.toml"
    file.write_text("mine", encoding="utf-8")
    with pytest.raises(InvalidSettingError, match="not replaced"):
        write_season_template(table, file)
    assert file.read_text(encoding="utf-8") == "mine"


def test_the_command_prints_the_file_and_the_next_command(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.toml"
    done = CliRunner().invoke(unreel, ["arena", "init", str(table), "--out", str(out)])
    assert (done.exit_code, done.stdout.strip()) == (0, str(out))
    assert f"unreel arena plan {out} --pin" in done.stderr
