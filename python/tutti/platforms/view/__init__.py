"""How platforms are shown."""
