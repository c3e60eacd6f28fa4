//! Python bindings of kernels on chips with coherent caches.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use tutti_coherence::program::kernel::{REGISTRY, named};
use tutti_coherence::program::trace::{Step, Trace};
use tutti_coherence::program::{Program, ProgramError, Scale};
use tutti_coherence::{CoherenceError, Collector, Protocol, SharedHint, System, SystemSettings};
use tutti_noc::smart::{Fabric, Settings};

use crate::coherence_result::CoherenceResult;
use crate::errors::{OrRaise, raised, refuse};
use crate::measure::{MeasurementCase, Outcome};
use crate::schedule::Number;
use crate::smart::SmartMesh;

/// What a chip runs.
#[derive(Clone)]
enum Work {
    /// A kernel with its number of cores, scale and input seed.
    Kernel { kernel: String, scale: Scale, cores: u32, seed: u64 },
    /// Recorded accesses.
    Trace(Arc<Trace>),
}

impl Work {
    fn program(&self) -> Result<Program, ProgramError> {
        match self {
            Work::Kernel { kernel, scale, cores, seed } => {
                named(kernel)?.program(*cores, *scale, *seed)
            }
            Work::Trace(trace) => trace.program(),
        }
    }
}

/// Recorded accesses: the steps of each core.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct CoherenceTrace {
    trace: Arc<Trace>,
}

#[pymethods]
impl CoherenceTrace {
    /// Returns a trace of steps, each an operation and its number, by core.
    #[new]
    fn new(cores: Vec<Vec<(String, u64)>>) -> PyResult<CoherenceTrace> {
        let cores: PyResult<Vec<Vec<Step>>> =
            cores.iter().map(|steps| steps.iter().map(step).collect()).collect();
        let trace = Trace { cores: cores? };
        trace.program().or_raise()?;
        Ok(CoherenceTrace { trace: Arc::new(trace) })
    }

    /// The number of cores.
    #[getter]
    fn cores(&self) -> usize {
        self.trace.cores.len()
    }
}

fn step((name, number): &(String, u64)) -> PyResult<Step> {
    Ok(match name.as_str() {
        "compute" => Step::Compute(*number),
        "load" => Step::Load(*number),
        "store" => Step::Store(*number),
        "update" => Step::Update(*number),
        "barrier" => Step::Barrier,
        other => {
            let expected = "compute, load, store, update or barrier";
            return Err(unknown("operation", other, expected));
        }
    })
}

/// A kernel or trace, and the chip that runs it.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct CoherenceCase {
    mesh: SmartMesh,
    /// The settings of the mesh, with the message classes of the protocol.
    network: Settings,
    chip: SystemSettings,
    work: Work,
}

/// Settings of a chip that replace the defaults, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenChip {
    protocol: String,
    homes: Option<Vec<u32>>,
    l1_bytes: Option<Number>,
    l1_ways: Option<Number>,
    l1_cycles: Option<u64>,
    l2_bytes: Option<Number>,
    l2_ways: Option<Number>,
    l2_cycles: Option<u64>,
    snoop_cycles: Option<u64>,
    data_cycles: Option<u64>,
    home_cycles: Option<u64>,
    dram_cycles: Option<u64>,
    dram_interval: Option<u64>,
    collector: Option<String>,
    shared_hint: Option<String>,
    reissues: Option<Number>,
    shortest_timeout: Option<u64>,
    data_flits: Option<Number>,
    work_per_miss: Option<u64>,
    check: bool,
    patience: Option<u64>,
    limit: Option<u64>,
}

