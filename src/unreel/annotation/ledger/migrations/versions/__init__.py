"""Schema changes of the ledger, one file each, in the order of their numbers."""
