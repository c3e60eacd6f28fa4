//! The network of a training step, and the schedules of its collectives.

use std::sync::Arc;

use pyo3::prelude::*;
use tutti_engine::endpoint::ace::PhaseLoad;
use tutti_engine::endpoint::ideal::Ideal;
use tutti_engine::endpoint::{self, Chunks};
use tutti_engine::training::{
    Algorithms, Chosen, Detail, Isolated, Order, Population, Ring, StepNetwork, Torus,
    TrainingFabric,
};
use tutti_engine::workload::{self, Rings};
use tutti_units::{Bytes, Time};

use crate::algorithm::collective_named;
use crate::errors::OrRaise;
use crate::platform::Platform;
use crate::schedule::{Number, Schedule};
use crate::transfer::{Transfer, transfers};
use crate::units::TimePerByte;

/// A ring of a torus: nodes, time per byte of a link in one direction, and its latency.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct TorusRing(Ring);

#[pymethods]
impl TorusRing {
    #[new]
    fn new(nodes: Number, per_byte: TimePerByte, latency_ps: u64) -> TorusRing {
        let latency = Time::from_ps(latency_ps);
        TorusRing(Ring { nodes: nodes.0, per_byte: per_byte.0, latency })
    }
}

/// A torus of rings, the one inside a package first.
pub(crate) fn torus_of(rings: &[PyRef<'_, TorusRing>]) -> PyResult<Torus> {
    Torus::new(rings.iter().map(|ring| ring.0).collect()).or_raise()
}

/// The schedules of a collective: its name, dimensions (a bit each), a schedule per channel.
type GivenAlgorithm<'a> = (String, u8, Vec<PyRef<'a, Schedule>>);

/// The network of a training step, the dimensions of its NPUs, and the schedules of collectives.
#[pyclass(frozen, module = "tutti._core")]
pub(crate) struct StepFabric {
    network: StepNetwork,
    sizes: Vec<u32>,
    algorithms: Algorithms,
}

#[pymethods]
impl StepFabric {
    /// A torus of FIFO links, the ring inside a package first. `relays`: time per byte after the
    /// links of a ring.
    #[staticmethod]
    #[pyo3(signature = (rings, *, relays=Vec::new()))]
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
    fn torus(
        rings: Vec<PyRef<'_, TorusRing>>,
        relays: Vec<Option<TimePerByte>>,
    ) -> PyResult<StepFabric> {
        let mut torus = torus_of(&rings)?;
        for (index, relay) in relays.into_iter().enumerate() {
            torus = relay.map_or(torus.clone(), |relay| torus.relayed(index, relay.0));
        }
        Ok(StepFabric {
            sizes: torus.rings().iter().map(|ring| ring.nodes).collect(),
            network: StepNetwork::Torus(torus),
            algorithms: Algorithms::default(),
        })
    }

    /// The flows, packets or mesh of a platform; `sizes` are the dimensions of the NPU numbers,
    /// innermost first.
    #[staticmethod]
    #[pyo3(signature = (platform, sizes, *, seed=0))]
    fn on(platform: &Platform, sizes: Vec<Number>, seed: u64) -> PyResult<StepFabric> {
        let sizes: Vec<u32> = sizes.into_iter().map(|size| size.0).collect();
        let npus = sizes.iter().fold(1, |all: u32, &size| all.saturating_mul(size));
        let network = platform.0.step_network(npus, seed).or_raise()?;
        Ok(StepFabric { network, sizes, algorithms: Algorithms::default() })
    }

    /// No network: each collective and message takes a given time in picoseconds.
    #[staticmethod]
    fn isolated(
        sizes: Vec<Number>,
        collectives: Vec<(Transfer, u64)>,
        messages: Vec<(u64, u64)>,
    ) -> PyResult<StepFabric> {
        let sizes: Vec<u32> = sizes.into_iter().map(|size| size.0).collect();
        let collective = |given| timed(&sizes, given);
        let message = |(bytes, ps)| (Bytes(bytes), Time::from_ps(ps));
        let isolated = Isolated {
            npus: sizes.iter().fold(1, |all, &size| all.saturating_mul(size)),
            collectives: collectives.into_iter().map(collective).collect::<PyResult<_>>()?,
            messages: messages.into_iter().map(message).collect(),
            concurrent: false,
        };
        let (network, algorithms) = (StepNetwork::Isolated(isolated), Algorithms::default());
        Ok(StepFabric { network, sizes, algorithms })
    }

