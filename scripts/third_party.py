"""Lists third-party software: crates linked into the wheel, and Python packages of each extra.

`third_party.py licences` writes THIRD_PARTY_LICENSES, which the wheel contains: each crate with its
version, licence and licence texts. `third_party.py sbom FILE` writes a software bill of materials
(CycloneDX 1.6, JSON) of the crates and the installed Python packages. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from license_expression import get_spdx_licensing
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LIST = ROOT / "THIRD_PARTY_LICENSES"
LINKED_INTO = "tutti-py"
TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
ALLOWED = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Unicode-3.0", "Zlib"}
"""SPDX identifiers of licences whose conditions are met by shipping their texts."""
NO_EXTRA = ""
TEXTS = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|COPYRIGHT)", re.IGNORECASE)

HEAD = """\
Third-party software in the wheels of tutti

The compiled module contains code of the crates below, or code that they generated. Versions are
those of Cargo.lock; `make reference` writes this file. The module also contains the Rust standard
library (MIT OR Apache-2.0, Copyright the Rust Project Developers); its compiler's documentation
lists the authors. Python packages are not part of the wheels.
"""


@dataclass(frozen=True)
class Crate:
    """A crate that is linked into the wheel."""

    name: str
    version: str
    licence: str
    repository: str
    folder: Path

    @property
    def texts(self) -> dict[str, str]:
        """The licence texts by file name."""
        files = sorted(file for file in self.folder.iterdir() if TEXTS.match(file.name))
        return {file.name: file.read_text("utf-8").strip() for file in files if file.is_file()}


@dataclass
class Package:
    """A Python package that tutti or an extra requires; without version if it is not installed."""

    name: str
    version: str | None = None
    licence: str = ""
    extras: set[str] = field(default_factory=set)


@cache
def crates() -> list[Crate]:
    """Returns the normal dependencies of the compiled module, except tutti's crates."""
    filters = [f"--filter-platform={target}" for target in TARGETS]
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version=1", *filters]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    waiting = [one for one, package in packages.items() if package["name"] == LINKED_INTO]
    seen: set[str] = set()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [dep["pkg"] for dep in nodes[node]["deps"] if _is_normal(dep)]
    others = [packages[one] for one in seen if packages[one]["source"] is not None]
    return sorted(map(_crate, others), key=lambda crate: (crate.name, crate.version))


def _is_normal(dependency: dict[str, Any]) -> bool:
    return any(kind["kind"] is None for kind in dependency["dep_kinds"])


def _crate(package: dict[str, Any]) -> Crate:
    licence = (package["license"] or "").replace("/", " OR ")
    folder = Path(package["manifest_path"]).parent
    return Crate(package["name"], package["version"], licence, package["repository"] or "", folder)


def is_allowed(licence: str) -> bool:
    """Returns whether an SPDX expression is satisfied by allowed licences alone."""
    spdx = get_spdx_licensing()
    expression = spdx.parse(licence, validate=True)
    if expression is None:
        return False
    values = {
        symbol: spdx.TRUE if symbol.key in ALLOWED else spdx.FALSE for symbol in expression.symbols
    }
    return bool(expression.subs(values, simplify=True) == spdx.TRUE)


def licences() -> str:
    """Returns the text of THIRD_PARTY_LICENSES: a table of crates, then each text once."""
    rows = [f"{one.name} {one.version}: {one.licence}" for one in crates()]
    users: dict[str, list[str]] = {}
    for one in crates():
        if not one.texts:
            message = f"{one.name} {one.version} has no licence text"
            raise SystemExit(message)
        for name, text in one.texts.items():
            users.setdefault(text, []).append(f"{one.name} ({name})")
    parts = [f"{'=' * 80}\n{', '.join(names)}\n\n{text}\n" for text, names in users.items()]
    return "\n".join([HEAD, *rows, "", *parts])


