"""Drawings of topologies."""
