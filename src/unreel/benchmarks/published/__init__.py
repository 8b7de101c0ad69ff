"""The three papers' printed figures as data, and the check that recalculates them. Imports `protocols` and `core`."""