    /// The fabric with these schedules instead of rings along each dimension.
    fn with_algorithms(&self, chosen: Vec<GivenAlgorithm<'_>>) -> PyResult<StepFabric> {
        let one = |(name, rings, channels): GivenAlgorithm<'_>| {
            Ok::<_, PyErr>(Chosen {
                collective: collective_named(&name, 0)?.name(),
                rings: Rings(rings).of(&self.sizes),
                channels: channels.iter().map(|channel| Arc::clone(&channel.inner)).collect(),
            })
        };
        let chosen = chosen.into_iter().map(one).collect::<PyResult<_>>()?;
        let algorithms = Algorithms { chosen, ..self.algorithms.clone() };
        Ok(StepFabric { network: self.network.clone(), sizes: self.sizes.clone(), algorithms })
    }

    /// The fabric with times in picoseconds that collectives take at least as flows.
    fn with_least(&self, times: Vec<(Transfer, u64)>) -> PyResult<StepFabric> {
        let one = |given| timed(&self.sizes, given);
        let least = times.into_iter().map(one).collect::<PyResult<_>>()?;
        let algorithms = Algorithms { least, ..self.algorithms.clone() };
        Ok(StepFabric { network: self.network.clone(), sizes: self.sizes.clone(), algorithms })
    }

    /// The number of NPUs.
    #[getter]
    fn npus(&self) -> u32 {
        self.network.npus()
    }

    /// Whether all NPUs do the same in these collectives, so that one of them can represent all.
    #[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
    fn acts_alike(&self, given_transfers: Vec<Transfer>) -> PyResult<bool> {
        let transfers = transfers(&given_transfers)?;
        // Neither the endpoint nor the sizes matter.
        let ideal = Ideal { packet: Bytes(1), cycle: Time::ZERO, chunks: Chunks::default() };
        let sizes = (Bytes(1), Bytes(1), None);
        let endpoint = ideal.endpoint().or_raise()?;
        let fabric = self.fabric(endpoint, sizes, Order::Lifo, Population::All);
        fabric.acts_alike(&transfers).or_raise()
    }
}

/// A collective on the dimensions of several NPUs, and its time.
fn timed(sizes: &[u32], (given, ps): (Transfer, u64)) -> PyResult<(workload::Transfer, Time)> {
    let transfer = given.core()?;
    let rings = transfer.rings.of(sizes);
    Ok((workload::Transfer { rings, level: 0, ..transfer }, Time::from_ps(ps)))
}

impl StepFabric {
    /// The fabric with an endpoint and settings.
    pub(crate) fn fabric(
        &self,
        endpoint: endpoint::Endpoint,
        (chunk, message, parts): (Bytes, Bytes, Option<u32>),
        order: Order,
        population: Population,
    ) -> TrainingFabric {
        TrainingFabric {
            network: self.network.clone(),
            sizes: self.sizes.clone(),
            algorithms: self.algorithms.clone(),
            endpoint,
            chunk,
            parts,
            message,
            order,
            population,
            detail: Detail::Packets,
            launch: Time::ZERO,
        }
    }

    /// The load of each phase of all-reduces and of `transfers`.
    pub(crate) fn phase_loads(
        &self,
        transfers: &[workload::Transfer],
        chunk: Bytes,
        packet: Bytes,
    ) -> PyResult<Vec<PhaseLoad>> {
        let ideal = Ideal { packet, cycle: Time::ZERO, chunks: Chunks::default() };
        let endpoint = ideal.endpoint().or_raise()?;
        let fabric = self.fabric(endpoint, (chunk, chunk, None), Order::Lifo, Population::All);
        fabric.phase_loads(transfers, packet).or_raise()
    }
}
