"""Append-only ledger of campaigns: the questions that people were asked and their answers."""
