"""Commands print and write what they printed and wrote when the goldens were recorded."""

import pytest

pytest.importorskip("lance", reason="needs the extra `eval`")
pytest.importorskip("fastapi", reason="needs the extra `desk`")
pytest.importorskip("pdqhash", reason="needs the extra `curate`")

from net.net import check


@pytest.mark.timeout(900)
def test_every_difference_from_the_goldens_is_intended(capsys: pytest.CaptureFixture[str]) -> None:
    status = check("")
    assert status == 0, capsys.readouterr().out
