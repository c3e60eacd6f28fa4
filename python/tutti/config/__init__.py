"""Configuration: experiment and platform files, read and checked in one place.

A file passes through two types: `raw` as it was written, then `Experiment`, in which everything is
looked up, written out and cross-checked. No later stage sees the raw one. Every mistake is a
`ConfigError`. Files of networks of routers and of training steps have tables of their own, which
are loaded when they are asked for: most verbs need neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tutti.config.platform import RawPlatform, numbers
from tutti.config.presets import find_platform, load_platform, platform_names, platform_text
from tutti.config.raw import RawExperiment
from tutti.config.resolve import Experiment, load_experiment, resolve
from tutti.config.sweep import RawSweep, Sweep, load_sweep, resolve_sweep
from tutti.errors import ConfigError
from tutti.files.reader import read_toml

if TYPE_CHECKING:
    from tutti.config.coherence import Coherence, RawCoherence, load_coherence
    from tutti.config.noc import Noc, load_noc, resolve_noc
    from tutti.config.noc_tables import RawNoc
    from tutti.config.smart import RawSmart, Smart, is_smart, load_smart
    from tutti.config.training import Training, load_training, resolve_training
    from tutti.config.training_tables import RawTraining

_HOMES = {
    "Coherence": "coherence",
    "Noc": "noc",
    "RawCoherence": "coherence",
    "RawNoc": "noc_tables",
    "RawSmart": "smart",
    "RawTraining": "training_tables",
    "Smart": "smart",
    "Training": "training",
    "is_smart": "smart",
    "load_coherence": "coherence",
    "load_noc": "noc",
    "load_smart": "smart",
    "load_training": "training",
    "resolve_noc": "noc",
    "resolve_training": "training",
}

__all__ = [
    "Coherence",
    "ConfigError",
    "Experiment",
    "Noc",
    "RawCoherence",
    "RawExperiment",
    "RawNoc",
    "RawPlatform",
    "RawSmart",
    "RawSweep",
    "RawTraining",
    "Smart",
    "Sweep",
    "Training",
    "find_platform",
    "is_smart",
    "load_coherence",
    "load_experiment",
    "load_noc",
    "load_platform",
    "load_smart",
    "load_sweep",
    "load_training",
    "numbers",
    "platform_names",
    "platform_text",
    "read_toml",
    "resolve",
    "resolve_noc",
    "resolve_sweep",
    "resolve_training",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each public name has its own type
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
