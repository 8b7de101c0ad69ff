"""`[audit]`: whether file properties reveal the labels; which leak, how much, and in which clips."""
