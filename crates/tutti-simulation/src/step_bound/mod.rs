//! Lower bounds of the time of a training step, for any algorithms of its collectives.
//!
//! The bound is the largest of two kinds of times. **Critical path:** the tasks of an NPU in the
//! order of their dependencies, with the least time of each collective. **Load:** the busy time of a
//! resource that all algorithms use, from the earliest start of the collectives that need it.
//!
//! NPUs need not start or complete a collective together, so the critical path is found twice. Along
//! the earliest NPU, a collective takes the time from the first start to the first completion. Along
//! the latest NPU, it takes the time from the last start to the last completion. Neither is the time
//! of the collective alone: until the first NPU completes, the others may have received nothing.
//!
//! The bytes that every schedule moves are those of [`needs`]; the links that they share are those
//! of [`cuts`]. Times within the bound are real numbers in picoseconds, rounded down at the end.

mod costs;
mod cuts;
mod graph;
mod needs;
mod sample;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use tutti_engine::endpoint::ace::Ace;
use tutti_engine::endpoint::baseline::Baseline;
use tutti_engine::training::{Torus, TrainingOutcome, TrainingRunError};
use tutti_engine::workload::{Program, Rings, Task, Transfer, What};
use tutti_schedule::collective::Collective;
use tutti_units::{Bytes, Time, TimePerByte};

use crate::Platform;
use costs::Costs;
use sample::Sample;

/// The name of the part of a bound that is not the load of a resource.
const PATH: &str = "critical path";

/// A dimension of the NPU numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Its name.
    pub name: String,
    /// The NPUs along it.
    pub npus: u32,
}

/// The network of a step.
#[derive(Clone, Copy, Debug)]
pub enum BoundedNetwork<'a> {
    /// Rings of links between neighbours, one along each dimension.
    Torus(&'a Torus),
    /// A platform. Without a topology, links take no time.
    Platform(&'a Platform),
}

/// The servers between memory and links of an NPU, as far as every schedule uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointCosts {
    /// None.
    Ideal,
    /// SMs read memory and write to the bus, for each message.
    Baseline {
        /// Time per byte of the memory bandwidth available to communication.
        memory: TimePerByte,
        /// Time per byte of one SM.
        per_sm: TimePerByte,
        /// SMs for communication.
        sms: u32,
        /// Time per byte of the bus between the NPU and its links, per direction.
        bus: TimePerByte,
    },
    /// ACE reads the data of a collective once, and writes its result once.
    Ace {
        /// Time per byte of the memory bandwidth available to ACE.
        memory: TimePerByte,
        /// Time per byte of the bus between the NPU and ACE, per direction.
        bus: TimePerByte,
    },
}

impl From<&Baseline> for EndpointCosts {
    fn from(of: &Baseline) -> EndpointCosts {
        let &Baseline { memory, per_sm, sms, bus, .. } = of;
        EndpointCosts::Baseline { memory, per_sm, sms, bus }
    }
}

impl From<&Ace> for EndpointCosts {
    fn from(of: &Ace) -> EndpointCosts {
        let &Ace { memory, bus, .. } = of;
        EndpointCosts::Ace { memory, bus }
    }
}

/// A step to bound.
///
/// ```
/// use tutti_simulation::engine::training::{Ring, Torus};
/// use tutti_simulation::engine::workload::{Pass, Program, Task, Transfer, What};
/// use tutti_simulation::schedule::collective::Collective;
/// use tutti_simulation::units::{Bytes, Time, TimePerByte};
/// use tutti_simulation::{BoundedNetwork, BoundedStep, Dimension, EndpointCosts};
///
/// let (per_byte, latency) = (TimePerByte::parse("25 GB/s")?, Time::parse("72 ns")?);
/// let torus = Torus::new(vec![Ring { nodes: 4, per_byte, latency }])?;
/// let what = What::Collective(Transfer::new(Collective::AllReduce, Bytes(1_000_000)));
/// let task = Task { what, layer: 0, pass: Pass::Forward, iteration: 0 };
/// let program = Program::new(vec!["layer".to_owned()], vec![(task, vec![])])?;
/// let step = BoundedStep {
///     dimensions: &[Dimension { name: "local".to_owned(), npus: 4 }],
///     network: BoundedNetwork::Torus(&torus),
///     endpoint: EndpointCosts::Ideal,
///     launch: Time::ZERO,
///     programs: &[program],
///     of: &[],
///     is_alike: true,
/// };
/// // 6 MB cross the links between the four NPUs, 50 GB/s from each NPU.
/// let bound = step.bound()?;
/// assert_eq!((bound.by(), bound.at_least()), ("links of local", Time::parse("30 us")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BoundedStep<'a> {
    /// The dimensions of the NPU numbers, innermost first; on a torus, its rings.
    pub dimensions: &'a [Dimension],
    /// The network.
    pub network: BoundedNetwork<'a>,
    /// The endpoint of each NPU.
    pub endpoint: EndpointCosts,
    /// Time from the issue of a collective on an NPU until it starts there.
    pub launch: Time,
    /// The programs.
    pub programs: &'a [Program],
    /// Which of them each NPU runs; empty if all run the first.
    pub of: &'a [u32],
    /// Whether the NPUs of each group compute alike, as those of a model do. Otherwise, collectives
    /// take no time after the last NPU starts them, and loads count from the start of the step.
    pub is_alike: bool,
}

