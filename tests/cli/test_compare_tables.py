"""`unreel compare` prints every difference as a line of one table, for a spreadsheet or a paper."""

import csv
import io

import pytest

from unreel.cli.evaluation.compare import print_run_comparisons
from unreel.core.comparison import Comparison, Comparisons, Difference
from unreel.core.estimate import Estimate, Unmeasured
from unreel.core.question import Instrument

GAP = Estimate(value=-5.0, low=-9.0, high=-1.0, n=100)
FOUND = Comparisons(
    instrument=Instrument("reality", 2),
    n_tests=1,
    comparisons=(
        Comparison(
            first="=a",
            second="b",
            n_common=100,
            n_sources=50,
            n_invalid=0,
            n_unshared=0,
            differences=(
                Difference(
                    metric="f1", first=70, second=75, difference=GAP, p=0.02, p_corrected=0.02
                ),
                Difference(
                    metric="auc", first=None, second=None, difference=Unmeasured("no confidence")
                ),
            ),
        ),
    ),
)


def test_differences_come_as_one_csv(capsys: pytest.CaptureFixture[str]) -> None:
    print_run_comparisons(FOUND, "csv")
    first, second = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (first["who"], first["against"], first["metric"]) == ("'=a", "b", "f1")
    assert [first[k] for k in ("less", "low", "high", "n")] == ["-5.00", "-9.00", "-1.00", "100"]
    assert (second["less"], second["why"]) == ("", "no confidence")


def test_differences_come_as_latex(capsys: pytest.CaptureFixture[str]) -> None:
    print_run_comparisons(FOUND, "latex")
    told = capsys.readouterr()
    assert "=a & b & f1 & 70.00 & 75.00 & $-$5.00 & $-$9.00" in told.out
    assert "auc" not in told.out
    assert "why" not in told.out
    assert "auc: not measured: no confidence" in told.err
