"""The status of a campaign names each answer that cannot be used, with its reason."""

import json
from pathlib import Path

from click.testing import CliRunner

from kept_campaign import CAMPAIGN, keep_campaign
from unreel.cli.annotate import status


def test_the_status_shows_the_reasons_of_unusable_answers(tmp_path: Path) -> None:
    kept = keep_campaign(tmp_path / "kept", n_films=1, n_made=3)
    told = CliRunner().invoke(status, [CAMPAIGN, "--ledger", str(kept.ledger)])
    assert told.exit_code == 0, told.output
    assert "answers that cannot be used: 1" in told.output
    (line,) = (line for line in told.output.splitlines() if line.startswith("  bob, veo-1: "))
    document = CliRunner().invoke(status, [CAMPAIGN, "--ledger", str(kept.ledger), "--json"])
    assert json.loads(document.stdout)["unusable"] == [line.strip()]
