"""The mutations fit the current sources, and the script that tries them tells caught from missed."""

import re
import sys

import pytest

from chaos.mutations import (
    MUTATIONS,
    PACKAGE,
    ROOT,
    Mutation,
    find_unusable_tests,
    main,
    try_mutation,
)

SPANS = "tests/core/test_span.py::test_a_span_that_cannot_be_is_refused"
CONDITION = "if not 0 <= self.start_us < self.end_us:"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_fits_its_source_and_names_tests_that_exist(mutation: Mutation) -> None:
    source = (ROOT / PACKAGE / mutation.file).read_text()
    compile(mutation.patched(source), mutation.file, "exec")
    for test in mutation.tests:
        path, *_, name = test.split("::")
        name = re.sub(r"\[.*\]", "", name)
        assert f"def {name}(" in (ROOT / path).read_text()


def test_the_names_of_mutations_are_unique() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


def test_a_mutation_that_no_longer_fits_is_an_error() -> None:
    with pytest.raises(LookupError, match="0 times, not once"):
        Mutation("gone", "engine/run.py", "no such text", "", ()).patched("something else")


@pytest.mark.parametrize(
    ("new", "result"),
    [("if False:", "caught"), (f"{CONDITION}  # unchanged", "MISSED"), ("if", "cannot run")],
)
def test_a_mutation_is_caught_if_its_tests_fail(new: str, result: str) -> None:
    assert try_mutation(Mutation("span", "core/span.py", CONDITION, new, (SPANS,))).result == result


def test_tests_that_do_not_pass_in_an_unchanged_copy_are_found() -> None:
    slow = "tests/chaos/test_mutations.py::test_every_mutation_is_caught"
    problems = find_unusable_tests([SPANS, slow], python=sys.executable)
    assert list(problems) == [slow]
    assert "slow" in problems[slow]


@pytest.mark.parametrize("wrong", [["--only", "no such name"], ["--jobs", "0"]])
def test_a_wrong_command_line_exits_with_2(wrong: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(wrong)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_mutation_is_caught() -> None:
    assert main([]) == 0
