"""Files of other simulators, as they are."""
