from . import (
    bypass as bypass,
)
from . import (
    collectives as collectives,
)
from . import (
    energy as energy,
)
from . import (
    errors as errors,
)
from . import (
    formats as formats,
)
from . import (
    measured as measured,
)
from . import (
    mpi as mpi,
)
from . import (
    nccl as nccl,
)
from . import (
    networks as networks,
)
from . import (
    platforms as platforms,
)
from . import (
    schedules as schedules,
)
from . import (
    sweeps as sweeps,
)
from . import (
    topologies as topologies,
)
from . import (
    training as training,
)
from . import (
    workloads as workloads,
)
from ._core import __version__ as __version__
from .base.units import Size as Size
from .base.units import Time as Time
from .base.units import TimePerByte as TimePerByte
from .collectives.frames import summary as summary
from .collectives.result import Run as Run
from .collectives.schedule_search import search as search
from .collectives.simulation import (
    compare as compare,
)
from .collectives.simulation import (
    simulate as simulate,
)
from .collectives.size_ranges import thresholds as thresholds
from .collectives.trace_run import simulate_trace as simulate_trace
from .collectives.view.decision_map import decision_map as decision_map
from .networks.flit.network import Network as Network
from .platforms.conditions import Conditions as Conditions
from .platforms.contention import (
    Flits as Flits,
)
from .platforms.contention import (
    FlowLevel as FlowLevel,
)
from .platforms.contention import (
    MeshFlits as MeshFlits,
)
from .platforms.contention import (
    Packets as Packets,
)
from .platforms.machine import (
    LogfP as LogfP,
)
from .platforms.machine import (
    LogGP as LogGP,
)
from .platforms.machine import (
    LogP as LogP,
)
from .platforms.machine import (
    LoP as LoP,
)
from .platforms.machine import (
    PipeliningPostal as PipeliningPostal,
)
from .platforms.machine import (
    Platform as Platform,
)
from .platforms.machine import (
    Postal as Postal,
)
from .platforms.machine import (
    Protocols as Protocols,
)
from .schedules.builder import ScheduleBuilder as ScheduleBuilder
from .schedules.ir import Schedule as Schedule
from .schedules.ir import algorithms as algorithms
from .schedules.ir import schedule as schedule
from .schedules.language import Program as Program
from .schedules.language import decompile as decompile
from .sweeps import sweep as sweep
from .topologies.graph import Topology as Topology
from .training.capture.capturing import capture as capture
from .training.endpoint import Npu as Npu
from .training.step import Step as Step
