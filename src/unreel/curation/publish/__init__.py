"""A frozen benchmark as a folder for a hub of datasets; nothing is sent anywhere."""
