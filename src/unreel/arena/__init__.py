"""Creators against reviewers: seasons, their entrants and two leaderboards."""
