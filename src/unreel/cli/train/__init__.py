"""Commands `unreel train ...`."""
