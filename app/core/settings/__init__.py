"""The settings: what can be set, the file they are kept in, and as a list to be shown."""
