"""Files of training steps."""
