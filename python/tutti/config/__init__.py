"""Configuration: experiment and platform files, read and checked in one place.

A file passes through two types: `raw` as it was written, then `Experiment`, in which everything is
looked up, written out and cross-checked. No later stage sees the raw one. Every mistake is a
`ConfigError`.
"""

from __future__ import annotations

from tutti.config.noc import Noc, load_noc, resolve_noc
from tutti.config.noc_tables import RawNoc
from tutti.config.platform import RawPlatform, numbers
from tutti.config.presets import find_platform, load_platform, platform_names, platform_text
from tutti.config.raw import RawExperiment
from tutti.config.reader import read_schedule, read_toml
from tutti.config.resolve import Experiment, load_experiment, resolve
from tutti.config.sweep import RawSweep, Sweep, load_sweep, resolve_sweep
from tutti.config.training import Training, load_training, resolve_training
from tutti.config.training_tables import RawTraining
from tutti.errors import ConfigError

__all__ = [
    "ConfigError",
    "Experiment",
    "Noc",
    "RawExperiment",
    "RawNoc",
    "RawPlatform",
    "RawSweep",
    "RawTraining",
    "Sweep",
    "Training",
    "find_platform",
    "load_experiment",
    "load_noc",
    "load_platform",
    "load_sweep",
    "load_training",
    "numbers",
    "platform_names",
    "platform_text",
    "read_schedule",
    "read_toml",
    "resolve",
    "resolve_noc",
    "resolve_sweep",
    "resolve_training",
]
