"""Label Studio over its HTTP API.

Where to look:
    `client.py`: requests.
    `server.py`: the local server process.
    `settings.py`: its settings.
    `projects.py`: the project of one annotator and batch, and its link.
    `project_state.py`: detection and repair of changed projects.
    `push.py`: tasks to Label Studio.
    `pull.py`: answers into the ledger.
    `accounts.py`: accounts of annotators.
"""
