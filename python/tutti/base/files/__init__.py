"""Reading files: text, TOML, JSON, YAML, CSV and frames, with limits and schemas."""
