"""`[cluster]`: described clips are grouped by meaning and sampled evenly."""