impl GivenChip {
    /// Returns the settings of a chip on a mesh.
    fn over(self, mesh: &Settings) -> PyResult<SystemSettings> {
        let protocol = match &*self.protocol {
            "ht" => Protocol::Ht,
            "tc" => Protocol::Tc,
            other => return Err(unknown("protocol", other, "ht or tc")),
        };
        let mut chip = SystemSettings::new(mesh.columns, mesh.rows, protocol);
        let count = |place: &mut u32, given: Option<Number>| {
            *place = given.map_or(*place, |number| number.0);
        };
        let cycles = |place: &mut u64, given: Option<u64>| *place = given.unwrap_or(*place);
        count(&mut chip.l1_bytes, self.l1_bytes);
        count(&mut chip.l1_ways, self.l1_ways);
        count(&mut chip.l2_bytes, self.l2_bytes);
        count(&mut chip.l2_ways, self.l2_ways);
        count(&mut chip.reissues, self.reissues);
        count(&mut chip.data_flits, self.data_flits);
        cycles(&mut chip.l1_cycles, self.l1_cycles);
        cycles(&mut chip.l2_cycles, self.l2_cycles);
        cycles(&mut chip.snoop_cycles, self.snoop_cycles);
        cycles(&mut chip.data_cycles, self.data_cycles);
        cycles(&mut chip.home_cycles, self.home_cycles);
        cycles(&mut chip.dram_cycles, self.dram_cycles);
        cycles(&mut chip.dram_interval, self.dram_interval);
        cycles(&mut chip.shortest_timeout, self.shortest_timeout);
        cycles(&mut chip.work_per_miss, self.work_per_miss);
        cycles(&mut chip.patience, self.patience);
        cycles(&mut chip.limit, self.limit);
        chip.homes = self.homes.unwrap_or(chip.homes);
        chip.check = self.check;
        if let Some(text) = self.collector {
            chip.collector = collector(&text)?;
        }
        if let Some(text) = self.shared_hint {
            chip.shared_hint = shared_hint(&text)?;
        }
        Ok(chip)
    }
}

fn collector(text: &str) -> PyResult<Collector> {
    match text {
        "requester" => Ok(Collector::Requester),
        "home" => Ok(Collector::Home),
        _ => Err(unknown("collector", text, "requester or home")),
    }
}

fn shared_hint(text: &str) -> PyResult<SharedHint> {
    match text {
        "or" => Ok(SharedHint::Or),
        "never" => Ok(SharedHint::Never),
        _ => Err(unknown("shared_hint", text, "`or` or `never`")),
    }
}

fn unknown(what: &str, text: &str, expected: &str) -> PyErr {
    let message = format!("there is no {what} `{text}`: expected {expected}");
    refuse("CoherenceError", what, &message)
}

#[pymethods]
impl CoherenceCase {
    #[new]
    fn new(
        mesh: &SmartMesh,
        chip: GivenChip,
        kernel: String,
        scale: &str,
        cores: Option<Number>,
        seed: u64,
    ) -> PyResult<CoherenceCase> {
        let chip = chip.over(&mesh.settings)?;
        let cores = cores.map_or(mesh.settings.nodes(), |number| number.0);
        let work = Work::Kernel { kernel, scale: Scale::named(scale).or_raise()?, cores, seed };
        CoherenceCase::checked(mesh, chip, work)
    }

    /// Returns the case of a trace.
    #[staticmethod]
    fn of_trace(
        mesh: &SmartMesh,
        chip: GivenChip,
        trace: &CoherenceTrace,
    ) -> PyResult<CoherenceCase> {
        let chip = chip.over(&mesh.settings)?;
        CoherenceCase::checked(mesh, chip, Work::Trace(Arc::clone(&trace.trace)))
    }

    /// Returns all settings of the chip, by file key.
    fn described(&self) -> DescribedChip {
        DescribedChip::from(&self.chip)
    }

    /// Returns the number of cores with a thread.
    #[getter]
    fn cores(&self) -> usize {
        match &self.work {
            Work::Kernel { cores, .. } => *cores as usize,
            Work::Trace(trace) => trace.cores.len(),
        }
    }
}

/// Returns the settings of a mesh with the message classes of the chip; each class has as many VCs
/// as the mesh has per class.
fn network(mesh: &SmartMesh, chip: &SystemSettings) -> Settings {
    let vcs = mesh.settings.classes[0].vcs;
    let mut network = chip.fit(mesh.settings.clone());
    network.classes.iter_mut().for_each(|class| class.vcs = vcs);
    network
}

