"""Human judgements of clips: annotation campaigns, Label Studio projects and consensus.

Where to look:
    `campaign.py`: a campaign, its tasks and the answers.
    `tasks.py`: the tasks of a campaign, those of each annotator, and their order.
    `campaign_push.py`: upload of tasks to Label Studio, and export of screening decisions.
    `studio/`: Label Studio over HTTP.
    `interfaces/`: annotation screens, and parsing of submitted results.
    `ledger/`: the append-only database of judgements.
    `consensus/`: the consensus of each task.
    `campaign_state.py`: the state, consensus and progress of a campaign.
    `quality.py`: the agreement between annotators, and the quality of each.
    `pairs.py`: pairs of clips to compare, and the ranking of the clips.
    `rationale_polishing.py`: rationales merged by a language model.
    `publishing/`: publication of a campaign as a benchmark.
    `campaign_page.py`: the HTML page of a campaign.
"""
