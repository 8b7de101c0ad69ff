"""Commands `unreel arena ...`."""
