"""Network files."""
