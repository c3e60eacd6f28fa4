"""How training steps are shown."""
