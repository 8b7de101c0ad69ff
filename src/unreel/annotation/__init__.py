"""Human judgements of clips: annotation campaigns, Label Studio projects and consensus.

Where to look:
    `campaign.py`: a campaign.
    `tasks.py`: its tasks.
    `assignment.py`: tasks of each annotator, and their order.
    `operations.py`: push of tasks to Label Studio, and screening decisions.
    `studio/`: Label Studio over HTTP.
    `interfaces/`: annotation screens, and parsing of submitted results.
    `ledger/`: the append-only database of judgements.
    `consensus/`: consensus of a task.
    `campaign_consensus.py`: consensus of a campaign.
    `quality/`: quality of annotators.
    `agreement.py`: agreement of annotators.
    `pairs.py`: pairs of clips to compare, and the ranking of the clips.
    `polish/`: rationales merged by a language model.
    `publishing/`: a campaign as a benchmark.
    `page/`: the page of a campaign.
    `formats/`: CVAT, Labelbox and Label Studio files.
"""
