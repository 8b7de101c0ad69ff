"""What may be published: licences that are named, splits that measure something, and how to cite it."""

import json
import shutil

import pytest

from unreel.core.errors import InvalidSettingError
from unreel.curation.curation_run import run_curation
from unreel.curation.freeze.data_card import format_bibtex, format_citation_cff
from unreel.curation.recipe import CitationRecipeSection, parse_curation_recipe

LICENSED = """file,label,licence
real/clip1.mp4,real,CC0
real/clip3.mp4,real,
generated/Veo/clip2.mp4,generated,CC BY 4.0
"""


@pytest.fixture
def table(footage, tmp_path):
    """A table that names the licence of two of its three clips."""
    shutil.copytree(footage, tmp_path / "films")
    path = tmp_path / "films" / "clips-of-ours.csv"
    path.write_text(LICENSED)
    return path


def test_a_clip_without_a_licence_is_left_out_by_default(table, curation) -> None:
    job = curation({"path": str(table)}, require_licence=True, freeze={"shares": [1, 0, 0]})
    state = run_curation(job)
    assert {piece.entry.name for piece in state.segments} == {
        "real/clip1.mp4",
        "generated/Veo/clip2.mp4",
    }
    (line,) = (job.context.place.path / "quarantine.jsonl").read_text().splitlines()
    left = json.loads(line)
    assert (left["name"], left["reason"]) == ("real/clip3.mp4", "no-licence")
    assert "require_licence = false" in left["detail"]
    assert left["location"].endswith("real/clip3.mp4")
    assert state.n_failed == 0
    assert parse_curation_recipe({"name": "x", "source": {"path": "x"}}).require_licence


@pytest.mark.parametrize(
    "change", [{"require_licence": False}, {"source": {"path": "", "licence": "CC0"}}]
)
def test_a_licence_of_the_recipe_or_a_word_lets_it_in(table, curation, change) -> None:
    source = change.get("source", {}) | {"path": str(table)}
    wanted = change.get("require_licence", True)
    state = run_curation(curation(source, require_licence=wanted), until="ingest")
    assert len(state.segments) == 3


@pytest.mark.parametrize("sections", [{}, {"audit": {"texts": False}}])
def test_where_nothing_is_left_the_reasons_are_counted(footage, curation, sections) -> None:
    with pytest.raises(InvalidSettingError) as caught:
        run_curation(curation({"path": str(footage)}, require_licence=True, **sections))
    assert "(10 ingest: no-licence)" in caught.value.problem
    assert "source.licence" in caught.value.remedy


def test_a_split_without_one_of_the_labels_is_refused_and_nothing_is_written(
    footage, curation
) -> None:
    job = curation({"path": str(footage)}, freeze={"shares": [8, 1, 1]})
    with pytest.raises(InvalidSettingError) as caught:
        run_curation(job)
    assert "train has 4 real and 4 generated" in caught.value.problem
    assert "shares = [3, 1, 1]" in caught.value.remedy
    assert not (job.context.place.path / "benchmark").exists()
    assert run_curation(curation({"path": str(footage)}, freeze={"shares": [3, 1, 1]})).frozen


def test_the_card_cites_what_the_recipe_gives_and_names_what_is_missing(footage, curation) -> None:
    whole = {"version": "1.2", "shares": [1, 0, 0]}
    silent = curation({"path": str(footage)}, freeze=whole)
    run_curation(silent)
    card = (silent.context.place.path / "benchmark/README.md").read_text()
    assert "Not stated yet: `authors`, `year`, `url`." in card
    assert "@misc{small," in card
    given = {"authors": ["Doe, Jane", "The Film Lab"], "year": 2026, "doi": "10.1/x_y"}
    told = curation({"path": str(footage)}, freeze=whole | {"citation": given})
    run_curation(told)
    card = (told.context.place.path / "benchmark/README.md").read_text()
    assert "author = {Doe, Jane and {The Film Lab}}," in card
    assert "Not stated yet" not in card


def test_names_cannot_break_out_of_an_entry() -> None:
    entry = format_bibtex("50 % {of}\nA_B", "1", None)
    assert r"title = {{50 \% of A\_B}}," in entry
    assert entry.count("{") == entry.count("}")


def test_cff_is_valid_yaml_and_needs_an_author() -> None:
    yaml = pytest.importorskip("yaml")
    assert format_citation_cff("n", "1", CitationRecipeSection(year=2026)) is None
    given = CitationRecipeSection(authors=("Doe, Jane", "Lab: A"), url="https://example.org/x")
    text = format_citation_cff('a "name"', "1.0", given)
    assert yaml.safe_load(text) == {
        "cff-version": "1.2.0",
        "message": "If you use this benchmark, please cite it as below.",
        "type": "dataset",
        "title": 'a "name"',
        "version": "1.0",
        "authors": [{"family-names": "Doe", "given-names": "Jane"}, {"name": "Lab: A"}],
        "url": "https://example.org/x",
    }
