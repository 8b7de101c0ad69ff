"""The run of a season: creators generate clips, then reviewers answer questions about them.

Where to look:
    `job.py`: the complete run, and its dry run.
    `question_plan.py`: reviewers, the remaining budget, and the order of questions under it.
    `creators.py`: the missing clips of each creator, and the requests for them.
"""