/// A lower bound of the time of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepBound {
    parts: Vec<(String, Time)>,
}

impl StepBound {
    /// The bound by the critical path, and by each resource.
    #[must_use]
    pub fn parts(&self) -> &[(String, Time)] {
        &self.parts
    }

    /// The bound: the largest part.
    #[must_use]
    pub fn at_least(&self) -> Time {
        self.largest().1
    }

    /// The name of the largest part; the critical path if several are equal.
    #[must_use]
    pub fn by(&self) -> &str {
        self.largest().0
    }

    fn largest(&self) -> (&str, Time) {
        let parts = self.parts.iter().rev().map(|(name, time)| (name.as_str(), *time));
        parts.max_by_key(|&(_, time)| time).unwrap_or((PATH, Time::ZERO))
    }
}

impl BoundedStep<'_> {
    /// The lower bound of the time of all iterations.
    ///
    /// # Errors
    /// When the dimensions are not those of the torus, an NPU has no program, or the programs of a
    /// group do not fit together.
    pub fn bound(&self) -> Result<StepBound, TrainingRunError> {
        self.bound_until(&AtomicBool::new(false))
    }

    /// The lower bound, unless `stop` is set before it is found.
    ///
    /// # Errors
    /// As [`BoundedStep::bound`], and when it was stopped.
    pub fn bound_until(&self, stop: &AtomicBool) -> Result<StepBound, TrainingRunError> {
        self.check_rings()?;
        let sizes: Vec<u32> = self.dimensions.iter().map(|dimension| dimension.npus).collect();
        let sample = Sample::of(&sizes, self.programs, self.of)?;
        let costs = Costs::new(self);
        let run = |times: &BTreeMap<_, _>| {
            sample.run(self.programs, times.clone(), self.messages(&costs), stop)
        };
        let first = |moved: &Moved| if self.is_alike { costs.first(moved) } else { Time::ZERO };
        let earliest = self.times(&sample, first);
        let latest = if self.is_alike {
            self.times(&sample, |moved| costs.last(moved))
        } else {
            earliest.clone()
        };
        let along_earliest = run(&earliest)?;
        // The times are equal where no server lies between memory and links, and exits equal entries.
        let end = if latest == earliest { along_earliest.end } else { run(&latest)?.end };
        let path = along_earliest.end.max(end);
        Ok(bounded(path, self.started(&sample, &along_earliest), &costs))
    }

    fn check_rings(&self) -> Result<(), TrainingRunError> {
        let BoundedNetwork::Torus(torus) = self.network else { return Ok(()) };
        let sizes: Vec<u32> = self.dimensions.iter().map(|dimension| dimension.npus).collect();
        if torus.rings().iter().map(|ring| ring.nodes).eq(sizes.iter().copied()) {
            return Ok(());
        }
        let count = |product: u64, &size: &u32| product.saturating_mul(u64::from(size));
        let product = sizes.iter().fold(1, count);
        Err(TrainingRunError::WrongSizes { sizes, product, npus: torus.npus() })
    }

    fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.programs.iter().flat_map(Program::tasks)
    }

    /// The time of each collective of the programs, as the sample names it.
    fn times(&self, sample: &Sample, time: impl Fn(&Moved) -> Time) -> BTreeMap<Transfer, Time> {
        let mut times = BTreeMap::new();
        for task in self.tasks() {
            if let (What::Collective(transfer), Some(moved)) = (task.what, Moved::of(task)) {
                times.entry(sample.key(transfer)).or_insert_with(|| time(&moved));
            }
        }
        times
    }

    /// The least time of a message of each size.
    fn messages(&self, costs: &Costs<'_>) -> BTreeMap<Bytes, Time> {
        let mut times = BTreeMap::new();
        for task in self.tasks() {
            if let What::Send(message) | What::Recv(message) = task.what {
                times.entry(message.bytes).or_insert_with(|| costs.message(message.bytes));
            }
        }
        times
    }

    /// The transfers of an NPU of each program, with their earliest starts.
    fn started(&self, sample: &Sample, run: &TrainingOutcome) -> Vec<Started> {
        let mut started = Vec::new();
        for (number, program) in (0..).zip(self.programs) {
            let Some((npu, share)) = sample.first_of(number) else { continue };
            for span in &run.npus[npu].spans {
                let Some(moved) = Moved::of(&program.tasks()[span.task.index()]) else { continue };
                let start = if self.is_alike { span.start } else { Time::ZERO };
                started.push(Started { start, moved, share });
            }
        }
        started
    }
}

