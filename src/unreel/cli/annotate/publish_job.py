"""Implementation of `unreel annotate publish`, imported when it runs."""

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from shlex import quote
from typing import Any

from unreel.annotation.campaign_state import read_campaign
from unreel.annotation.ledger.connection import open_ledger, resolve_ledger_url
from unreel.annotation.publishing.edition import gather
from unreel.annotation.publishing.publish import PublicationResult, publish
from unreel.cli.annotate.consensus_rule import read_rule
from unreel.cli.output import print_json, print_message
from unreel.core.settings import read_settings


def publish_campaign(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Write the folder, print the result, and exit."""
    rule = read_rule(options)
    with open_ledger(resolve_ledger_url(options["ledger"], read_settings())) as ledger:
        campaign = options["campaign"]
        edition = gather(
            read_campaign(ledger, campaign),
            rule,
            notices=ledger.notices(campaign),
            seed=options["seed"],
        )
    edition = replace(edition, keep_undecided=options["keep_undecided"])
    if options["benchmark"] is not None:
        edition = replace(
            edition, campaign=replace(edition.campaign, benchmark=str(options["benchmark"]))
        )
    published = publish(
        edition,
        options["out"],
        media=options["media"],
        named=options["named"],
        seed=options["seed"],
    )
    if as_json:
        print_json(published)
    else:
        _print_publication(published)
    sys.exit(1 if published.left_out else 0)


def _print_publication(published: PublicationResult) -> None:
    print_message(f"{published.n_clips} clips in {published.folder}; its card is README.md")
    if published.n_undecided:
        print_message(
            f"  kept without a decision: {published.n_undecided}, with their original labels"
        )
    for why, n in Counter(left.why for left in published.left_out).most_common():
        print_message(f"  excluded: {n} {why}")
    if published.people:
        print_message(
            "people.json contains the quality of the annotators: `unreel report` shows it next to models"
        )
    folder = quote(str(published.folder))
    print_message(f"next: unreel eval {folder} --protocol {published.protocol} --model coin")
