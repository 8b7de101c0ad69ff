"""Entries to a season: checked before any money is spent, with the result for the team."""
