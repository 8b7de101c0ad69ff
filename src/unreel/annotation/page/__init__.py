"""Campaign page: the most disputed tasks first, and the marks of all annotators on one timeline."""
