"""Commands `unreel reward ...`."""
