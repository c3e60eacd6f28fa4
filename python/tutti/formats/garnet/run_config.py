"""Reads the configuration that gem5 writes for a run: `config.ini`, or `config.json`.

It lists each object with its parameters, hence each link of the network, whatever script built it.

Source: gem5 `src/python/m5/simulate.py` (`config.ini`, `config.json`), `SimObject.py`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tutti.base.files import limits
from tutti.base.files.limits import parse_count
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import check_lines, parse_json
from tutti.formats.garnet.network import (
    MOST_CONTROLLERS,
    MOST_LINKS,
    NetworkBuilder,
    Place,
    unsupported,
)
from tutti.formats.garnet.run_keys import BRIDGES, COUNTS, KNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.formats.garnet.network import GarnetNetwork

_EXPECTED: Final = "a configuration of a run of gem5 with a GarnetNetwork"
_SECTION: Final = re.compile(r"\[([^\]]{1,256})\]\s*")
_CONTROL_BYTES: Final = "8"
"""`control_msg_size`, on which the sizes of messages build."""


class Section(NamedTuple):
    """An object of a run.

    Attributes:
        place: File and line, or file and path of the object.
        values: Its parameters; a list is a text with spaces.
    """

    place: str
    values: dict[str, str]


Sections = dict[str, Section]
"""The objects by path, such as `system.ruby.network`."""


def sections_of(text: str, *, source: str) -> Sections:
    """Returns the objects of a run.

    Raises:
        ConfigError: The text is neither `config.ini` nor `config.json`.
    """
    if text.lstrip()[:1] == "{":
        table = parse_json(text, source=source, expected=_EXPECTED)
        return dict(_objects(table, source))
    return _ini(text, source)


def _ini(text: str, source: str) -> Sections:
    check_lines(text, limits.LINE, source=source)
    sections: Sections = {}
    values: dict[str, str] | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.lstrip().startswith(("#", ";")):
            continue
        place = f"{source}:{number}"
        if heading := _SECTION.fullmatch(line):
            if heading[1] in sections:
                expected = f"one section, as in {sections[heading[1]].place}"
                raise mistake(f"[{heading[1]}] appears twice", source=place, expected=expected)
            values = {}
            sections[heading[1]] = Section(place, values)
            continue
        key, equals, value = line.partition("=")
        if not equals or values is None:
            raise mistake(f"found {shown(line[:60])}", source=place,
                          expected="[OBJECT], then lines KEY=VALUE")  # fmt: skip
        if key.strip() in values:
            raise mistake(f"`{key.strip()[:60]}` appears twice", source=place,
                          expected=f"once in [{next(reversed(sections))}]")  # fmt: skip
        values[key.strip()] = value.strip()
    return sections


def _objects(table: dict[str, Any], source: str) -> Iterator[tuple[str, Section]]:
    """Yields the objects of JSON: tables with a path and a type."""
    pending: list[Any] = [table]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        elif isinstance(value, dict):
            pending += value.values()
            path = value.get("path")
            if isinstance(path, str) and isinstance(value.get("type"), str):
                plain = {key: _plain(each) for key, each in value.items()}
                yield path, Section(f"{source}: {path[:80]}", plain)


def _plain(value: object) -> str:
    if isinstance(value, list):
        return " ".join(_plain(each) for each in value)
    if isinstance(value, dict):
        return str(value.get("path", ""))
    return str(value).lower() if isinstance(value, bool) else str(value)


class RunConfig(NamedTuple):
    """The network of a run, and the parameters of the network and of its traffic."""

    network: GarnetNetwork
    parameters: Section
    traffic: Section | None
    cycles_ps: tuple[int, int]
    """The clock periods of the network and of the traffic."""


def read_run(text: str, *, source: str) -> RunConfig:
    """Reads the network of a run.

    Raises:
        ConfigError: The text is not the configuration of a run with Garnet, or its network is
            invalid or not modelled. The message names the line.
    """
    sections = sections_of(text, source=source)
    of_type = _by_type(sections)
    networks = of_type.get("GarnetNetwork", [])
    if len(networks) != 1:
        other = "SimpleNetwork" in of_type
        raise mistake(
            f"has {len(networks)} objects of the type GarnetNetwork",
            source=source,
            expected=_EXPECTED,
            hint="run gem5 with --network=garnet" if other else "",
        )
    parameters = networks[0]
    testers = of_type.get("GarnetSyntheticTraffic", [])
    flit = integer(parameters, "ni_flit_size", 1, 1 << 16)
    network = _network(sections, parameters, 8 * flit, source)
    clocks = (_period(sections, parameters), _period(sections, (testers or networks)[0]))
    _refuse_others(sections, parameters, testers, network)
    return RunConfig(network, parameters, _tester(testers), clocks)


def _refuse_others(
    sections: Sections, parameters: Section, testers: list[Section], network: GarnetNetwork
) -> None:
    """Refuses what tutti does not model: keys, clocks, message sizes and numbers of testers."""
    links = [*_names(parameters, "ext_links"), *_names(parameters, "int_links")]
    objects = {
        "network": [parameters],
        "tester": testers,
        "router": [sections[name] for name in _names(parameters, "routers")],
        "link": [sections[name] for name in links],
    }
    lost = [
        f"{section.place}: {key} = {section.values[key][:60]}"
        for kind, each in objects.items()
        for section in each
        for key in sorted(section.values.keys() - KNOWN[kind])
        # Tables of JSON hold the objects themselves, too.
        if section.values[key] not in sections
    ]
    size = parameters.values.get("control_msg_size", _CONTROL_BYTES)
    lost += [f"{parameters.place}: control_msg_size = {size}"] * (size != _CONTROL_BYTES)
    lost += _other_clocks(sections, parameters, [*objects["router"], *objects["link"]])
    lost += _other_testers(testers, network)
    if lost:
        raise unsupported(network.source, lost)


def _other_clocks(sections: Sections, parameters: Section, objects: list[Section]) -> Iterator[str]:
    """Yields clocks of routers, links and network interfaces that are not those of the network."""
    cycle = _period(sections, parameters)
    inner = ("network_link", "network_links", "credit_link", "credit_links")
    names = [name for each in objects for key in inner for name in _names(each, key)]
    names += _names(parameters, "netifs")
    for each in [*objects, *(sections[name] for name in names if name in sections)]:
        if "clk_domain" in each.values and (other := _period(sections, each)) != cycle:
            yield f"{each.place}: a clock of {other} ps, and the network has one of {cycle} ps"


def _other_testers(testers: list[Section], network: GarnetNetwork) -> Iterator[str]:
    """Yields where testers are not one for each L1 cache, or send to some directories only."""
    if not testers:
        return
    caches = network.controllers.count("L1Cache_Controller")
    if caches and len(testers) != caches:
        yield f"{testers[0].place}: {len(testers)} testers for {caches} L1 caches"
    directories = network.controllers.count("Directory_Controller")
    if directories and testers[0].values.get("num_dest") not in {None, str(directories)}:
        others = f"num_dest = {testers[0].values['num_dest']}, and there are {directories}"
        yield f"{testers[0].place}: {others} directories"


def _by_type(sections: Sections) -> dict[str, list[Section]]:
    found: dict[str, list[Section]] = {}
    for section in sections.values():
        found.setdefault(section.values.get("type", ""), []).append(section)
    return found


def _tester(testers: list[Section]) -> Section | None:
    """Returns the traffic of all testers, which must be alike."""
    keys = ("inj_rate", "traffic_type", "inj_vnet", "num_dest", "single_sender", "single_dest",
            "num_packets_max", "clk_domain")  # fmt: skip
    for tester in testers:
        for key in keys:
            if tester.values.get(key) != testers[0].values.get(key):
                problem = f"`{key}` differs from that of {testers[0].place}"
                expected = "the same traffic at each tester"
                raise mistake(problem, source=tester.place, expected=expected)
    return testers[0] if testers else None


def _network(sections: Sections, parameters: Section, flit_bits: int, source: str) -> GarnetNetwork:
    links = _listed(sections, parameters, "ext_links", MOST_CONTROLLERS)
    names = sorted(
        {_of(link, "ext_node") for link in links}, key=lambda name: _order(sections, name)
    )
    controllers = {name: index for index, name in enumerate(names)}
    kinds = [sections[name].values.get("type", "") if name in sections else "" for name in names]
    builder = NetworkBuilder(source, flit_bits, kinds)
    routers: dict[str, int] = {}
    for router in _names(parameters, "routers"):
        section = _section(sections, router, parameters)
        number = integer(section, "router_id", 0, limits.MOST)
        builder.router(Place(section.place, _router_values(section, parameters, number)))
        routers[router] = number

    def router_of(link: Section, key: str) -> int:
        name = _of(link, key)
        if name not in routers:
            raise mistake(f"`{key}` is {shown(name[:60])}", source=link.place,
                          expected="a router of the network")  # fmt: skip
        return routers[name]

    for link in links:
        place = Place(link.place, _link_values(link))
        builder.ext_link(place, controllers[_of(link, "ext_node")], router_of(link, "int_node"))
    for link in _listed(sections, parameters, "int_links", MOST_LINKS):
        ends = router_of(link, "src_node"), router_of(link, "dst_node")
        builder.int_link(Place(link.place, _link_values(link)), *ends)
    return builder.network()


def _router_values(section: Section, parameters: Section, number: int) -> dict[str, object]:
    """Returns what a router states; what it has from the network is omitted."""
    values = {"router_id": number, **_counts(section, "router")}
    for key, inherited in (("vcs_per_vnet",) * 2, ("virt_nets", "number_of_virtual_networks")):
        if section.values.get(key) == parameters.values.get(inherited):
            values.pop(key, None)
    return values


def _order(sections: Sections, name: str) -> tuple[bool, int, int, str]:
    """Sorts controllers as gem5's scripts list them: by type, then number."""
    order = ("L1Cache", "L2Cache", "Directory", "DMA")
    values = sections[name].values if name in sections else {}
    kind = values.get("type", "").removesuffix("_Controller")
    place = next((at for at, each in enumerate(order) if each == kind), len(order))
    version = parse_count(values.get("version", "")) or 0
    return place == len(order), place, version, name


