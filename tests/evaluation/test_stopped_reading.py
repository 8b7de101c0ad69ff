"""A run that was stopped while its clips were read goes on by its folder alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from unreel.engine.progress import JobCallbacks
from unreel.evaluation.run_job import EvalRun, evaluate, open_run


@pytest.mark.parametrize("model", ["always-real", "metadata"])
def test_a_run_stopped_while_clips_are_read_goes_on_with_its_own_recipe(
    start: Callable[..., EvalRun], model: str
) -> None:
    def stop(part: str, _: Any) -> None:
        if part == "clips":
            raise KeyboardInterrupt

    run = start(model=model)
    with pytest.raises(KeyboardInterrupt):
        evaluate(run, callbacks=replace(JobCallbacks(), on_due=stop))
    again = open_run(run.place, run.access, ledgers=run.ledgers)
    assert again.recipe == run.recipe
    assert evaluate(again).answers.done == 8
