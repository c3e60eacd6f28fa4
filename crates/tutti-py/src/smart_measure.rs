//! Measurements of meshes whose flits make several hops in a cycle, in threads.

use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use tutti_noc::measure::half_width as half_width_of;
use tutti_noc::smart::measure::{
    Kind, Load, Members, Phases, Sources, check, ideal, measure, watch,
};
use tutti_noc::smart::{Event, EventKind, Settings};
use tutti_noc::traffic::{PacketSize, Pattern, Process};

use crate::errors::{OrRaise, refuse};
use crate::measure::{MeasurementCase, Outcome};
use crate::schedule::Number;
use crate::smart::SmartMesh;
use crate::smart_result::SmartResult;
use crate::threads::watched;

/// A mesh, its traffic, for how long, and the seed.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct SmartCase {
    mesh: SmartMesh,
    /// The mesh's, with a message class for each that loads name.
    settings: Settings,
    loads: Vec<Load>,
    plan: Phases,
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
    outstanding: Option<Number>,
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
        let outstanding = self.outstanding.map(|number| number.0);
        Ok(Load { kind, process, class: self.message_class, outstanding })
    }
}

/// The number of processes needed if each starts at most one reduction per cycle.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within the range that was checked"
)]
fn streams_of(rate: f64) -> PyResult<u32> {
    if !(0.0..=MOST_REDUCTIONS).contains(&rate) {
        let message =
            format!("invalid rate {rate}: expected 0 to {MOST_REDUCTIONS} reductions per cycle");
        return Err(refuse("TrafficError", "chance", &message));
    }
    Ok((rate.ceil() as u32).max(1))
}

/// The most reductions started per cycle; a mesh sustains about one.
const MOST_REDUCTIONS: f64 = 64.0;

fn unknown(what: &str, text: &str, expected: &str) -> PyErr {
    let message = format!("there is no {what} `{text}`: expected {expected}");
    refuse("TrafficError", what, &message)
}

#[pymethods]
impl SmartCase {
    #[new]
    #[pyo3(signature = (mesh, loads, *, warmup, measure, drain, seed))]
    fn new(
        mesh: &SmartMesh,
        loads: Vec<GivenSmartLoad>,
        warmup: u64,
        measure: u64,
        drain: u64,
        seed: u64,
    ) -> PyResult<SmartCase> {
        let classes = loads.iter().map(|load| usize::from(load.message_class) + 1).max();
        let mut settings = mesh.settings.clone();
        settings.classes = vec![settings.classes[0]; classes.unwrap_or(1)];
        let loads: PyResult<Vec<Load>> =
            loads.into_iter().map(|load| load.load(&settings)).collect();
        let plan = Phases { warmup, measure, drain };
        let case = SmartCase { mesh: mesh.clone(), settings, loads: loads?, plan, seed };
        let SmartCase { mesh, settings, loads, plan, .. } = &case;
        let fits = mesh.build(settings).and_then(|_| check(settings, loads, plan));
        fits.or_raise()?;
        Ok(case)
    }

    /// The bounds for each load: messages per cycle, and hops; None where unknown.
    fn ideals(&self) -> Vec<Option<(f64, f64)>> {
        let Settings { columns, rows, .. } = self.settings;
        let of = |load| ideal(load, columns, rows).map(|ideal| (ideal.throughput, ideal.hops));
        self.loads.iter().map(of).collect()
    }

    /// The trace of the first cycles: events, and the packets sent.
    fn watch(&self, py: Python<'_>, cycles: u64) -> PyResult<(Vec<GivenEvent>, Vec<GivenSent>)> {
        if self.mesh.is_connected() {
            let message = "a fully connected fabric has no routers that could be watched";
            return Err(refuse("NocError", "clash", message));
        }
        let SmartCase { settings, loads, seed, .. } = self;
        let found = watched(py, |_| watch(settings, loads, cycles, *seed))?;
        let found = found.or_raise()?;
        let events = found.events.iter().map(given_event).collect();
        let sent = found.sent.into_iter();
        let sent = sent.map(|one| (one.cycle, one.load, one.message, one.source, one.to));
        Ok((events, sent.collect()))
    }
}

impl MeasurementCase for SmartCase {
    fn run(&self, stop: &AtomicBool) -> Outcome {
        let SmartCase { mesh, settings, loads, plan, seed } = self;
        let fabric = mesh.build(settings);
        let found =
            fabric.and_then(|mut fabric| measure(settings, &mut *fabric, loads, plan, *seed, stop));
        Box::new(move |py| {
            let result = SmartResult::new(py, &found.or_raise()?)?;
            Ok(Py::new(py, result)?.into_any())
        })
    }
}

/// The 95 % CI half-width of the mean of independent values.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
pub(crate) fn half_width(values: Vec<f64>) -> f64 {
    half_width_of(&values)
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
        EventKind::Turned { output, hops, crossing } => {
            ("turned", [u64::from(output), u64::from(hops), crossing])
        }
        EventKind::Stopped { input, why } => (why.name(), [u64::from(input), 0, 0]),
        EventKind::Retained { input } => ("retained", [u64::from(input), 0, 0]),
        EventKind::Dropped => ("dropped", [0; 3]),
        EventKind::Merged => ("merged", [0; 3]),
        EventKind::Arrived => ("arrived", [0; 3]),
        EventKind::Idle { output } => ("idle", [u64::from(output), 0, 0]),
    };
    let [first, second, third] = numbers;
    (event.cycle, event.router, event.packet, name, first, second, third)
}
