"""Human judgements: campaigns, Label Studio, consensus.

Where to look:
    `campaign.py`: a campaign.
    `tasks.py`: its tasks.
    `assignment.py`: tasks of each annotator.
    `task_order.py`: their order.
    `operations.py`: push, pull and status.
    `studio/`: Label Studio over HTTP.
    `interfaces/`: screens, and parsing of submitted results.
    `ledger/`: the append-only database of judgements.
    `consensus/`: consensus of a task.
    `campaign_consensus.py`: consensus of a campaign.
    `quality/`: quality of annotators.
    `agreement.py`: agreement of annotators.
    `pairs/`: pairs to compare, and their ranking.
    `polish/`: merged rationales.
    `publishing/`: a campaign as a benchmark.
    `page/`: the page of a campaign.
    `formats/`: CVAT, Labelbox and Label Studio files.
"""
