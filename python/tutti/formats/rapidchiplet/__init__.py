"""Designs and traces of RapidChiplet."""