/// A transfer without its level and content: what it loads depends on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Moved {
    /// The collective, `send` or `recv`.
    name: &'static str,
    rings: Rings,
    bytes: Bytes,
    /// `None` for a message.
    collective: Option<Collective>,
}

impl Moved {
    /// The transfer of a task; `None` for computation.
    fn of(task: &Task) -> Option<Moved> {
        let (name, message) = match task.what {
            What::Compute { .. } => return None,
            What::Collective(Transfer { collective, rings, bytes, .. }) => {
                let (name, collective) = (collective.name(), Some(collective));
                return Some(Moved { name, rings, bytes, collective });
            }
            What::Send(message) => ("send", message),
            What::Recv(message) => ("recv", message),
        };
        Some(Moved { name, rings: message.rings, bytes: message.bytes, collective: None })
    }
}

/// A transfer, its earliest start on an NPU, and the share of such NPUs.
#[derive(Clone, Copy, Debug)]
struct Started {
    start: Time,
    moved: Moved,
    share: f64,
}

/// The load of a resource while transfers are added, the latest first.
struct Load {
    resource: String,
    /// The busy time of the transfers so far, in ps.
    busy: f64,
    /// The latest end of the busy time, in ps.
    end: f64,
}

/// The critical path and the loads. Collectives that start at `start` or later use a resource after
/// their launch only; messages need none.
fn bounded(path: Time, mut started: Vec<Started>, costs: &Costs<'_>) -> StepBound {
    // The order decides in which order real numbers are added: it depends on the step only.
    started.sort_by(|one, other| {
        let shares = || other.share.total_cmp(&one.share);
        (other.start, other.moved).cmp(&(one.start, one.moved)).then_with(shares)
    });
    let mut loads: Vec<Load> = Vec::new();
    // Iterations and layers repeat transfers.
    let mut known: BTreeMap<Moved, Vec<(usize, f64)>> = BTreeMap::new();
    for Started { start, moved, share } in started {
        let launch = if moved.collective.is_some() { costs.launch } else { Time::ZERO };
        let from = real((start + launch).ps().into());
        let of_transfer = known.entry(moved).or_insert_with(|| {
            let busy = costs.loads(&moved).into_iter();
            busy.map(|(resource, time)| (place(&mut loads, resource), time)).collect()
        });
        for &(at, time) in of_transfer.iter() {
            let load = &mut loads[at];
            load.busy += time * share;
            load.end = load.end.max(from + load.busy);
        }
    }
    let parts = loads.into_iter().map(|load| (load.resource, floor(load.end)));
    StepBound { parts: std::iter::once((PATH.to_owned(), path)).chain(parts).collect() }
}

/// The place of a resource among the loads; a new one is added.
fn place(loads: &mut Vec<Load>, resource: String) -> usize {
    loads.iter().position(|load| load.resource == resource).unwrap_or_else(|| {
        loads.push(Load { resource, busy: 0.0, end: 0.0 });
        loads.len() - 1
    })
}

#[expect(clippy::cast_precision_loss, reason = "bytes and ps of a step are below 2^53")]
fn real(integer: u128) -> f64 {
    integer as f64
}

/// A time in ps, rounded down.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded down on purpose, so that it is still a bound; the cast saturates"
)]
fn floor(ps: f64) -> Time {
    Time::from_ps(ps as u64)
}

/// The bytes per ps of a time per byte; infinite for no time.
fn rate(per_byte: TimePerByte) -> f64 {
    1.0 / per_byte.ps_per_byte()
}
