"""The same work by `unreel eval`; the fourth argument names the engine, a fifth one trusts the clips."""

import json
import logging
import sys
import time
from pathlib import Path

from plain import CONNECTIONS

from unreel.core.settings import read_environment_settings
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings
from unreel.evaluation.recipe import validate_eval_recipe
from unreel.evaluation.run_job import EvalRun, evaluate

if __name__ == "__main__":
    listing, base_url, folder, engine, *trusted = sys.argv[1:]
    clips = Path(listing).read_text(encoding="utf-8").split()
    table = Path(listing).with_name("benchmark.csv")
    lines = [f"{Path(clip).name},{['real', 'generated'][n % 2]}" for n, clip in enumerate(clips)]
    table.write_text("\n".join(["file,label", *lines]), encoding="utf-8")
    recipe = {
        "benchmark": str(table),
        "protocol": "reality",
        "model": f"compatible/still@{base_url}",
        "condition": [{"prompt": "direct"}],
        "max_connections": CONNECTIONS,
    }
    run = EvalRun(
        place=StorageLocation(str(Path(folder) / "run")),
        recipe=validate_eval_recipe(recipe),
        access=ClipAccessSettings(settings=read_environment_settings(), trusted=bool(trusted)),
        ledgers=Path(folder),
    )
    if engine == "ray":
        import ray

        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    began_s = time.monotonic()
    outcome = evaluate(run, engine=engine)
    print(json.dumps({"n": outcome.answers.done, "seconds": time.monotonic() - began_s}))
