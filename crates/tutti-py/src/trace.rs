//! Traces of applications: GOAL text, the lowering of schedules, and runs.
//!
//! The columns of a rank cross the border as little-endian bytes, which numpy reads and writes
//! without an object per value.

use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tutti_engine::trace::{self, Operations, TraceOutcome, TraceRun};
use tutti_engine::{Conditions, EngineError, LocalCosts, Routed};
use tutti_network::flow::{FlowNetwork, FlowRouting};
use tutti_network::packet::{Choice, Ends, PacketNetwork, PacketRouting};
use tutti_network::{Model, Stepped, dispatch};
use tutti_schedule::Layout;
use tutti_units::Bytes;
use tutti_units::ids::RankId;

use crate::engine::{check_flow, check_packets};
use crate::errors::OrRaise;
use crate::network;
use crate::schedule::Schedule;
use crate::threads::watched;
use crate::topology::Routes;

/// The columns of a rank: kinds, sizes, durations, peers, tags, streams, first dependencies,
/// dependencies, and whether these are satisfied on start.
type Columns<T> = (T, T, T, T, T, T, T, T, T);

/// The columns of all ranks, for Python.
type Ranks<'py> = Vec<Columns<Bound<'py, PyBytes>>>;

macro_rules! integers {
    ($from:ident, $to:ident, $type:ty) => {
        fn $from(bytes: &[u8]) -> Vec<$type> {
            let read = |chunk: &[u8]| <$type>::from_le_bytes(chunk.try_into().unwrap_or_default());
            bytes.chunks_exact(size_of::<$type>()).map(read).collect()
        }

        fn $to<'py>(py: Python<'py>, values: &[$type]) -> Bound<'py, PyBytes> {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            PyBytes::new(py, &bytes)
        }
    };
}

integers!(i64_of, bytes_of_i64, i64);
integers!(i32_of, bytes_of_i32, i32);

fn operations(
    (kinds, sizes, durations, peers, tags, streams, first, on, on_start): &Columns<&[u8]>,
) -> Operations {
    Operations {
        kinds: kinds.to_vec(),
        sizes: i64_of(sizes),
        durations: i64_of(durations),
        peers: i32_of(peers),
        tags: i64_of(tags),
        streams: i32_of(streams),
        first_dependency: i64_of(first),
        dependencies: i64_of(on),
        on_start: on_start.iter().map(|&byte| byte != 0).collect(),
    }
}

fn columns<'py>(py: Python<'py>, of: &Operations) -> Columns<Bound<'py, PyBytes>> {
    let on_start: Vec<u8> = of.on_start.iter().map(|&on_start| on_start.into()).collect();
    (
        PyBytes::new(py, &of.kinds),
        bytes_of_i64(py, &of.sizes),
        bytes_of_i64(py, &of.durations),
        bytes_of_i32(py, &of.peers),
        bytes_of_i64(py, &of.tags),
        bytes_of_i32(py, &of.streams),
        bytes_of_i64(py, &of.first_dependency),
        bytes_of_i64(py, &of.dependencies),
        PyBytes::new(py, &on_start),
    )
}

/// Reads GOAL text: the columns of each rank, and how many operations name another network
/// interface than 0.
#[pyfunction]
pub(crate) fn read_goal<'py>(py: Python<'py>, text: &[u8]) -> PyResult<(Ranks<'py>, u64)> {
    let goal = py.detach(|| trace::goal::read(text)).or_raise()?;
    Ok((goal.ranks.iter().map(|of| columns(py, of)).collect(), goal.other_nics))
}

/// The columns of each rank of a schedule with a payload of `size` bytes. With a model, reductions
/// and copies take its time; otherwise none.
#[pyfunction]
#[pyo3(signature = (schedule, *, size, element, model=None))]
pub(crate) fn lower_schedule<'py>(
    py: Python<'py>,
    schedule: &Schedule,
    size: u64,
    element: u64,
    model: Option<&network::Model>,
) -> PyResult<Ranks<'py>> {
    let layout = Layout::of_schedule(&*schedule.inner, Bytes(size), element).or_raise()?;
    let costs = model.map_or(LocalCosts::FREE, |model| model.1);
    let ranks = py.detach(|| trace::lower(&*schedule.inner, &layout, &costs));
    Ok(ranks.iter().map(|of| columns(py, of)).collect())
}

