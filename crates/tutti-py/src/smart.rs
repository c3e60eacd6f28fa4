//! SMART meshes, whose flits make several hops per cycle: their designs and settings.

use pyo3::prelude::*;
use tutti_noc::FlitError;
use tutti_noc::smart::{
    Arbiter, Class, Design, DesignKind, Fabric, FanIn, FanOut, Merge, Priority, Rule, Settings,
    Tree, design as design_of, designs,
};

use crate::errors::{OrRaise, raised, refuse};
use crate::schedule::Number;

/// A mesh: the name of its design and the settings that differ.
#[pyclass(frozen, module = "tutti._core")]
#[derive(Clone)]
pub(crate) struct SmartMesh {
    pub(crate) design: Design,
    /// With one message class, which carries multicasts; further classes are copies of it.
    pub(crate) settings: Settings,
}

/// Settings that override those of the design, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenMesh {
    columns: Number,
    rows: Number,
    hpc_max: Option<Number>,
    bypass_turns: Option<bool>,
    collective_turns: Option<bool>,
    priority: Option<String>,
    arbiter: Option<String>,
    fan_out: Option<String>,
    fan_in: Option<String>,
    merge: Option<String>,
    hold: Option<String>,
    yx: Option<bool>,
    vcs: Option<Number>,
    depth: Option<Number>,
    split_vcs: Option<bool>,
    credit_delay: Option<Number>,
    sag_extra_cycle: Option<Number>,
    eject_cost: Option<Number>,
    art_entries: Option<Number>,
    reducer: Option<bool>,
    patience: Option<u64>,
}

impl GivenMesh {
    /// Returns the settings of a design with these overrides.
    fn over(self, mut settings: Settings) -> PyResult<Settings> {
        let put = |place: &mut u32, given: Option<Number>| {
            *place = given.map_or(*place, |number| number.0);
        };
        put(&mut settings.hops_per_cycle, self.hpc_max);
        put(&mut settings.credit_delay, self.credit_delay);
        put(&mut settings.sag_extra_cycle, self.sag_extra_cycle);
        put(&mut settings.eject_cost, self.eject_cost);
        put(&mut settings.art_entries, self.art_entries);
        for class in &mut settings.classes {
            put(&mut class.vcs, self.vcs);
            put(&mut class.depth, self.depth);
        }
        settings.bypass_turns = self.bypass_turns.unwrap_or(settings.bypass_turns);
        let turns = self.collective_turns;
        settings.collective_turns = turns.unwrap_or(settings.collective_turns);
        settings.yx = self.yx.unwrap_or(settings.yx);
        settings.split_vcs = self.split_vcs.unwrap_or(settings.split_vcs);
        settings.reducer = self.reducer.unwrap_or(settings.reducer);
        settings.patience = self.patience.unwrap_or(settings.patience);
        if let Some(text) = self.priority {
            settings.priority = priority(&text)?;
        }
        if let Some(text) = self.arbiter {
            settings.arbiter = arbiter(&text)?;
        }
        if let Some(text) = self.hold {
            settings.hold = Some(Rule::parse("hold", &text, &Settings::HOLD_VARIABLES).or_raise()?);
        }
        if let Some(text) = self.fan_out {
            settings.fan_out = fan_out(&text)?;
        }
        if let Some(text) = self.fan_in {
            settings.fan_in = fan_in(&text)?;
        }
        if let Some(text) = self.merge {
            settings.merge = merge(&text)?;
        }
        Ok(settings)
    }
}

#[pymethods]
impl SmartMesh {
    /// Returns the design of that name with overrides.
    #[new]
    fn new(design: &str, given: GivenMesh) -> PyResult<SmartMesh> {
        let design = design_of(design).or_raise()?;
        let own = design.settings(given.columns.0, given.rows.0);
        let settings = given.over(own)?;
        let mesh = SmartMesh { design, settings };
        mesh.build(&mesh.settings).or_raise()?;
        Ok(mesh)
    }

    /// The number of nodes.
    #[getter]
    fn nodes(&self) -> u32 {
        self.settings.nodes()
    }

    /// All current settings, by the keys of files.
    fn described(&self) -> Described {
        let settings = &self.settings;
        let Class { vcs, depth, .. } = settings.classes[0];
        Described {
            hpc_max: settings.hops_per_cycle,
            bypass_turns: settings.bypass_turns,
            collective_turns: settings.collective_turns,
            priority: priority_name(&settings.priority),
            arbiter: arbiter_name(settings.arbiter),
            fan_out: fan_out_name(settings.fan_out),
            fan_in: fan_in_name(settings.fan_in),
            merge: merge_name(settings.merge),
            hold: settings.hold.as_ref().map(|rule| rule.text().to_owned()),
            yx: settings.yx,
            vcs,
            depth,
            split_vcs: settings.split_vcs,
            credit_delay: settings.credit_delay,
            sag_extra_cycle: settings.sag_extra_cycle,
            eject_cost: settings.eject_cost,
            art_entries: settings.art_entries,
            reducer: settings.reducer,
            patience: settings.patience,
        }
    }
}

