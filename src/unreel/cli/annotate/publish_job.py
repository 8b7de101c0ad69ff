"""Implementation of `unreel annotate publish`, imported when it runs."""

import sys
from collections import Counter
from collections.abc import Mapping
from shlex import quote
from typing import Any

from unreel.annotation.publishing.publish import PublicationResult
from unreel.api.annotation import open_campaign
from unreel.cli.annotate import select_consensus_options
from unreel.cli.output import print_json, print_message


def publish_campaign(given: Mapping[str, Any], *, as_json: bool) -> None:
    """Write the consensus of a campaign as a benchmark, print the result, and exit the process."""
    campaign = open_campaign(given["campaign"], ledger=given["ledger"])
    options = {name: given[name] for name in ("benchmark", "media", "keep_undecided", "seed")}
    published = campaign.publish(
        given["out"], names=given["named"], **options, **select_consensus_options(given)
    )
    if as_json:
        print_json(published)
    else:
        _print_publication_result(published)
    sys.exit(1 if published.left_out else 0)


def _print_publication_result(published: PublicationResult) -> None:
    print_message(f"{published.n_clips} clips in {published.folder}; its card is README.md")
    if published.n_undecided:
        print_message(
            f"  kept without a decision: {published.n_undecided}, with their original labels"
        )
    for reason, n in Counter(left.why for left in published.left_out).most_common():
        print_message(f"  excluded: {n} {reason}")
    if published.people:
        print_message(
            "people.json contains the quality of the annotators: `unreel report` shows it next to models"
        )
    folder = quote(str(published.folder))
    print_message(f"next: unreel eval {folder} --protocol {published.protocol} --model coin")
