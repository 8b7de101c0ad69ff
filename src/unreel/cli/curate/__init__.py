"""Commands `unreel curate ...`."""
