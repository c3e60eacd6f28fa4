"""Platform files, and platforms by name or as one line of text."""
