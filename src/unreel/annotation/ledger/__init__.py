"""Append-only ledger of annotation campaigns: tasks, assignments, and annotators' answers."""
