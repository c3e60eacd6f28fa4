"""Imports of what shows results or reads files, beyond the layers that import-linter checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grimp

if TYPE_CHECKING:
    from collections.abc import Iterator

FREE = {"cli", "explore", "sweeps", "formats"}
"""Packages that read files and show results of other packages."""


def edges() -> Iterator[tuple[str, str]]:
    graph = grimp.build_graph("tutti", exclude_type_checking_imports=True, cache_dir=None)
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            yield module, imported


def is_edge_of_package(module: str) -> bool:
    """Whether a module is a `view` or a `files`, or in one; `base`, `study`, `view` are for all."""
    parts = module.split(".")
    return bool({"view", "files"} & set(parts[2:])) and parts[1] not in {"base", "study", "view"}


def test_only_their_own_package_and_the_top_import_views_and_files() -> None:
    wrong = [
        f"{module} -> {imported}"
        for module, imported in edges()
        if is_edge_of_package(imported)
        and not is_edge_of_package(module)
        and module.split(".")[1] not in FREE
        and module.split(".")[1] != imported.split(".")[1]
    ]
    assert not wrong, "\n".join(wrong)
