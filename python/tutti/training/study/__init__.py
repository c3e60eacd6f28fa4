"""The studies of training steps: one per command."""
