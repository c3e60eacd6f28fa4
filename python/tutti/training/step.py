"""Training steps: computation and communication of NPUs on a torus or a platform.

Examples:
    >>> from tutti.training.endpoint import Npu, Ring, configurations
    >>> from tutti.base.units import Time, TimePerByte
    >>> from tutti.workloads import build
    >>> def ring(name, rate, latency):
    ...     return Ring(name, 4, TimePerByte.parse(rate), Time.parse(latency))
    >>> rings = (ring("local", "200 GB/s", "72 ns"), ring("vertical", "25 GB/s", "402 ns"))
    >>> step = Step(model=build("resnet50"), batch=32, rings=rings)
    >>> run = step.run(configurations()["ace"])
    >>> run.compute + run.exposed + run.idle == run.total.ps
    True
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from tutti import _core
from tutti.base.units import Size, Time, TimePerByte
from tutti.training.endpoint import Efficiency, Npu
from tutti.training.fabric import StepNetwork
from tutti.training.isolated import check_detail, isolated
from tutti.training.results import StepBound, TrainingResult
from tutti.training.runs import STABLE_COUNTS
from tutti.workloads.compute import PassTimes, Roofline, cover, covered, roofline
from tutti.workloads.errors import WorkloadError
from tutti.workloads.kernels import Kernels
from tutti.workloads.model import PASSES
from tutti.workloads.parallel import Parallelism
from tutti.workloads.trace import NodeRates, programs
from tutti.workloads.transfers import Elements

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tutti.formats.chakra.reader import ChakraTrace
    from tutti.platforms.machine import Platform
    from tutti.schedules.ir import Schedule
    from tutti.training.capture.programs import CapturedWork
    from tutti.training.endpoint import Configuration, Ring
    from tutti.training.fabric import Channels, Dimension
    from tutti.workloads import Model, ModelLayer
    from tutti.workloads.compute import ComputeModel
    from tutti.workloads.parallel import Divided, Division, LayerTransfers, Stages, Transfer

    _Inputs = tuple[
        list[_core.TrainingProgram],
        _core.StepFabric,
        _core.Endpoint,
        _core.FabricSettings,
        list[int],
        list[_core.TrainingProgram],
    ]

Chunk = Annotated[Size, Field(description="The largest chunk of a collective.")]
Message = Annotated[Size, Field(description="The largest message of software or DMA.")]
Order = Annotated[
    Literal["lifo", "fifo"],
    Field(description="Priority of collectives: the newest first (`lifo`) or the oldest."),
]
Detail = Annotated[
    Literal["packets", "flows", "isolated"],
    Field(
        description="How finely communication is simulated: `packets` behind endpoints; `flows` on "
        "a platform without endpoints, for steps of thousands of NPUs; `isolated`, each collective "
        "with the time of its simulation alone."
    ),
]
Bucket = Annotated[
    Size | None,
    Field(description="Size of gradient buckets; if absent, each layer has a separate collective."),
]


Left = tuple[int, TimePerByte]
"""Operations per second and memory bandwidth of an NPU that are left to compute."""
Resources = Literal["left", "unreserved", "all"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """A training step: a model on the NPUs of a torus or a platform.

    Attributes:
        model: The model.
        batch: Samples per NPU, or per group of NPUs that share a model's weights.
        rings: The rings of the torus, starting with the ring inside a package; or the dimensions of
            the NPUs of `platform`, innermost first.
        platform: A platform with a topology, instead of a torus.
        algorithms: The algorithm of each collective, as in :class:`StepNetwork`.
        npu: The parameters of all NPUs.
        element: Bytes of an activation, weight or gradient (FP16: 2).
        elements: Other bytes per element of communication.
        iterations: The number of consecutive iterations; `stable` runs up to 64, until two differ
            by at most a thousandth.
        efficiency: The fraction of link bandwidth that carries data.
        parallelism: The degrees of parallelism.
        compute: The compute model of an NPU.
        detail: How finely communication is simulated: `packets` behind endpoints; `flows` on a
            platform without endpoints, for steps of thousands of NPUs; `isolated`, each collective
            with the time of its simulation alone.
        every_npu: Whether to simulate every NPU, instead of one that represents all.
        window: The length of windows for utilisation over time; None records nothing.
        traces: The recorded iteration of each NPU, in place of the model.
        captured: The captured step of a PyTorch program, in place of the model.
        slowdowns: By NPU, the factor on the time of its passes, at least 1; empty for 1.
    """

    model: Model
    batch: int
    rings: tuple[Ring, ...] | tuple[Dimension, ...]
    platform: Platform | None = None
    algorithms: Mapping[str, str | Schedule | Channels] = field(default_factory=dict)
    npu: Npu = field(default_factory=Npu)
    element: int = 2
    elements: Elements = field(default_factory=Elements)
    iterations: int | Literal["stable"] = 2
    efficiency: Efficiency = 1.0
    chunk: Chunk = Size.parse("64 KiB")
    message: Message = Size.parse("8 KiB")
    order: Order = "lifo"
    bucket: Bucket = None
    parallelism: Division = field(default_factory=Parallelism)
    compute: ComputeModel = field(default_factory=Roofline)
    detail: Detail = "packets"
    every_npu: bool = False
    window: Time | None = None
    traces: tuple[ChakraTrace, ...] = ()
    captured: CapturedWork | None = None
    slowdowns: tuple[float, ...] = ()

    def run(self, configuration: Configuration) -> TrainingResult:
        """Simulates the step with an endpoint configuration.

        Raises:
            EndpointError: The endpoint is invalid, or its scratchpad is smaller than a chunk.
            TopologyError: The torus is invalid.
            WorkloadError: The workload is invalid, or does not fit the network.
            AlgorithmError: An algorithm does not fit the groups of its collective.
            TraceError: The network does not support a trace.
        """
        if self.iterations == "stable" and not self.is_recorded:
            return self._until_stable(configuration)
        return self.result(configuration, _core.simulate_training(*self._inputs(configuration)))

    def result(self, configuration: Configuration, record: _core.TrainingRecord) -> TrainingResult:
        """Returns the result of a run of :meth:`case`."""
        return TrainingResult(step=self, configuration=configuration, record=record)

    def case(self, configuration: Configuration) -> _core.TrainingCase:
        """Returns the inputs of a run of a fixed number of iterations.

        Raises:
            TuttiError: As :meth:`run`.
        """
        return _core.TrainingCase(*self._inputs(configuration))

    def _inputs(self, configuration: Configuration) -> _Inputs:
        """Returns the arguments of :class:`tutti._core.TrainingCase`."""
        if self.detail != "packets":
            check_detail(self, configuration)
        configuration.check()
        found = self.programs(configuration)
        transfers = sorted({one for program in found for one in program.transfers})
        network = self.network

        def endpoint(fabric: _core.StepFabric) -> _core.Endpoint:
            sizes = {"chunk": self.chunk, "message": self.message}
            return configuration.endpoint(self.npu, fabric, transfers=transfers, **sizes)

        def settings(fabric: _core.StepFabric, *, launches: bool) -> _core.FabricSettings:
            alike = len(found) == 1 and network.acts_alike(fabric, transfers)
            return self._settings(configuration, is_alike=alike, launches=launches)

        def run(fabric: _core.StepFabric, program: _core.TrainingProgram) -> int:
            of = fabric, endpoint(fabric), settings(fabric, launches=True)
            return _core.simulate_training([program], *of).end_ps

        if self.detail == "isolated":
            fabric = isolated(network, found, run)
        else:
            fabric = network.fabric(transfers, run)
        of = self.numbers(configuration) if len(found) > 1 else []
        is_static = configuration.reservation == "static"
        unreserved = [] if is_static else self.programs(configuration, "unreserved")
        # The times of isolated collectives contain their launch.
        of_step = settings(fabric, launches=self.detail != "isolated")
        return found, fabric, endpoint(fabric), of_step, of, unreserved

    def _settings(
        self, configuration: Configuration, *, is_alike: bool, launches: bool
    ) -> _core.FabricSettings:
        """Returns the settings of the core; without `is_alike`, every NPU is simulated."""
        return _core.FabricSettings(
            chunk=self.chunk.bytes,
            message=self.message.bytes,
            order=self.order,
            every_npu=self.every_npu or not is_alike,
            detail="packets" if self.detail == "packets" else "flows",
            window_ps=self.window.ps if self.window else 0,
            launch_ps=configuration.launch(self.platform).ps if launches else 0,
        )

    @property
    def is_recorded(self) -> bool:
        """Whether traces or a captured step replace the model."""
        return bool(self.traces) or self.captured is not None

    @property
    def network(self) -> StepNetwork:
        """The network, and the algorithms of collectives."""
        return StepNetwork(
            rings=self.rings,
            efficiency=self.efficiency,
            platform=self.platform,
            algorithms=self.algorithms,
            library=self.detail != "packets",
        )

    def _until_stable(self, configuration: Configuration) -> TrainingResult:
        for count in STABLE_COUNTS:
            result = replace(self, iterations=count).run(configuration)
            if result.is_stable:
                break
        return result

    @property
    def npus(self) -> int:
        """The number of NPUs."""
        return math.prod(ring.nodes for ring in self.rings)

    def numbers(self, configuration: Configuration) -> list[int]:
        """Returns the number of the program of each NPU among :meth:`programs`."""
        pairs = self._pairs(configuration)
        if not self.slowdowns:
            return [stage for _, stage in pairs]
        number = {pair: place for place, pair in enumerate(sorted(set(pairs)))}
        return [number[pair] for pair in pairs]

    def _pairs(self, configuration: Configuration) -> list[tuple[float, int]]:
        """Returns the slowdown and the stage of each NPU.

        Raises:
            WorkloadError: There is not one slowdown of at least 1 for each NPU, or there are
                traces, whose times are recorded.
        """
        slowdowns, npus = self.slowdowns or (1.0,) * self.npus, self.npus
        problem = None
        if self.slowdowns and self.traces:
            problem = "traces have recorded times: expected no slowdowns"
        elif len(slowdowns) != npus:
            problem = f"{len(slowdowns)} slowdowns for {npus} NPUs: expected one per NPU"
        elif not all(1 <= one <= _SLOWEST for one in slowdowns):
            problem = "a slowdown is not from 1 to 1000: expected factors on the time of passes"
        if problem:
            raise WorkloadError(problem, kind="slowdowns")
        return list(zip(slowdowns, self._numbers(configuration), strict=True))

    def _numbers(self, configuration: Configuration) -> list[int]:
        """Returns the number of the trace or stage of each NPU."""
        if self.captured is not None:
            return self.captured.numbers()
        if self.traces:
            return list(range(self.npus))
        stages = self._stage_rings(configuration)
        numbers = [0]
        among = 1
        for ring in self.rings:
            step = among if ring.name in stages else 0
            numbers = [number + at * step for at in range(ring.nodes) for number in numbers]
            among *= ring.nodes if step else 1
        return numbers

    def _stage_rings(self, configuration: Configuration) -> tuple[str, ...]:
        """Returns the rings along which the stages of a pipeline lie."""
        if self.is_recorded:
            return ()
        pipeline = self.divided(configuration).pipeline
        return pipeline.rings if pipeline else ()

    def programs(
        self, configuration: Configuration, resources: Resources = "left"
    ) -> list[_core.TrainingProgram]:
        """Returns the program of each trace or stage, or one program if all NPUs are equal.

        Args:
            configuration: The endpoint configuration.
            resources: The resources of computation: those that the configuration leaves (`left`),
                these and the memory bandwidth that it reserves (`unreserved`), or the complete NPU
                (`all`). The programs differ in the times of tasks only.

        Raises:
            TraceError: The torus does not support a trace.
            WorkloadError: The parallelism does not divide the model.
        """
        key = configuration, resources
        if key not in self._programs:
            if resources == "all":
                left = self.npu.without(0, None)
            elif resources == "unreserved":
                left = configuration.unreserved(self.npu)
            else:
                left = configuration.compute(self.npu)
            self._programs[key] = self._programs_of(configuration, left)
        return self._programs[key]

    @cached_property
    def _programs(self) -> dict[tuple[Configuration, Resources], list[_core.TrainingProgram]]:
        """The programs of each configuration: runs, bounds and views use the same."""
        return {}

    def sharing(self, step: Step) -> Step:
        """Returns this step with the programs of another, from which only its network differs."""
        vars(self)["_programs"] = step._programs
        return self

    def _programs_of(self, configuration: Configuration, left: Left) -> list[_core.TrainingProgram]:
        if not self.traces:
            return self._stages(configuration, left)
        sizes = [ring.nodes for ring in self.rings]
        return programs(self.traces, sizes, timing=NodeRates(*left))

    def _stages(self, configuration: Configuration, left: Left) -> list[_core.TrainingProgram]:
        """Returns the program of each stage, with the resources that are left to compute."""
        part = None if self.captured is not None else self.divided(configuration)
        times = PassTimes(self.compute, part.samples if part else 0, self.element, left)
        if part is not None:
            times = times.within([layer for layer, _ in part.layers], part.recompute)
        if not self.slowdowns:
            return self._at_speed(configuration, part, times)
        found = []
        for speed, pairs in groupby(sorted(set(self._pairs(configuration))), itemgetter(0)):
            stages = [stage for _, stage in pairs]
            found += self._at_speed(configuration, part, replace(times, slowdown=speed), stages)
        return found

    def _at_speed(
        self,
        configuration: Configuration,
        part: Divided | None,
        times: PassTimes,
        stages: Sequence[int] | None = None,
    ) -> list[_core.TrainingProgram]:
        """Returns the programs of stages, by default of all, for NPUs with a slowdown."""
        if self.captured is not None:
            captured = self.captured.programs(times.left, times.slowdown)
            return captured if stages is None else [captured[stage] for stage in stages]
        assert part is not None  # noqa: S101 - only a captured step has no parts
        layers = self._layers(part, times)
        embedding = self._embedding(configuration, times.left)

        def program(pipeline: _core.PipelineStage | None) -> _core.TrainingProgram:
            return _core.TrainingProgram(
                layers,
                iterations=1 if self.iterations == "stable" else self.iterations,
                overlap=configuration.overlap,
                bucket=self.bucket.bytes if self.bucket else None,
                embedding=embedding,
                prefetch=part.prefetch,
                pipeline=pipeline,
            )

        if part.pipeline is None:
            return [program(None)]
        each = range(part.pipeline.stages) if stages is None else stages
        return [program(self._pipeline(part.pipeline, stage)) for stage in each]

    def bound(self, configuration: Configuration) -> StepBound:
        """Returns a lower bound of the time of all iterations, for any algorithms.

        If `iterations` is `stable`, the bound is that of one iteration.

        Raises:
            TraceError: The network does not support a trace.
            WorkloadError: The workload is invalid, or does not fit the network.
            TopologyError: The torus is invalid.
        """
        # Slower NPUs only lengthen a step.
        equally_fast = replace(self, slowdowns=()) if self.slowdowns else self
        is_static = configuration.reservation == "static"
        found = equally_fast.programs(configuration, "left" if is_static else "unreserved")
        bound = _core.step_bound(
            found,
            self.network.links,
            [(ring.name, ring.nodes) for ring in self.rings],
            configuration.costs(self.npu),
            launch_ps=configuration.launch(self.platform).ps,
            of=equally_fast.numbers(configuration) if len(found) > 1 else [],
            is_alike=not self.is_recorded or len(found) == 1,
        )
        return StepBound.of(bound)

    def names(self, configuration: Configuration) -> list[str]:
        """Returns the layers of an NPU in order; for traces, the nodes of the first NPU."""
        if self.is_recorded:
            return list(dict.fromkeys(task.layer for task in self.programs(configuration)[0].tasks))
        return list(dict.fromkeys(layer.name for layer, _ in self.divided(configuration).layers))

    def divided(self, configuration: Configuration) -> Divided:
        """Returns the parts of the model on the NPUs, and their communication.

        Raises:
            WorkloadError: The parallelism does not divide the model.
        """
        left = configuration.compute(self.npu)

        def cost(layer: ModelLayer, samples: int) -> int:
            if isinstance(self.compute, Kernels):
                return layer.macs  # as plans divide stages, for their times and their memory
            times = PassTimes(self.compute, samples, self.element, left)
            return sum(times.of(layer, which) for which in PASSES)

        rings = [(ring.name, ring.nodes) for ring in self.rings]
        one = self.parallelism
        given = self.model, self.batch, self.element
        return one.divide(*given, rings, cost, elements=self.elements)

    def _layers(self, part: Divided, times: PassTimes) -> list[_core.TrainingLayer]:
        """Returns the layers of an NPU; recomputation precedes the weight gradient."""
        layers = [self._layer(layer, transfers, times) for layer, transfers in part.layers]
        # The backward pass starts with the classifier, whose activations are still there.
        for at, (layer, _) in enumerate(part.layers[1:-1], start=1):
            layers[at].weight_gradient_ps += times.again(layer, part.recompute)
        for given, (layer, transfers) in zip(layers, part.layers, strict=True):
            if transfers.with_forward:
                cover(given, covered(times, layer, part.recompute, part.context))
        return layers

    def _layer(
        self, layer: ModelLayer, transfers: LayerTransfers, times: PassTimes
    ) -> _core.TrainingLayer:
        return _core.TrainingLayer(
            layer.name,
            forward_ps=times.of(layer, "forward"),
            input_gradient_ps=times.of(layer, "input_gradient"),
            weight_gradient_ps=times.of(layer, "weight_gradient"),
            before_forward=self._optional(transfers.before_forward),
            before_backward=self._optional(transfers.before_backward),
            with_forward=self._transfers(transfers.with_forward),
            with_backward=self._transfers(transfers.with_backward),
            after_forward=self._transfers(transfers.after_forward),
            after_input_gradient=self._transfers(transfers.after_input_gradient),
            after_weight_gradient=self._optional(transfers.after_weight_gradient),
        )

    def _optional(self, transfer: Transfer | None) -> _core.Transfer | None:
        return self._transfers([transfer])[0] if transfer else None

    def _transfers(self, transfers: Iterable[Transfer]) -> list[_core.Transfer]:
        return [
            _core.Transfer(each.collective, self._mask(each.rings), each.bytes)
            for each in transfers
        ]

    def _mask(self, rings: Sequence[str]) -> int:
        names = [ring.name for ring in self.rings]
        return sum(1 << names.index(ring) for ring in rings) or (1 << len(names)) - 1

    def _pipeline(self, stages: Stages, stage: int) -> _core.PipelineStage:
        return _core.PipelineStage(
            stage=stage,
            stages=stages.stages,
            micro_batches=stages.micro_batches,
            order=stages.order,
            mask=self._mask(stages.rings),
            ends=list(stages.ends),
            messages=list(stages.messages),
        )

    def _embedding(self, configuration: Configuration, left: Left) -> _core.EmbeddingTables | None:
        tables = self.model.tables
        if tables is None:
            return None
        first = left
        if configuration.background:
            one = self.npu.arithmetic.per_second // self.npu.sms
            left = (one, self.npu.per_sm)
        rows = tables.lookup(self.batch, self.element)
        changes = tables.update(self.batch, self.element)
        lookup, update = tables.lookup_time, tables.update_time
        return _core.EmbeddingTables(
            bottom=tables.bottom,
            lookup_ps=lookup.ps if lookup else roofline(rows, left),
            first_lookup_ps=lookup.ps if lookup else roofline(rows, first),
            update_ps=update.ps if update else roofline(changes, left),
            size=tables.exchanged(self.batch, self.element),
            background=configuration.background,
        )


_SLOWEST = 1000.0
