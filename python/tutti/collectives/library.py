"""The library of a platform in comparisons: its algorithms as rows, and its choice as the baseline.

The baseline is what the library's own model predicts for the algorithm that it selects. Its
algorithms are simulated on the links of the platform, with the costs of their protocols.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tutti import _core
from tutti.base.declared.models import LogGP, PipeliningPostal
from tutti.base.units import Time, TimePerByte
from tutti.collectives.columns import BASELINE
from tutti.collectives.difference import Difference
from tutti.collectives.request import TimedSchedule
from tutti.platforms.contention import FlowLevel
from tutti.platforms.library import with_schedule
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.ir import Schedule, schedule
from tutti.view.quantity import exact_size, format_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from tutti.base.declared.models import Model
    from tutti.base.units import Size
    from tutti.collectives.candidates import ComparisonPlan
    from tutti.collectives.request import ComparisonRequest
    from tutti.collectives.result import Run
    from tutti.platforms.library import Hops, LibraryModel, LibrarySchedule, Prediction
    from tutti.platforms.machine import Platform

    RunOf = Callable[[str, int, int], Run | str]

AGREEMENT = 0.05
"""The difference from the library's own model above which a remark states it."""
FAR = 2
"""The factor above which the time of a library's model only ranks algorithms."""
_MOST_MESSAGES = 3_000_000
"""Most messages of a schedule of a library that a comparison of all algorithms simulates."""


