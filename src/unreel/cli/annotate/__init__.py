"""Commands `unreel annotate ...`."""
