"""The studies of collectives: what commands run, show and write."""
