"""Optional dependencies and the extras of `pyproject.toml` that install them."""

from __future__ import annotations

from importlib.util import find_spec

from tutti.errors import ConfigError

__all__ = ["EXTRAS", "installed", "missing_extra"]

EXTRAS = {
    "distributed": "sweep",
    "google": "traces",
    "jinja2": "reports",
    "markupsafe": "reports",
    "matplotlib": "reports",
    "mpi4py": "mpi",
    "ortools": "optimise",
    "perfetto": "reports",
    "plotly": "reports",
    "scipy": "calibrate",
    "starlette": "explore",
    "torch": "torch",
    "uvicorn": "explore",
}
"""The extra of each optional module."""


def installed(extra: str) -> bool:
    """Returns whether all modules of an extra are installed."""
    return all(find_spec(name) is not None for name, home in EXTRAS.items() if home == extra)


def missing_extra(error: ModuleNotFoundError) -> ConfigError | None:
    """Returns the error that names the extra of a missing module; None for other modules."""
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return None
    message = f"the Python package `{error.name}` is not installed"
    hint = f"pip install 'tutti[{EXTRAS[module]}]'"
    return ConfigError(message, kind="missing_extra", hint=hint, fields={"extra": EXTRAS[module]})
