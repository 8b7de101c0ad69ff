"""`run_season`, `rank_season`, `open_campaign` and `train`, as a program calls them."""

from pathlib import Path

import pytest

import unreel
from arena.seasons import Stadium, write_benchmark
from kept_campaign import CAMPAIGN, keep_campaign
from unreel.core.errors import InvalidSettingError, UnreadableSourceError


@pytest.fixture
def stadium(tmp_path: Path) -> Stadium:
    write_benchmark(tmp_path / "bench", n_scenes=2)
    creators = [{"name": name, "kind": "frozen"} for name in ("Sora", "Veo")]
    reviewers = [{"model": "always-real"}, {"model": "coin"}]
    return Stadium(tmp_path, creators=creators, reviewers=reviewers, head={"floors": False})


def test_a_season_is_run_once_and_ranked(stadium: Stadium) -> None:
    season, out, parts = stadium.write(), stadium.folder.path, list[str]()
    outcome = unreel.run_season(
        season, out=out, trusted=True, on_progress=lambda part, _: parts.append(part)
    )
    assert [(each.title, each.done) for each in outcome.reviewers] == [
        ("always-real", 6),
        ("coin", 6),
    ]
    assert (outcome.n_failed, outcome.folder) == (0, str(out))
    assert parts
    again = unreel.run_season(season, out=out, only=["coin"], trusted=True)
    assert [(each.title, each.done, each.already) for each in again.reviewers] == [("coin", 0, 6)]
    (board,) = unreel.rank_season(out, resamples=100)
    assert isinstance(board, unreel.SeasonLeaderboard)
    assert board.n_resamples == 100
    assert {row.name for row in board.creators} == {"Sora", "Veo"}
    assert unreel.rank_season(season, out=str(out), resamples=100) == (board,)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return keep_campaign(tmp_path_factory.mktemp("campaign"), n_films=2, n_made=3).ledger


def test_a_campaign_is_read_and_measured(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNREEL_LEDGER", str(ledger))
    campaign = unreel.open_campaign(CAMPAIGN)
    assert repr(campaign) == "<StoredCampaign spring: 5 tasks>"
    status = campaign.status()
    assert (status.campaign, status.tasks, len(status.people)) == (CAMPAIGN, 5, 3)
    assert campaign.agreement(seed=1) == campaign.quality(seed=1).agreement
    assert {*campaign.quality().people} == {"ann", "bob", "cho"}
    agreed = campaign.consensus()
    assert agreed.settled
    assert {*agreed.tasks} <= {*campaign.records.tasks}
    assert len(campaign.consensus(quorum=3).settled) < len(agreed.settled)


def test_the_consensus_of_a_campaign_is_published(ledger: Path, tmp_path: Path) -> None:
    campaign = unreel.open_campaign(CAMPAIGN, ledger=ledger)
    published = campaign.publish(tmp_path / "set", media="link", names=True)
    assert published.n_clips == len(campaign.consensus().settled)
    assert len(list(unreel.open_benchmark(tmp_path / "set"))) == published.n_clips
    with pytest.raises(UnreadableSourceError, match="not an empty folder"):
        campaign.publish(tmp_path / "set")


def test_a_training_either_resumes_or_starts_again() -> None:
    with pytest.raises(InvalidSettingError, match="Leave out resume or fresh"):
        unreel.train({}, resume=True, fresh=True)