/// The network of a run.
struct Network<'a> {
    model: &'a Model,
    routes: Option<&'a Routes>,
    flow: Option<&'a network::FlowLevel>,
    packets: Option<&'a network::Packets>,
    seed: u64,
}

impl Network<'_> {
    fn check(&self, ranks: usize) -> PyResult<()> {
        let choosing = self.routes.and_then(|routes| routes.choosing.as_ref());
        match self.flow {
            Some(flow) => check_flow(self.routes, choosing, &flow.0)?,
            None => check_packets(self.packets.map(|packets| &packets.0), self.routes, choosing)?,
        }
        if let (Some(routes), Some(last)) = (self.routes, ranks.checked_sub(1)) {
            let last = RankId(u32::try_from(last).unwrap_or(u32::MAX));
            routes.inner.try_pair(last, last).or_raise()?;
        }
        Ok(())
    }

    fn run(
        &self,
        ranks: &[Operations],
        stop: &AtomicBool,
    ) -> Result<PyResult<TraceOutcome>, EngineError> {
        let contended = self.flow.is_some() || self.packets.is_some();
        let alone = self.routes.filter(|_| !contended);
        let included = self.model.serialization();
        let routed = alone.map(|routes| Routed { routes: &routes.inner, included });
        let distance = routed.as_ref().map(|routed| routed as &dyn tutti_engine::Distance);
        let conditions = Conditions { disturbance: None, distance };
        dispatch!(self.model, model => {
            match TraceRun::new(ranks, model, conditions).or_raise() {
                Ok(run) => self.with_network(|network| run.run(network, stop)).map(Ok),
                Err(error) => Ok(Err(error)),
            }
        })
    }

    fn with_network<R>(&self, run: impl FnOnce(Option<&mut dyn Stepped>) -> R) -> R {
        let ends = Ends::of(self.model);
        let Some(routes) = self.routes else { return run(None) };
        let choosing = routes.choosing.as_ref();
        if let Some(flow) = self.flow {
            let routing = match choosing {
                Some((distances, _)) => FlowRouting::Spread(distances),
                None => FlowRouting::Routed(&routes.inner),
            };
            return run(Some(&mut FlowNetwork::new(routing, flow.0.clone(), ends)));
        }
        let Some(packets) = self.packets else { return run(None) };
        let routing = match choosing {
            Some((distances, choice)) => {
                let choice: Choice = *choice;
                PacketRouting::PerPacket { distances, choice, seed: self.seed }
            }
            None => PacketRouting::Routed(&routes.inner),
        };
        run(Some(&mut PacketNetwork::new(routing, packets.0.clone(), ends)))
    }
}

/// Runs a trace. Returns the completion time and the busy time of each rank in ps, the number of
/// messages, and the bytes in them.
#[pyfunction]
#[pyo3(signature = (ranks, model, *, routes=None, flow=None, packets=None, seed=0))]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are owned")]
pub(crate) fn simulate_trace(
    py: Python<'_>,
    ranks: Ranks<'_>,
    model: &network::Model,
    routes: Option<&Routes>,
    flow: Option<&network::FlowLevel>,
    packets: Option<&network::Packets>,
    seed: u64,
) -> PyResult<(Vec<u64>, Vec<u64>, u64, u128)> {
    let network = Network { model: &model.0, routes, flow, packets, seed };
    network.check(ranks.len())?;
    let read = |(a, b, c, d, e, f, g, h, i): &Columns<Bound<'_, PyBytes>>| {
        let columns = [a, b, c, d, e, f, g, h, i].map(|column| column.as_bytes());
        let [a, b, c, d, e, f, g, h, i] = columns;
        operations(&(a, b, c, d, e, f, g, h, i))
    };
    let ranks: Vec<Operations> = ranks.iter().map(read).collect();
    let outcome = watched(py, |stop| network.run(&ranks, stop))?.or_raise()??;
    let ps = |times: Vec<tutti_units::Time>| times.iter().map(|time| time.ps()).collect();
    Ok((ps(outcome.finish), ps(outcome.busy), outcome.messages, outcome.bytes))
}
