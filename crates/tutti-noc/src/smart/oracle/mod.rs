//! The reference model of the meshes: in each cycle every NIC, router, port and VC is inspected,
//! and everything is recomputed.
//!
//! Slow, and written from `docs/models/smart.md` alone, as are the fast meshes. The two are
//! validated against each other: they deliver the same packets in the same cycles. Invariants are
//! asserted in every cycle.

mod audit;
mod grid;
mod landing;
mod nic;
mod parts;
mod paths;
mod preset;
mod switch;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use self::audit::Audit;
use self::grid::{Grid, Port};
use self::nic::Nic;
use self::parts::{Cargo, Flit, Input, Landing, Rule};
use self::tables::{Entry, Table};
use super::counts::Counts;
use super::fabric::Fabric;
use super::flows::Flows;
use super::message::{Arrival, Cast, Combine, Flow, FlowId, Message, Responses};
use super::settings::{FanIn, Fault, Settings};
use crate::{FlitError, Watchdog};

/// A mesh.
#[derive(Debug)]
pub struct Mesh {
    settings: Settings,
    grid: Grid,
    flows: Flows,
    now: u64,
    /// The serial number of the next packet.
    serial: u64,
    nics: Vec<Nic>,
    routers: Vec<Router>,
    /// Flits that cross links.
    landings: Vec<Landing>,
    /// Flits that NICs have taken and that are reported on arrival.
    taken: Vec<Arrival>,
    /// How many directions each flow's responses still come from.
    tables: BTreeMap<FlowId, Table>,
    /// The flows with a table entry.
    entries: Vec<Entry>,
    /// With `fan_in = "greedy"`: the responses of a flow that have reached a router.
    reached: BTreeMap<(FlowId, u32), u32>,
    watchdog: Watchdog,
    counts: Counts,
    audit: Audit,
}

#[derive(Debug)]
struct Router {
    /// By port.
    inputs: Vec<Input>,
    /// By output: the place in the order of ports of the input that is inspected first.
    pointers: Vec<usize>,
}

impl Mesh {
    /// An empty mesh.
    ///
    /// # Errors
    /// When the settings are invalid.
    pub fn new(settings: &Settings) -> Result<Mesh, FlitError> {
        settings.check()?;
        let grid = Grid::new(settings);
        let sizes: Vec<u32> = (0..settings.classes.len())
            .flat_map(|class| stages(settings, class).into_iter())
            .collect();
        let input = |port: &Port| {
            let delay = if *port == Port::Local { 0 } else { settings.credit_delay };
            Input::new(&sizes, u64::from(delay))
        };
        let router = |_| Router {
            inputs: Port::ALL.iter().map(input).collect(),
            pointers: vec![0; Port::ALL.len()],
        };
        Ok(Mesh {
            flows: Flows::new(grid.nodes()),
            now: 0,
            serial: 0,
            nics: (0..grid.nodes()).map(|_| Nic::new(settings.classes.len())).collect(),
            routers: (0..grid.nodes()).map(router).collect(),
            landings: Vec::new(),
            taken: Vec::new(),
            tables: BTreeMap::new(),
            entries: Vec::new(),
            reached: BTreeMap::new(),
            watchdog: Watchdog::new(settings.patience, 1),
            counts: Counts::default(),
            audit: Audit::default(),
            settings: settings.clone(),
            grid,
        })
    }

    fn input(&self, router: u32, port: Port) -> &Input {
        &self.routers[router as usize].inputs[port as usize]
    }

    fn input_mut(&mut self, router: u32, port: Port) -> &mut Input {
        &mut self.routers[router as usize].inputs[port as usize]
    }

    /// The pool of a class and a stage.
    fn pool(&self, class: u8, stage: usize) -> usize {
        let before: usize =
            (0..usize::from(class)).map(|class| stages(&self.settings, class).len()).sum();
        before + stage.min(stages(&self.settings, usize::from(class)).len() - 1)
    }

    /// The cycle in which flits with a path granted now cross the links.
    fn crossing(&self) -> u64 {
        self.now + 1 + u64::from(self.settings.sag_extra_cycle)
    }

    /// Whether a flit of a stage has a free VC downstream of an output.
    fn has_free_vc(&self, router: u32, output: Port, flit: &Flit, stage: usize) -> bool {
        let next = self.grid.next(router, output).expect("flits stay on the mesh");
        self.input(next, output.opposite()).takes(
            self.pool(flit.class, stage),
            flit.packet,
            self.now,
        )
    }