def packages() -> list[Package]:
    """Returns the Python packages that tutti and each extra require, also indirectly."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    groups = {NO_EXTRA: project["dependencies"], **extras}
    found: dict[str, Package] = {}
    for extra, texts in groups.items():
        requirements = [Requirement(text) for text in texts if extra not in ("all", "dev")]
        for one in requirements:
            if one.name == "tutti":  # the packages of other extras
                requirements += [Requirement(text) for name in one.extras for text in extras[name]]
            else:
                _require(one, extra, found)
    return sorted(found.values(), key=lambda package: package.name)


def _require(requirement: Requirement, extra: str, found: dict[str, Package]) -> None:
    """Adds a requirement of an extra, and what the installed package requires."""
    name = canonicalize_name(requirement.name)
    package = found.setdefault(name, Package(name))
    if extra in package.extras:
        return
    package.extras.add(extra)
    try:
        installed = metadata.distribution(name)
    except metadata.PackageNotFoundError:  # such as torch, which no other extra requires
        return
    package.version, package.licence = installed.version, _licence(installed.metadata)
    for text in installed.requires or ():
        needed = Requirement(text)
        selected = [{"extra": one} for one in ("", *requirement.extras)]
        if needed.marker is None or any(needed.marker.evaluate(one) for one in selected):
            _require(needed, extra, found)


def _licence(described: metadata.PackageMetadata) -> str:
    """Returns the SPDX expression of a package, or the name that it states."""
    stated = described.get("License-Expression") or ""
    names = [
        each.rpartition(" :: ")[2]
        for each in described.get_all("Classifier") or ()
        if each.startswith("License :: ")
    ]
    short = (described.get("License") or "").strip()
    return stated or ", ".join(names) or short.partition("\n")[0]


def sbom(version: str) -> str:
    """Returns the bill of materials as JSON; without time and serial number, thus reproducible."""
    from cyclonedx.contrib.license.factories import LicenseFactory
    from cyclonedx.model import Property
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    licence = LicenseFactory()

    def component(name: str, version: str | None, kind: str, stated: str, *parts: str) -> Component:
        url = PackageURL(kind, name=name, version=version)
        return Component(
            name=name,
            version=version,
            bom_ref=str(url),
            purl=url,
            type=ComponentType.LIBRARY,
            licenses=[licence.make_from_string(stated)] if stated else [],
            properties=[Property(name="tutti:part", value=part) for part in parts],
        )

    tutti = component("tutti", version, "pypi", "Apache-2.0")
    bom = Bom()
    bom.metadata.component = tutti
    parts = [component(one.name, one.version, "cargo", one.licence, "wheel") for one in crates()]
    for one in packages():
        extras = sorted(f"extra {extra}" if extra else "required" for extra in one.extras)
        parts.append(component(one.name, one.version, "pypi", one.licence, *extras))
    for part in parts:
        bom.components.add(part)
    bom.register_dependency(tutti, parts)
    written = json.loads(JsonV1Dot6(bom).output_as_string())
    written.pop("serialNumber")
    written["metadata"].pop("timestamp")
    return json.dumps(written, indent=2, sort_keys=True) + "\n"


def version_of_crates() -> str:
    """Returns the version of tutti, which Cargo.toml states."""
    tables = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    return str(tables["workspace"]["package"]["version"])


def main() -> None:
    """Writes the list of licences or the bill of materials."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("licences", "sbom"))
    parser.add_argument("file", type=Path, nargs="?", help="the file of the bill of materials")
    options = parser.parse_args()
    if refused := [one for one in crates() if not is_allowed(one.licence)]:
        sys.exit("\n".join(f"{one.name}: {one.licence} is not allowed" for one in refused))
    if options.what == "licences":
        LIST.write_text(licences(), "utf-8")
    elif options.file is None:
        parser.error("sbom: name the file")
    else:
        options.file.write_text(sbom(version_of_crates()), "utf-8")


if __name__ == "__main__":
    main()
