"""How comparisons and runs are shown."""
