"""What commands share: output, progress, interruption, files and exit codes."""