def _link_values(section: Section) -> dict[str, object]:
    """Returns the parameters of a link; flags that are not set, and no vnets, are omitted."""
    values = section.values
    found = _counts(section, "link")
    found |= {key: values[key] == "true" or values[key] for key in BRIDGES
              if values.get(key, "false") != "false"}  # fmt: skip
    texts = ("src_outport", "supported_vnets")
    return {**found, **{key: values[key] for key in texts if values.get(key)}}


def _counts(section: Section, kind: str) -> dict[str, object]:
    """Returns the integers that an object states; `NetworkBuilder` refuses other texts."""
    stated = {key: section.values[key] for key in COUNTS[kind] if key in section.values}
    counts = {key: parse_count(text) for key, text in stated.items()}
    return {key: text if counts[key] is None else counts[key] for key, text in stated.items()}


def _listed(sections: Sections, of: Section, key: str, most: int) -> list[Section]:
    names = _names(of, key)
    if len(names) > most:
        raise mistake(f"`{key}` has {len(names):,} objects", source=of.place,
                      expected=f"at most {most:,}")  # fmt: skip
    return [_section(sections, name, of) for name in names]


def _names(of: Section, key: str) -> list[str]:
    return of.values.get(key, "").split()


def _section(sections: Sections, name: str, by: Section) -> Section:
    if name not in sections:
        raise mistake(f"the object {shown(name[:80])} is missing", source=by.place,
                      expected="a section for each object")  # fmt: skip
    return sections[name]


def _of(section: Section, key: str) -> str:
    value = section.values.get(key, "")
    if not value:
        raise mistake(f"`{key}` is missing", source=section.place, expected=f"{key}=OBJECT")
    return value


def integer(section: Section, key: str, least: int, most: int, default: int | None = None) -> int:
    """Returns an integer of an object.

    Raises:
        ConfigError: It is missing or out of range.
    """
    text = section.values.get(key)
    if text is None and default is not None:
        return default
    value = parse_count(text or "", most=most)
    if value is None or value < least:
        raise mistake(f"`{key}` is {shown((text or '')[:60])}", source=section.place,
                      expected=f"an integer from {least} to {most:,}")  # fmt: skip
    return value


def _period(sections: Sections, of: Section) -> int:
    """Returns the clock period of an object in ticks, which gem5 sets to 1 ps."""
    return integer(_section(sections, _of(of, "clk_domain"), of), "clock", 1, 10**9)
