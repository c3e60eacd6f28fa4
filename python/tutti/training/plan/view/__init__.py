"""Views of plans and of calibrations."""
