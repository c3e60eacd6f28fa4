"""Files of other simulators, unmodified."""
