"""Networks of gem5's Garnet: topology scripts in Python, and the configuration of a run."""
