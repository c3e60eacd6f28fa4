"""Fat trees of htsim: files with two or three tiers of switches.

Source: ``FatTreeTopology::load``, ``set_custom_params`` and ``init_network`` of
``sim/datacenter/fat_tree_topology.cpp`` in Broadcom/csg-htsim (2026-03). Tier 0 are the switches
of the nodes. A switch has all its nodes in sequence; pods, too.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from tutti import _core
from tutti.base.files import limits
from tutti.base.files.limits import parse_count
from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.base.files.reader import read_text
from tutti.base.units import TimePerByte
from tutti.formats.link_values import cables_of, gbps_of, hashes
from tutti.topologies import Topology

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.topologies import Link

_EXPECTED: Final = "a topology of htsim"
_MOST: Final = 1 << 20
_TIER_KEYS: Final = (
    "downlink_speed_gbps",
    "radix_down",
    "radix_up",
    "downlink_latency_ns",
    "switch_latency_ns",
    "bundle",
    "oversubscribed",
    "queue_up",
    "queue_down",
)


def read_fat_tree(path: Path) -> tuple[Topology, tuple[str, ...]]:
    """Reads the topology file of a fat tree.

    The latency of a switch is added to the links that leave it.

    Returns:
        The topology, and a line for each part of the file that it does not represent.

    Raises:
        ConfigError: The file cannot be read, or its numbers do not fit each other.
    """
    text = read_text(path, limits.Bytes.CONFIG, _EXPECTED, line=limits.LOG_LINE)
    head, tiers = _parsed(text, str(path))
    builder = _Builder(head, tiers, str(path))
    core = _core.Topology.from_links(
        path.stem or str(path),
        [f"npu{rank}" for rank in range(head["nodes"])],
        [("switch", f"tier{tier}.{index}") for tier, index in builder.switches()],
        builder.links(),
    )
    queues = any(key.startswith("queue") for tier in tiers for key in tier)
    lost = ["sizes of queues"] if queues else []
    return Topology(core, routing="ecmp"), (*lost, hashes("htsim"))


def _parsed(text: str, source: str) -> tuple[dict[str, int], list[dict[str, int]]]:
    """Returns the header and the values of each tier."""
    head: dict[str, int] = {}
    tiers: list[dict[str, int]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        key = words[0].lower()
        known = _TIER_KEYS if tiers else ("nodes", "tiers", "podsize")
        value = parse_count(words[1], most=_MOST) if len(words) > 1 else None
        place = f"{source}, line {number}"
        if value is None or key not in (*known, "tier"):
            raise mistake(
                f"`{shown(line.strip())[1:-1]}` is invalid",
                source=place,
                expected=f"an integer of at most {_MOST:,} after one of {', '.join(known)}",
                hint=did_you_mean(key, known),
            )
        into = tiers[-1] if tiers else head
        if key == "tier" and value == len(tiers) and len(tiers) < 3:
            tiers.append({})
        elif key == "tier" or key in into:
            raise mistake(f"`{key}` appears twice", source=place, expected="tiers 0, 1 and 2 once")
        else:
            into[key] = value
    if not 2 <= len(tiers) == head.get("tiers"):
        raise mistake(f"has {len(tiers)} tiers", source=source, expected="2 or 3, as in `Tiers`")
    return head, tiers


class _Builder:
    """Builds the switches and links of a file."""

    def __init__(self, head: dict[str, int], tiers: list[dict[str, int]], source: str) -> None:
        self._source, self._tiers = source, tiers
        for values, keys in (
            (head, ("nodes", "podsize")),
            *(
                (tier, ("downlink_speed_gbps", "radix_down", "downlink_latency_ns"))
                for tier in tiers
            ),
            *((tier, ("radix_up",)) for tier in tiers[:-1]),
        ):
            for key in keys:
                self._check(values.get(key, 0) > 0, f"`{key}` is missing or zero")
        self._nodes = head["nodes"]
        down = [tier["radix_down"] for tier in tiers]
        bundle = [max(1, tier.get("bundle", 1)) for tier in tiers]
        self._pods = self._nodes // head["podsize"]
        self._tors = head["podsize"] // down[0]
        self._aggs = tiers[0]["radix_up"] // bundle[1]
        self._check(head["podsize"] * self._pods == self._nodes, "pods do not divide the nodes")
        self._check(self._tors * down[0] == head["podsize"], "switches do not divide the pods")
        self._check(bundle[0] == 1, "nodes have bundles of cables")
        self._check(self._aggs * bundle[1] == tiers[0]["radix_up"], "`bundle` does not divide")
        self._check(self._tors * bundle[1] == down[1], "`radix_down` of tier 1 does not fit a pod")
        self._each = 0
        if len(tiers) == 2:
            self._check(self._pods == 1, "two tiers have several pods")
        else:
            self._each = tiers[1]["radix_up"] // bundle[2]
            self._check(self._each * bundle[2] == tiers[1]["radix_up"], "`bundle` does not divide")
            self._check(self._pods * bundle[2] == down[2], "`radix_down` of tier 2 is not the pods")
        self._bundle = bundle
        self._check_oversubscription()
        total = self._nodes * (1 + tiers[0]["radix_up"] + tiers[1].get("radix_up", 0))
        self._check(total <= _MOST, f"it has more than {_MOST:,} links")

    def _check(self, condition: bool, problem: str) -> None:
        if not condition:
            raise mistake(problem, source=self._source, expected="numbers that fit each other")

    def _check_oversubscription(self) -> None:
        """Compares the stated oversubscription with the ports and rates, as htsim does."""
        for number, (tier, above) in enumerate(itertools.pairwise(self._tiers)):
            stated = tier.get("oversubscribed", 0)
            down = tier["radix_down"] * tier["downlink_speed_gbps"]
            up = tier["radix_up"] * above["downlink_speed_gbps"]
            if stated and stated * up != down:
                raise mistake(
                    f"`Oversubscribed` of tier {number} is {stated}, but its switches have "
                    f"{down} Gb/s down and {up} Gb/s up",
                    source=self._source,
                    expected=f"{down / up:g}, or other ports and rates",
                )

    def _counts(self) -> list[int]:
        return [self._tors * self._pods, self._aggs * self._pods, self._aggs * self._each]

    def switches(self) -> list[tuple[int, int]]:
        """Returns tier and number of each switch."""
        return [(tier, index) for tier, n in enumerate(self._counts()) for index in range(n)]

    def links(self) -> list[tuple[int, int, tuple[_core.TimePerByte, int, int | None]]]:
        """Returns all links, between vertex numbers."""
        tors, aggs, _ = self._counts()
        first = [self._nodes, self._nodes + tors, self._nodes + tors + aggs]
        cables = [
            (node, first[0] + node // self._tiers[0]["radix_down"], 0)
            for node in range(self._nodes)
        ]
        for pod in range(self._pods):
            for position in range(self._aggs):
                agg = first[1] + pod * self._aggs + position
                for tor in range(self._tors):
                    below = first[0] + pod * self._tors + tor
                    cables += [(below, agg, 1)] * self._bundle[1]
                for index in range(self._each):
                    core = first[2] + position + self._aggs * index
                    cables += [(agg, core, 2)] * self._bundle[2]
        return [link for lower, upper, tier in cables for link in self._cable(lower, upper, tier)]

    def _cable(
        self, lower: int, upper: int, tier: int
    ) -> list[tuple[int, int, tuple[_core.TimePerByte, int, int | None]]]:
        values = self._tiers[tier]
        rate = TimePerByte.parse(f"{values['downlink_speed_gbps']} Gb/s").core
        ns = values["downlink_latency_ns"]
        below = self._tiers[tier - 1].get("switch_latency_ns", 0) if tier else 0
        up, down = (ns + below) * 1000, (ns + values.get("switch_latency_ns", 0)) * 1000
        return [(lower, upper, (rate, up, None)), (upper, lower, (rate, down, None))]


@dataclass
class _Tier:
    """The switches of a tier: all have the same ports.

    Attributes:
        switches: Their names.
        down: The cables of each switch to the tier below, by name of the other end.
        radix: Ports of a switch to the tier below.
        bundle: Parallel cables between two switches, or to a node.
        gbps: Rate of a cable to the tier below.
        latency_ns: Latency of such a cable.
    """

    switches: list[str]
    down: dict[str, Counter[str]]
    radix: int
    bundle: int
    gbps: int
    latency_ns: int


def write_fat_tree(topology: Topology, path: Path) -> tuple[str, ...]:
    """Writes the topology file of a fat tree.

    Returns:
        A line for each part of the topology that the file does not represent.

    Raises:
        ConfigError: The topology is not a fat tree that htsim can build; with the reason.
    """
    tiers = _Tiers(topology, str(path))
    found = tiers.found()
    lines = [
        f"Nodes {topology.ranks}",
        f"Tiers {len(found)}",
        f"Podsize {tiers.pod_size(found)}",
    ]
    for number, tier in enumerate(found):
        above = found[number + 1] if number + 1 < len(found) else None
        lines += ["", f"Tier {number}", f"Downlink_speed_Gbps {tier.gbps}"]
        lines.append(f"Radix_Down {tier.radix}")
        if above is not None:
            up = len(above.switches) * above.radix // len(tier.switches)
            lines.append(f"Radix_Up {up}")
            lines.append(f"Oversubscribed {tiers.oversubscription(number, tier, above, up)}")
        lines.append(f"Downlink_Latency_ns {tier.latency_ns}")
        if tier.bundle > 1:
            lines.append(f"Bundle {tier.bundle}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    lost = ["names and order of the switches"]
    if any(link.length for link in topology.links):
        lost.append("lengths of links")
    return tuple(lost)


class _Tiers:
    """Finds the tiers of a topology."""

    def __init__(self, topology: Topology, source: str) -> None:
        self._topology, self._source = topology, source
        self._cables: dict[str, list[Link]] = defaultdict(list)
        cables, single = cables_of(topology.links)
        if single:
            self._refuse(
                f"the link from {single[0].source} to {single[0].target} has no equal reverse"
            )
        self._other: dict[str, Counter[str]] = defaultdict(Counter)
        for link in cables:
            for here, there in ((link.source, link.target), (link.target, link.source)):
                self._cables[here].append(link)
                self._other[here][there] += 1

    def _refuse(self, problem: str) -> NoReturn:
        raise mistake(
            f"the topology is not a fat tree of htsim: {problem}",
            source=self._source,
            expected="two or three tiers of equal switches, and nodes with one cable",
        )

    def found(self) -> list[_Tier]:
        """Returns the tiers from the nodes to the top."""
        below = [v.name for v in self._topology.vertices if v.rank is not None]
        if any(sum(self._other[name].values()) != 1 for name in below):
            self._refuse("an NPU does not have exactly one cable")
        seen = set(below)
        tiers: list[_Tier] = []
        while True:
            switches = list(dict.fromkeys(
                other for name in below for other in self._other[name] if other not in seen
            ))  # fmt: skip
            if not switches:
                break
            tiers.append(self._tier(switches, set(below), seen))
            seen.update(switches)
            below = switches
        if not 2 <= len(tiers) <= 3:
            self._refuse(f"it has {len(tiers)} tiers of switches")
        self._check_order(tiers[0])
        return tiers

    def _tier(self, switches: list[str], below: set[str], seen: set[str]) -> _Tier:
        members = set(switches)
        down = {
            name: Counter({o: n for o, n in self._other[name].items() if o in below})
            for name in switches
        }
        for name in switches:
            if any(other in members or (other in seen - below) for other in self._other[name]):
                self._refuse(f"{name} has a cable within its tier")
        links = [
            link
            for name in switches
            for link in self._cables[name]
            if link.source in below or link.target in below
        ]
        values = {(link.rate, link.latency.ps) for link in links}
        radixes = {sum(each.values()) for each in down.values()}
        bundles = {count for each in down.values() for count in each.values()}
        if len(values) != 1 or len(radixes) != 1 or len(bundles) != 1:
            self._refuse(f"the switches of the tier of {switches[0]} or their cables differ")
        rate, latency = values.pop()
        gbps, _ = gbps_of(rate)
        if gbps != int(gbps) or latency % 1000 or latency == 0:
            self._refuse(f"{rate} and {latency} ps are not in Gb/s and in ns from 1")
        return _Tier(switches, down, radixes.pop(), bundles.pop(), int(gbps), latency // 1000)

    def _check_order(self, tier: _Tier) -> None:
        names = [v.name for v in self._topology.vertices]
        for number, switch in enumerate(tier.switches):
            ranks = names[number * tier.radix : (number + 1) * tier.radix]
            if set(tier.down[switch]) != set(ranks):
                self._refuse(f"the ranks of {switch} are not in sequence")

    def pod_size(self, tiers: list[_Tier]) -> int:
        """Returns the nodes of a pod, after a check of the cables of pods and of the top tier."""
        top = tiers[-1]
        if len(tiers) == 2:
            if any(set(each) != set(tiers[0].switches) for each in top.down.values()):
                self._refuse("a switch of the top tier lacks a switch of the nodes")
            return self._topology.ranks
        lower, middle = tiers[0], tiers[1]
        pods: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name in middle.switches:
            pods[tuple(sorted(middle.down[name]))].append(name)
        size = len(next(iter(pods)))
        positions = len(next(iter(pods.values())))
        members = [name for pod in pods for name in pod]
        if (
            len(members) != len(lower.switches)
            or len(set(members)) != len(members)
            or any(len(pod) != size or len(found) != positions for pod, found in pods.items())
        ):
            self._refuse("its pods are not complete and equal")
        self._check_pods(lower, [set(pod) for pod in pods], size)
        self._check_top(top, list(pods.values()), positions)
        return size * lower.radix

    def _check_pods(self, lower: _Tier, pods: list[set[str]], size: int) -> None:
        for start in range(0, len(lower.switches), size):
            if set(lower.switches[start : start + size]) not in pods:
                self._refuse("the ranks of a pod are not in sequence")

    def _check_top(self, top: _Tier, pods: list[list[str]], positions: int) -> None:
        """Checks that each top switch has one cable bundle to a switch of each pod, by position."""
        groups: dict[tuple[str, ...], int] = defaultdict(int)
        for each in top.down.values():
            groups[tuple(sorted(each))] += 1
        members = [name for group in groups for name in group]
        pod_of = {name: number for number, pod in enumerate(pods) for name in pod}
        if (
            len(groups) != positions
            or len(set(members)) != len(members)
            or len(set(groups.values())) != 1
            or any({pod_of[name] for name in group} != set(range(len(pods))) for group in groups)
        ):
            self._refuse("its top switches do not join one switch of each pod, by position")

    def oversubscription(self, number: int, tier: _Tier, above: _Tier, up: int) -> int:
        """Returns the rate towards the nodes over that to the tier above, as htsim checks it."""
        down_rate, up_rate = tier.radix * tier.gbps, up * above.gbps
        ratio = down_rate // up_rate
        if ratio * up_rate != down_rate or (number == 0 and tier.radix // up != ratio):
            self._refuse(f"tier {number} has {down_rate} Gb/s down and {up_rate} Gb/s up")
        return ratio
