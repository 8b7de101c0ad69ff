"""Implementation of `unreel arena check`, imported when it runs."""

from collections.abc import Mapping
from typing import Any

from unreel.arena.entry_check import audit_entry_clips
from unreel.arena.season.recipe import read_season
from unreel.arena.season.scenes import open_season_benchmark, require_benchmark_digest
from unreel.cli.output import echo, print_json, print_message
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import build_clip_access_settings
from unreel.media.access import require_sandbox_protection


def print_entry_audit(options: Mapping[str, Any], *, as_json: bool) -> int:
    """Audit the clips of an entry and print the findings; return 1 if one is an error, otherwise 0."""
    season = read_season(options["season"])
    access = build_clip_access_settings(read_environment_settings(), trusted=options["trusted"])
    require_sandbox_protection(access.settings, trusted=access.trusted)
    benchmark = open_season_benchmark(season, outside=options["outside"])
    require_benchmark_digest(season, benchmark)
    audit = audit_entry_clips(options["entry"], benchmark, access, seed=season.recipe.seed)
    if as_json:
        print_json({"n_clips": audit.n_clips, "findings": audit.findings})
    else:
        for finding in audit.findings:
            print_message(f"{'error' if finding.is_error else 'warning'}: {finding}")
        print_message(f"{audit.n_clips} clips for {len(benchmark.scenes)} scenes")
        echo("errors" if audit.has_errors else "no errors")
    return int(audit.has_errors)