/// All settings of a mesh but its size, by the keys of files.
#[derive(IntoPyObject)]
struct Described {
    hpc_max: u32,
    bypass_turns: bool,
    collective_turns: bool,
    priority: String,
    arbiter: &'static str,
    fan_out: String,
    fan_in: &'static str,
    merge: &'static str,
    hold: Option<String>,
    yx: bool,
    vcs: u32,
    depth: u32,
    split_vcs: bool,
    credit_delay: u32,
    sag_extra_cycle: u32,
    eject_cost: u32,
    art_entries: u32,
    reducer: bool,
    patience: u64,
}

impl SmartMesh {
    /// An empty fabric of this design with other settings, such as more message classes.
    pub(crate) fn build(&self, settings: &Settings) -> Result<Box<dyn Fabric + Send>, FlitError> {
        self.design.build(settings)
    }

    /// Whether all nodes have dedicated links.
    pub(crate) fn is_connected(&self) -> bool {
        matches!(self.design.kind, DesignKind::FullyConnected(_))
    }
}

/// Every design: its name, and a sentence.
#[pyfunction]
pub(crate) fn smart_designs() -> Vec<(&'static str, &'static str)> {
    designs().iter().map(|design| (design.name, design.summary)).collect()
}

fn priority(text: &str) -> PyResult<Priority> {
    match text {
        "local" => Ok(Priority::Local),
        "bypass" => Ok(Priority::Bypass),
        "bypass_responses" => Ok(Priority::BypassResponses),
        _ => match Rule::parse("priority", text, &Priority::VARIABLES) {
            Ok(rule) => Ok(Priority::Rule(rule)),
            Err(_) if text.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '_') => {
                let expected = "local, bypass, bypass_responses or an expression";
                Err(unreadable("priority", text, expected))
            }
            Err(error) => Err(raised(&error)),
        },
    }
}

fn priority_name(priority: &Priority) -> String {
    match priority {
        Priority::Local => "local".to_owned(),
        Priority::Bypass => "bypass".to_owned(),
        Priority::BypassResponses => "bypass_responses".to_owned(),
        Priority::Rule(rule) => rule.text().to_owned(),
    }
}

fn arbiter(text: &str) -> PyResult<Arbiter> {
    match text {
        "round_robin" => Ok(Arbiter::RoundRobin),
        "oldest" => Ok(Arbiter::Oldest),
        _ => Err(unreadable("arbiter", text, "round_robin or oldest")),
    }
}

fn arbiter_name(arbiter: Arbiter) -> &'static str {
    match arbiter {
        Arbiter::RoundRobin => "round_robin",
        Arbiter::Oldest => "oldest",
    }
}

fn fan_out(text: &str) -> PyResult<FanOut> {
    match (text, text.strip_prefix("complete:").map(str::parse)) {
        ("unicasts", _) => Ok(FanOut::Unicasts),
        ("greedy:svt", _) => Ok(FanOut::Greedy(Tree::Shared)),
        ("greedy:pvt", _) => Ok(FanOut::Greedy(Tree::Private)),
        (_, Some(Ok(interval))) => Ok(FanOut::Complete { interval }),
        _ => {
            let expected =
                "unicasts, greedy:svt, greedy:pvt or complete:INTERVAL, such as complete:6";
            Err(unreadable("fan_out", text, expected))
        }
    }
}

fn fan_out_name(fan_out: FanOut) -> String {
    match fan_out {
        FanOut::Unicasts => "unicasts".to_owned(),
        FanOut::Greedy(Tree::Shared) => "greedy:svt".to_owned(),
        FanOut::Greedy(Tree::Private) => "greedy:pvt".to_owned(),
        FanOut::Complete { interval } => format!("complete:{interval}"),
    }
}

fn fan_in(text: &str) -> PyResult<FanIn> {
    match text {
        "unicasts" => Ok(FanIn::Unicasts),
        "greedy" => Ok(FanIn::Greedy),
        "complete" => Ok(FanIn::Complete),
        _ => Err(unreadable("fan_in", text, "unicasts, greedy or complete")),
    }
}

fn fan_in_name(fan_in: FanIn) -> &'static str {
    match fan_in {
        FanIn::Unicasts => "unicasts",
        FanIn::Greedy => "greedy",
        FanIn::Complete => "complete",
    }
}

fn merge(text: &str) -> PyResult<Merge> {
    match text {
        "landing" => Ok(Merge::Landing),
        "buffered" => Ok(Merge::Buffered),
        _ => Err(unreadable("merge", text, "landing or buffered")),
    }
}

fn merge_name(merge: Merge) -> &'static str {
    match merge {
        Merge::Landing => "landing",
        Merge::Buffered => "buffered",
    }
}

fn unreadable(key: &str, text: &str, expected: &str) -> PyErr {
    refuse("NocError", key, &format!("there is no {key} `{text}`: expected {expected}"))
}
