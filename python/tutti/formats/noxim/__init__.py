"""Configurations of Noxim (YAML)."""
