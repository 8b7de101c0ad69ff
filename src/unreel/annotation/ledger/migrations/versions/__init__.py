"""Schema migrations of the ledger, one file for each, in the order of their numbers."""
