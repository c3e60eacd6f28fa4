"""Units, errors, files and parameters: what every other package uses."""