@dataclass
class LibraryPlan:
    """What the library of a platform selects and predicts for a request.

    Attributes:
        platform: The platform.
        model: The model of its library.
        baselines: The prediction for the library's choice, by rank count and bytes.
        predicted: The prediction for the algorithm of a row, by name, rank count and bytes.
        notes: What the predictions infer.
    """

    platform: Platform
    model: LibraryModel
    baselines: dict[tuple[int, int], Prediction] = field(default_factory=dict)
    predicted: dict[tuple[str, int, int], Prediction] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    _platforms: dict[tuple[object, ...], Platform] = field(default_factory=dict)

    @classmethod
    def of(cls, platform: Platform) -> LibraryPlan | None:
        """Returns the plan of a platform; None without a library."""
        return None if platform.library is None else cls(platform, platform.library.model)

    @property
    def name(self) -> str:
        """The name of the baseline."""
        return f"{self.model.title} default"

    def predict(self, collective: str, ranks: int, sizes: Sequence[Size]) -> str:
        """Adds the baselines of a rank count; returns why there are none, or an empty text."""
        try:
            for size in sizes:
                found = self.model.default(collective, ranks, size.bytes)
                self.baselines[ranks, size.bytes] = found
        except AlgorithmError as error:
            return error.problem
        notes = [self.model.note(ranks)]
        if self.platform.library is not None and self.platform.library.is_changed:
            notes.append(f"the model of {self.model.title} is that of the unmodified platform")
        self.notes |= dict.fromkeys(filter(None, notes))
        return ""

    def schedules(
        self, notation: str, request: ComparisonRequest, ranks: int
    ) -> list[TimedSchedule]:
        """Returns the schedules of an algorithm of the library, each with its sizes.

        A note states the sizes for which there is none, if there are others.

        Raises:
            AlgorithmError: For no size, the library considers the algorithm and a schedule fits.
        """
        found: dict[tuple[object, ...], tuple[LibrarySchedule, set[int]]] = {}
        lacking: list[tuple[Size, AlgorithmError]] = []
        for size in request.sizes:
            try:
                one = self.model.schedule(
                    notation, request.collective, ranks, size.bytes, request.root
                )
            except AlgorithmError as error:
                lacking.append((size, error))
                continue
            laid_out = one.schedule
            key = laid_out if isinstance(laid_out, str) else laid_out.name
            self.predicted[one.label, ranks, size.bytes] = one.predicted
            parts = one.label, key, one.launch_ps, one.hops, one.interval
            group = found.setdefault(parts, (one, set()))
            group[1].add(size.bytes)
        if not found:
            raise lacking[0][1]
        for problem in dict.fromkeys(error.problem for _, error in lacking):
            at = ", ".join(str(size) for size, error in lacking if error.problem == problem)
            self.notes[f"{notation} on {ranks} ranks has no row at {at}: {problem}"] = None
        return [self._case(one, sizes, request, ranks) for one, sizes in found.values()]

    def _case(
        self, one: LibrarySchedule, sizes: set[int], request: ComparisonRequest, ranks: int
    ) -> TimedSchedule:
        laid_out = one.schedule
        if not isinstance(laid_out, Schedule):
            laid_out = schedule(
                laid_out, collective=request.collective, ranks=ranks, root=request.root
            )
        messages = 2 * laid_out.chunks * ranks  # each chunk reaches every rank, and is reduced
        if request.algorithms is None and messages > _MOST_MESSAGES:
            problem = f"about {messages:,} messages, above the limit of {_MOST_MESSAGES:,}"
            raise AlgorithmError(problem, kind="wrong_ranks", fields={"ranks": ranks})
        if one.concurrent > 1 and isinstance(self.platform.effective_contention, FlowLevel):
            laid_out = laid_out.concurrent(one.concurrent)
        return TimedSchedule(
            algorithm=one.label.partition(":")[0],
            schedule=laid_out,
            messages=messages,
            notation=one.label,
            sizes=frozenset(sizes),
            label=one.label,
            platform=self.platform_of(one),
            launch="launch" if one.launch_ps is None else "latency",
        )

    def platform_of(self, one: LibrarySchedule) -> Platform:
        """Returns the platform with the costs of the protocol of a schedule.

        Channels are independent thread blocks: their messages leave a GPU at once and share its
        port. The cost per byte of the protocol is therefore the rate of the ports, and the latency
        of a step overlaps entirely. Where channels progress concurrently, each thread block has its
        part of that rate. In a chain, it sends a message when the one before is complete.
        """
        key = one.model, one.launch_ps, one.interval, one.concurrent, one.hops
        if key not in self._platforms:
            assert self.platform.library is not None  # noqa: S101 - `of` checks it
            model = self.platform.library.models.get(one.model, self.platform.model)
            if one.launch_ps is not None and one.model in self.platform.library.models:
                launch = max(0, one.launch_ps - self._latency(*one.links))
                model = model.model_copy(update={"launch": Time(ps=launch)})
            changes = self._costs(one, model)
            self._platforms[key] = self.platform.model_copy(update=changes)
        return self._platforms[key]

    def _costs(self, one: LibrarySchedule, model: Model) -> dict[str, Any]:
        """Returns the model and the contention of a schedule, as fields of a platform."""
        contention, rate = self.platform.effective_contention, getattr(model, "beta", None)
        if not (isinstance(contention, FlowLevel) and isinstance(model, PipeliningPostal)):
            return {"model": model}
        hops = one.hops
        if hops is not None and one.interval is not None:
            step, rate = self._step(hops, model), _slower(rate, hops.rate)
            gap = Time(ps=rate.core.of(one.interval))
            return {"model": LogGP(L=step, o=Time(ps=0), g=gap, G=rate, launch=model.launch)}
        if not rate:
            return {"model": model}
        step, ports = Time(ps=model.alpha_p.ps + model.alpha_r.ps), {}
        if hops is not None:
            step = self._step(hops, model)
            rate = _slower(rate, hops.rate)
            ports = {"per_message": _per_byte(hops.rate / one.concurrent)}
        ports |= {"injection": rate, "ejection": rate}
        none = {"alpha_r": Time(ps=0), "beta": TimePerByte.parse("0 ns/B")}
        return {
            "model": model.model_copy(update={"alpha_p": step, **none}),
            "contention": contention.model_copy(update=ports),
        }

    def _step(self, hops: Hops, model: PipeliningPostal) -> Time:
        """Returns the mean latency of a message in a library's model, less that of its links."""
        links = self._latency(hops.count - hops.between, hops.between)
        return Time(ps=max(1, (hops.latency_ps - model.launch.ps - links) // hops.count))

    def _latency(self, within: int, between: int) -> int:
        """Returns the latency of the links of messages within nodes and between them, in ps."""
        routes, node = self.platform.routes, self.model.ranks_per_node
        if routes is None:
            return 0
        links = within * routes.pair(0, 1 % node).latency.ps if within else 0
        return links + (between * routes.pair(0, node).latency.ps if between else 0)

    def rows(
        self, plan: ComparisonPlan, bounds: Mapping[tuple[int, int], int | None]
    ) -> list[dict[str, Any]]:
        """Returns the baselines as rows of results.

        Args:
            plan: The plan.
            bounds: Lower bounds in ps, by rank count and bytes.
        """
        rows = []
        for (ranks, size), predicted in self.baselines.items():
            time, bound = predicted.time_ps, bounds.get((ranks, size))
            collective = plan.request.collective
            rows.append({
                **plan.request_labels,
                "collective": collective,
                "algorithm": BASELINE,
                "schedule": f"{self.name}: {predicted.choice}",
                "ranks": ranks,
                "size_bytes": size,
                "time_ps": time,
                "algbw_bytes_per_s": _core.algbw(size, time),
                "busbw_bytes_per_s": _core.busbw(collective, ranks, size, time),
                "bound_ps": bound,
                "of_limit": None if bound is None else bound / time,
            })  # fmt: skip
        return rows

    def differences(self, measured: pl.DataFrame, run_of: RunOf) -> list[str]:
        """Returns a line for each simulated algorithm that differs from the library's own model.

        Args:
            measured: The results.
            run_of: Returns the run of a result, or why it is not repeated.
        """
        found: dict[tuple[str, int], list[tuple[int, int]]] = {}
        columns = measured.select("schedule", "ranks", "size_bytes", "time_ps")
        for name, ranks, size, time in columns.iter_rows():
            found.setdefault((name, ranks), []).append((size, time))
        texts = (self.difference(*key, points, run_of) for key, points in found.items())
        return [text for text in texts if text]

    def beyond(self, bounds: Mapping[tuple[int, int], int | None]) -> list[str]:
        """Returns a line on the predictions that are faster than the links carry; else none.

        Args:
            bounds: Lower bounds in ps, by rank count and bytes.
        """
        shares = {
            at: bound / predicted.time_ps
            for at, predicted in self.baselines.items()
            if (bound := bounds.get(at)) is not None and bound > predicted.time_ps
        }
        if not shares:
            return []
        ranks, size = most = max(shares, key=shares.__getitem__)
        several = f", the most of {len(shares)} sizes" if len(shares) > 1 else ""
        time = format_time(self.baselines[most].time_ps)
        text = f"the model of {self.model.title} predicts {time} for {ranks} ranks at "
        text += f"{exact_size(size)}, {shares[most]:.1%} of the bound{several}"
        return [f"{text}: faster than latency and links of the platform allow"]

    def difference(
        self, name: str, ranks: int, points: Sequence[tuple[int, int]], run_of: RunOf
    ) -> str:
        """Returns how a simulated algorithm differs from the library's own model; empty if little.

        Args:
            name: The name in results.
            ranks: The rank count.
            points: Sizes in bytes with the simulated times in ps.
            run_of: As in :meth:`differences`.
        """
        different = [
            (time / predicted.time_ps - 1, size, time)
            for size, time in points
            if (predicted := self.predicted.get((name, ranks, size))) is not None
            and abs(time / predicted.time_ps - 1) > AGREEMENT
        ]
        if not different:
            return ""
        share, size, time = max(different, key=lambda point: abs(point[0]))
        predicted = self.predicted[name, ranks, size]
        several = f", the most of {len(different)} sizes" if len(different) > 1 else ""
        text = (
            f"{name} on {ranks} ranks takes {format_time(time)} at {exact_size(size)}{several}; "
            f"the model of {self.model.title} has {format_time(predicted.time_ps)} ({share:+.0%})"
        )
        run = run_of(name, ranks, size)
        if isinstance(run, str):
            return f"{text}. {run}"
        parts = Difference.of(run, predicted)
        reasons = [self.model.reason(predicted, ranks, part.name) for part in parts.main]
        reasons.append(self._advice(parts, share))
        return ". ".join(filter(None, (text, parts.text(), *reasons)))

    def _advice(self, parts: Difference, share: float) -> str:
        """Returns which of two times to use, where it is known."""
        if "waiting" in [part.name for part in parts.main] and share > 0:
            title = self.model.title
            return f"The model of {title} has no waiting, and no link explains it: use its time"
        if 1 / (1 + share) > FAR:
            return "The library uses its time to select algorithms, not to predict this time"
        return ""


def _slower(port: TimePerByte | None, bytes_per_s: float) -> TimePerByte:
    """Returns the slower rate: that of a port with a protocol, or what NCCL's model predicts."""
    rates = filter(None, (port, _per_byte(bytes_per_s)))
    return max(rates, key=lambda rate: rate.core.of(10**9))


def _per_byte(bytes_per_s: float) -> TimePerByte:
    return TimePerByte.parse(f"{bytes_per_s / 1e9:.6g} GB/s")


def one_adapter(model: LibraryModel, notation: str, ranks: int) -> str:
    """Returns a remark on a ring that uses one network adapter of each node; empty for others."""
    per_node = model.ranks_per_node
    is_single = notation.strip() in {"ring", "ring:backward", "ring:bidirectional"}
    if not is_single or per_node < 2 or ranks <= per_node:
        return ""
    text = f"{notation} is one ring: it uses 1 of the {per_node} network adapters of a node; "
    if ranks % per_node:
        below = ranks // per_node * per_node
        return f"{text}rings that use all need complete nodes: {below} or {below + per_node} ranks"
    rotated = with_schedule(f"`{model.name}:ring`", f"ring:node={per_node},channels={per_node}")
    return f"{text}{rotated} uses all, as {model.title} does"


def with_baselines(plan: ComparisonPlan, measured: pl.DataFrame) -> pl.DataFrame:
    """Returns a frame of measurements with the baselines of the library as further rows."""
    import polars as pl

    from tutti.collectives.frames import measurement_frame

    if plan.library is None or not plan.library.baselines:
        return measured
    cells = measured.select("ranks", "size_bytes").iter_rows()
    bounds = dict(zip(cells, measured["bound_ps"], strict=True))
    rows = [one for one in plan.library.rows(plan, bounds)
            if (one["ranks"], one["size_bytes"]) in bounds]  # fmt: skip
    return pl.concat([measured, measurement_frame(rows)])
