//! Measurements of meshes whose flits make several hops in a cycle, in threads.

use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use tutti_noc::FlitError;
use tutti_noc::measure::half_width as half_width_of;
use tutti_noc::smart::measure::{
    Ending, Kind, Load, Measured, Measurement, Members, MeshMeasurementPlan, Sources, check, ideal,
    measure, watch,
};
use tutti_noc::smart::{Counts, Event, EventKind, Settings, Stop};
use tutti_noc::traffic::{PacketSize, Pattern, Process};

use crate::errors::{OrRaise, raised_by_flits, refuse};
use crate::schedule::Number;
use crate::smart::SmartMesh;
use crate::threads::{each_in_threads, watched};

/// A mesh, its traffic, for how long, and the seed.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct SmartCase {
    mesh: SmartMesh,
    /// The mesh's, with a message class for each that loads name.
    settings: Settings,
    loads: Vec<Load>,
    plan: MeshMeasurementPlan,
    seed: u64,
}

/// Synthetic traffic, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenSmartLoad {
    kind: String,
    sources: String,
    members: String,
    pattern: String,
    packet: String,
    process: String,
    rate: f64,
    message_class: u8,
}

impl GivenSmartLoad {
    fn load(self, settings: &Settings) -> PyResult<Load> {
        let sources = match &*self.sources {
            "all" => Sources::All,
            "corners" => Sources::Corners,
            other => return Err(unknown("sources", other, "all or corners")),
        };
        let members = match &*self.members {
            "any_number" => Members::AnyNumber,
            "half" => Members::Half,
            other => return Err(unknown("members", other, "any_number or half")),
        };
        let size = PacketSize::parse(&self.packet).or_raise()?;
        let mut rate = self.rate;
        let kind = match &*self.kind {
            "unicast" => {
                let grid = [settings.columns, settings.rows];
                let pattern = Pattern::parse(&self.pattern, settings.nodes(), Some(&grid));
                rate /= size.mean();
                Kind::Unicast { pattern: pattern.or_raise()?, size }
            }
            "broadcast" => Kind::Broadcast { from: sources },
            "multicast" => Kind::Multicast { from: sources, to: members },
            "reduction" => {
                let streams = streams_of(rate)?;
                rate /= f64::from(streams);
                Kind::Reduction { streams }
            }
            other => {
                let expected = "unicast, broadcast, multicast or reduction";
                return Err(unknown("kind", other, expected));
            }
        };
        let process = Process::parse(&self.process, rate).or_raise()?;
        Ok(Load { kind, process, class: self.message_class })
    }
}

/// As many processes as are needed where each begins one reduction per cycle at most.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within the range that was checked"
)]
fn streams_of(rate: f64) -> PyResult<u32> {
    if !(0.0..=MOST_REDUCTIONS).contains(&rate) {
        let message = format!("a rate of {rate}: expected 0 to {MOST_REDUCTIONS} per cycle");
        return Err(refuse("TrafficError", "chance", &message));
    }
    Ok((rate.ceil() as u32).max(1))
}

/// Reductions begun per cycle at most; a mesh takes about one.
const MOST_REDUCTIONS: f64 = 64.0;

fn unknown(what: &str, text: &str, expected: &str) -> PyErr {
    let message = format!("there is no {what} `{text}`: expected {expected}");
    refuse("TrafficError", what, &message)
}

#[pymethods]
impl SmartCase {
    #[new]
    fn new(
        mesh: &SmartMesh,
        loads: Vec<GivenSmartLoad>,
        plan: (u64, u64, u64),
        seed: u64,
    ) -> PyResult<SmartCase> {
        let classes = loads.iter().map(|load| usize::from(load.message_class) + 1).max();
        let mut settings = mesh.settings.clone();
        settings.classes = vec![settings.classes[0]; classes.unwrap_or(1)];
        let loads: PyResult<Vec<Load>> =
            loads.into_iter().map(|load| load.load(&settings)).collect();
        let (warmup, measure, drain) = plan;
        let plan = MeshMeasurementPlan { warmup, measure, drain };
        let case = SmartCase { mesh: mesh.clone(), settings, loads: loads?, plan, seed };
        let SmartCase { mesh, settings, loads, plan, .. } = &case;
        let fits = mesh.build(settings).and_then(|_| check(settings, loads, plan));
        fits.map_err(|error| raised_by_flits(&error))?;
        Ok(case)
    }

