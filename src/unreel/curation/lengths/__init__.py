"""`[lengths]`: real clips come to last as generated ones do."""
