"""The faults that keep the crash tests honest still fit the engine that they are put into."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.mutations import ENGINE, MUTATIONS, ROOT, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_fits_its_source_and_names_tests_that_exist(mutation: Mutation) -> None:
    source = (ROOT / ENGINE / mutation.file).read_text()
    compile(mutation.patched(source), mutation.file, "exec")
    for test in mutation.tests:
        path, *_, name = test.split("::")
        name = re.sub(r"\[.*\]", "", name)
        assert f"def {name}(" in (ROOT / path).read_text()


def test_a_mutation_that_no_longer_fits_is_an_error() -> None:
    with pytest.raises(LookupError, match="0 times, not once"):
        Mutation("gone", "run.py", "no such text", "", ()).patched("something else")


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_every_mutation_is_noticed() -> None:
    script = Path(__file__).with_name("mutations.py")
    subprocess.run([sys.executable, str(script)], check=True)
