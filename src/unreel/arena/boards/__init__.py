"""The two leaderboards, ablations and comparisons of a season."""
