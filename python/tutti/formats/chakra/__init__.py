"""Chakra execution traces (MLCommons)."""