    /// Ejects a flit at its NIC.
    fn eject(&mut self, router: u32, flit: &Flit) {
        self.counts.ejected += 1;
        self.audit.ejects(router, flit);
        if !flit.tail {
            return;
        }
        let responses = match flit.cargo {
            Cargo::Response { flow, count, value, .. } => {
                Some(Responses { flow, count, value, last: false })
            }
            _ => None,
        };
        self.taken.push(Arrival {
            arrived: self.now + u64::from(self.settings.eject_cost),
            node: router,
            source: flit.source,
            created: flit.created,
            class: flit.class,
            tag: flit.tag,
            responses,
        });
    }

    /// Reports the arrivals up to the current cycle.
    fn report(&mut self, arrivals: &mut Vec<Arrival>) {
        let now = self.now;
        let (mut due, later): (Vec<Arrival>, Vec<Arrival>) =
            self.taken.drain(..).partition(|arrival| arrival.arrived <= now);
        self.taken = later;
        due.sort_by_key(|arrival| arrival.node);
        for arrival in &mut due {
            if let Some(responses) = &mut arrival.responses {
                responses.last = self.flows.arrived(responses.flow, responses.count);
                self.audit.arrive(responses.flow, responses.count);
                if responses.last {
                    self.flow_is_over(responses.flow);
                }
            }
        }
        arrivals.extend(due);
    }

    /// Values other than counts are combined only by routers that have a reducer.
    fn can_combine(&self, flow: &Flow) -> Result<(), FlitError> {
        let plain = self.settings.fan_in == FanIn::Unicasts || flow.combine == Combine::Count;
        if plain || self.settings.reducer {
            return Ok(());
        }
        let problem = format!(
            "responses combined by {:?} need a reducer in the routers; expected `reducer = true`",
            flow.combine
        );
        Err(FlitError::Clash { what: "combine", problem })
    }

    fn rule(&self, flow: FlowId) -> Rule {
        match self.settings.fan_in {
            FanIn::Unicasts => Rule::Unicast,
            FanIn::Greedy => Rule::Merge,
            FanIn::Complete if self.tables.contains_key(&flow) => Rule::Table,
            FanIn::Complete => Rule::Unicast,
        }
    }
}

/// The VCs of a class by stage, with [`Settings::fault`] applied.
fn stages(settings: &Settings, class: usize) -> Vec<u32> {
    let stages = settings.stages(&settings.classes[class]);
    if settings.fault == Some(Fault::SharedVcs) { vec![stages.iter().sum()] } else { stages }
}

impl Fabric for Mesh {
    fn now(&self) -> u64 {
        self.now
    }

    fn nodes(&self) -> u32 {
        self.grid.nodes()
    }

    fn open(&mut self, flow: Flow) -> Result<FlowId, FlitError> {
        self.can_combine(&flow)?;
        let id = self.flows.open(flow, self.settings.classes.len())?;
        self.reserve(id);
        Ok(id)
    }

    fn release(&mut self, flow: FlowId) {
        self.flows.release(flow);
        self.free(flow);
    }

    fn send(&mut self, message: Message) -> Result<(), FlitError> {
        self.flows.check(&message, &self.settings)?;
        let many = match &message.cast {
            Cast::Many(members) if self.settings.tree().is_none() => Some(members.clone()),
            _ => None,
        };
        match many {
            None => self.queue(&message),
            Some(members) => {
                for node in members.iter() {
                    self.queue(&Message { cast: Cast::One(node), ..message.clone() });
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, arrivals: &mut Vec<Arrival>) {
        self.inject();
        let grants = self.allocate();
        self.set_paths(&grants);
        self.send_on_preset_paths();
        self.land();
        self.report(arrivals);
        self.tally(1);
        self.check();
        self.now += 1;
    }

    fn is_empty(&self) -> bool {
        let mut inputs = self.routers.iter().flat_map(|router| &router.inputs);
        self.nics.iter().all(Nic::is_empty)
            && self.landings.is_empty()
            && self.taken.is_empty()
            && inputs.all(|input| input.vcs.iter().all(|vc| vc.flits.is_empty()))
    }

    fn skip_to(&mut self, cycle: u64) {
        assert!(self.is_empty() && cycle >= self.now, "only empty meshes skip, and forwards");
        self.tally(cycle - self.now);
        self.now = cycle;
        self.watchdog.moved(cycle);
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn stalled_since(&self) -> Option<u64> {
        let stalled = !self.is_empty() && self.watchdog.is_stalled(self.now);
        stalled.then(|| self.watchdog.idle_from())
    }
}
