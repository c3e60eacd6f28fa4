"""How flit-level runs are shown."""