    /// For each load what no mesh can better: messages per cycle, and hops; none where it is not known.
    fn ideals(&self) -> Vec<Option<(f64, f64)>> {
        let Settings { columns, rows, .. } = self.settings;
        let of = |load| ideal(load, columns, rows).map(|ideal| (ideal.throughput, ideal.hops));
        self.loads.iter().map(of).collect()
    }

    /// What happens in the first so many cycles: events, and the packets that were sent.
    fn watch(&self, py: Python<'_>, cycles: u64) -> PyResult<(Vec<GivenEvent>, Vec<GivenSent>)> {
        if self.mesh.is_connected() {
            let message = "a fully connected fabric has no routers that could be watched";
            return Err(refuse("NocError", "clash", message));
        }
        let SmartCase { settings, loads, seed, .. } = self;
        let found = watched(py, |_| watch(settings, loads, cycles, *seed))?;
        let found = found.map_err(|error| raised_by_flits(&error))?;
        let events = found.events.iter().map(given_event).collect();
        let sent = found.sent.into_iter();
        let sent = sent.map(|one| (one.cycle, one.load, one.message, one.source, one.to));
        Ok((events, sent.collect()))
    }
}

impl SmartCase {
    fn run(&self, stop: &AtomicBool) -> Result<Measurement, FlitError> {
        let SmartCase { mesh, settings, loads, plan, seed } = self;
        let mut fabric = mesh.build(settings)?;
        measure(settings, &mut *fabric, loads, plan, *seed, stop)
    }
}

/// Measures cases in `threads` threads (0: as many as there are cores) and hands each result to
/// `done(index, result)` as soon as it is there, in no particular order; a result is either a dict or
/// an exception. Stops early when `done` raises or Ctrl-C is pressed. The results do not depend on
/// the number of threads.
#[pyfunction]
#[pyo3(signature = (cases, done, *, threads=Number(0)))]
#[pyo3(text_signature = "(cases, done, *, threads=0)")]
#[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
pub(crate) fn measure_smart(
    py: Python<'_>,
    cases: Vec<PyRef<'_, SmartCase>>,
    done: Bound<'_, PyAny>,
    threads: Number,
) -> PyResult<()> {
    let cases: Vec<SmartCase> = cases.iter().map(|case| SmartCase::clone(case)).collect();
    let done = done.unbind();
    each_in_threads(py, &cases, threads, SmartCase::run, |py, index, result| {
        match result {
            Ok(found) => _ = done.call1(py, (index, described(&found)))?,
            Err(error) => _ = done.call1(py, (index, raised_by_flits(&error)))?,
        }
        Ok(())
    })
}

/// The half width of the 95 % confidence interval of the mean of independent values.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
pub(crate) fn half_width(values: Vec<f64>) -> f64 {
    half_width_of(&values)
}

/// A measurement as plain data.
#[derive(IntoPyObject)]
struct Described {
    ending: &'static str,
    cycles: u64,
    routers: u32,
    loads: Vec<DescribedLoad>,
    counts: DescribedCounts,
    table_entries: f64,
    buffered_flows: f64,
    stay: f64,
}

/// What was measured of a load.
#[derive(IntoPyObject)]
struct DescribedLoad {
    messages: u64,
    offered: f64,
    accepted: f64,
    parts: f64,
    latency: f64,
    latency_extremes: (u64, u64),
    quantiles: [u64; 4],
    part_latency: f64,
    arrivals: f64,
    active: f64,
}

