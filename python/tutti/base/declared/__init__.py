"""Parameters of the core, as classes generated from its declarations."""
