"""The same run, here and on Ray, gives the same rows."""

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("ray", reason="needs the extra ray: pip install 'unreel[ray]'")

from unreel.evaluate.job import evaluate
from unreel.evaluate.scoring import score_run

COMPARED = ("clip", "reviewer", "protocol", "protocol_version", "condition", "text", "notes")


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)
def test_local_and_ray_give_the_same_rows_and_scorecards(start, server) -> None:
    here = start(out="here", model=server.model)
    there = start(out="there", model=server.model)
    evaluate(here, engine="local")
    evaluate(there, engine="ray")
    rows = [
        {row["key"]: {name: row[name] for name in COMPARED} for row in run.answers.rows()}
        for run in (here, there)
    ]
    assert len(rows[0]) == 8
    assert rows[0] == rows[1]
    assert score_run(here) == score_run(there)