/// What happened, by the names of the core.
#[derive(IntoPyObject)]
pub(crate) struct DescribedCounts {
    injected: u64,
    ejected: u64,
    buffer_writes: u64,
    buffer_reads: u64,
    crossings: [u64; 5],
    bypasses: u64,
    link_hops: u64,
    input_arbitrations: u64,
    output_arbitrations: u64,
    requests: u64,
    request_hops: u64,
    answer_requests: u64,
    answer_request_hops: u64,
    table_reads: u64,
    merged: u64,
    table_entries: u64,
    buffered_flows: u64,
    answers_buffered: u64,
    cycles: u64,
}

impl From<&Counts> for DescribedCounts {
    fn from(counts: &Counts) -> DescribedCounts {
        DescribedCounts {
            injected: counts.injected,
            ejected: counts.ejected,
            buffer_writes: counts.buffer_writes,
            buffer_reads: counts.buffer_reads,
            crossings: counts.crossings,
            bypasses: counts.bypasses,
            link_hops: counts.link_hops,
            input_arbitrations: counts.input_arbitrations,
            output_arbitrations: counts.output_arbitrations,
            requests: counts.requests,
            request_hops: counts.request_hops,
            answer_requests: counts.answer_requests,
            answer_request_hops: counts.answer_request_hops,
            table_reads: counts.table_reads,
            merged: counts.merged,
            table_entries: counts.table_entries,
            buffered_flows: counts.buffered_flows,
            answers_buffered: counts.answers_buffered,
            cycles: counts.cycles,
        }
    }
}

fn described(found: &Measurement) -> Described {
    let load = |one: &Measured| DescribedLoad {
        messages: one.messages,
        offered: one.offered,
        accepted: one.accepted,
        parts: one.parts,
        latency: one.latency,
        latency_extremes: one.latency_extremes,
        quantiles: one.quantiles,
        part_latency: one.part_latency,
        arrivals: one.arrivals,
        active: one.active,
    };
    Described {
        ending: match found.ending {
            Ending::Stable => "stable",
            Ending::Saturated => "saturated",
            Ending::Deadlocked => "deadlocked",
        },
        cycles: found.cycles,
        routers: found.routers,
        loads: found.loads.iter().map(load).collect(),
        counts: DescribedCounts::from(&found.counts),
        table_entries: found.table_entries(),
        buffered_flows: found.buffered_flows(),
        stay: found.stay(),
    }
}

/// Cycle, router, packet, what happened, and up to three numbers that it has.
type GivenEvent = (u64, u32, u64, &'static str, u64, u64, u64);
/// Cycle, load, message, source, destinations.
type GivenSent = (u64, u32, u32, u32, Vec<u32>);

fn given_event(event: &Event) -> GivenEvent {
    let (name, numbers) = match event.kind {
        EventKind::Injected => ("injected", [0; 3]),
        EventKind::Granted { outputs } => ("granted", [u64::from(outputs), 0, 0]),
        EventKind::Requested { output, hops } => {
            ("requested", [u64::from(output), u64::from(hops), 0])
        }
        EventKind::Crossed { output, hops, crossing } => {
            ("crossed", [u64::from(output), u64::from(hops), crossing])
        }
        EventKind::Stopped { input, why } => (stop_name(why), [u64::from(input), 0, 0]),
        EventKind::Retained { input } => ("retained", [u64::from(input), 0, 0]),
        EventKind::Dropped => ("dropped", [0; 3]),
        EventKind::Merged => ("merged", [0; 3]),
        EventKind::Arrived => ("arrived", [0; 3]),
        EventKind::Idle { output } => ("idle", [u64::from(output), 0, 0]),
    };
    let [first, second, third] = numbers;
    (event.cycle, event.router, event.packet, name, first, second, third)
}

fn stop_name(why: Stop) -> &'static str {
    match why {
        Stop::End => "stopped:end",
        Stop::Local => "stopped:local",
        Stop::Farther => "stopped:farther",
        Stop::NoRoom => "stopped:no_room",
        Stop::Order => "stopped:order",
        Stop::Answers => "stopped:answers",
        Stop::Preset => "stopped:preset",
    }
}