/// A reason why a case cannot be run, or gives no result.
enum Refused {
    Work(ProgramError),
    Network(tutti_noc::FlitError),
    Chip(CoherenceError),
}

impl From<Refused> for PyErr {
    fn from(refused: Refused) -> PyErr {
        match refused {
            Refused::Work(error) => raised(&error),
            Refused::Network(error) => raised(&error),
            Refused::Chip(error) => raised(&error),
        }
    }
}

impl CoherenceCase {
    /// A case that can run.
    fn checked(mesh: &SmartMesh, chip: SystemSettings, work: Work) -> PyResult<CoherenceCase> {
        let case = CoherenceCase { mesh: mesh.clone(), network: network(mesh, &chip), chip, work };
        match case.system() {
            Ok(_) => Ok(case),
            Err(refused) => Err(refused.into()),
        }
    }

    fn system(&self) -> Result<System, Refused> {
        let fabric: Box<dyn Fabric> = self.mesh.build(&self.network).map_err(Refused::Network)?;
        let program = self.work.program().map_err(Refused::Work)?;
        System::new(&self.chip, program, fabric).map_err(Refused::Chip)
    }
}

impl MeasurementCase for CoherenceCase {
    fn run(&self, stop: &AtomicBool) -> Outcome {
        let run = self.system().and_then(|system| system.run(stop).map_err(Refused::Chip));
        let nodes = self.network.nodes();
        Box::new(move |py| {
            let result = CoherenceResult::new(py, &run?, nodes)?;
            Ok(Py::new(py, result)?.into_any())
        })
    }
}

/// Returns name and description of every kernel.
#[pyfunction]
pub(crate) fn coherence_kernels() -> Vec<(&'static str, &'static str)> {
    REGISTRY.iter().map(|kernel| (kernel.name(), kernel.summary())).collect()
}

/// All settings of a chip except its size, by file key.
#[derive(IntoPyObject)]
struct DescribedChip {
    protocol: &'static str,
    homes: Vec<u32>,
    l1_bytes: u32,
    l1_ways: u32,
    l1_cycles: u64,
    l2_bytes: u32,
    l2_ways: u32,
    l2_cycles: u64,
    snoop_cycles: u64,
    data_cycles: u64,
    home_cycles: u64,
    dram_cycles: u64,
    dram_interval: u64,
    collector: &'static str,
    shared_hint: &'static str,
    reissues: u32,
    shortest_timeout: u64,
    data_flits: u32,
    work_per_miss: u64,
    check: bool,
    patience: u64,
    limit: u64,
}

impl From<&SystemSettings> for DescribedChip {
    fn from(chip: &SystemSettings) -> DescribedChip {
        DescribedChip {
            protocol: chip.protocol.name(),
            homes: chip.homes.clone(),
            l1_bytes: chip.l1_bytes,
            l1_ways: chip.l1_ways,
            l1_cycles: chip.l1_cycles,
            l2_bytes: chip.l2_bytes,
            l2_ways: chip.l2_ways,
            l2_cycles: chip.l2_cycles,
            snoop_cycles: chip.snoop_cycles,
            data_cycles: chip.data_cycles,
            home_cycles: chip.home_cycles,
            dram_cycles: chip.dram_cycles,
            dram_interval: chip.dram_interval,
            collector: match chip.collector {
                Collector::Requester => "requester",
                Collector::Home => "home",
            },
            shared_hint: match chip.shared_hint {
                SharedHint::Or => "or",
                SharedHint::Never => "never",
            },
            reissues: chip.reissues,
            shortest_timeout: chip.shortest_timeout,
            data_flits: chip.data_flits,
            work_per_miss: chip.work_per_miss,
            check: chip.check,
            patience: chip.patience,
            limit: chip.limit,
        }
    }
}
