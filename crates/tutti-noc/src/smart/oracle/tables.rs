//! Combining of responses.

use std::collections::BTreeSet;

use super::Mesh;
use super::grid::Port;
use super::parts::{Cargo, Flit, Rule};
use crate::smart::message::FlowId;
use crate::smart::settings::{FanIn, Fault, Merge, Priority};

/// The table entries of a flow, by router.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Directions from which responses are outstanding.
    directions: Vec<u32>,
    /// The number of dropped responses, and their combined value.
    dropped: Vec<Option<(u32, u64)>>,
    /// The links that its responses cross.
    links: u32,
}

/// An entry of the tables.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    flow: FlowId,
    /// Whether it must be released too.
    held: bool,
    /// The cycle in which its last response arrived.
    over: Option<u64>,
    /// The cycle in which it was released.
    released: Option<u64>,
}

impl Entry {
    fn is_free(&self, now: u64) -> bool {
        let was = |cycle: Option<u64>, last: u64| cycle.is_some_and(|cycle| cycle < last);
        was(self.over, now) && (!self.held || was(self.released, now + 1))
    }
}

impl Mesh {
    /// Allocates an entry for a new flow, if one is free.
    pub(super) fn reserve(&mut self, flow: FlowId) {
        let now = self.now;
        let of = self.flows.get(flow);
        let (held, members) = (of.held, of.members.len());
        self.entries.retain(|entry| !entry.is_free(now));
        let is_there = self.entries.len() < self.settings.art_entries as usize;
        let mut links = None;
        if self.settings.fan_in == FanIn::Complete && is_there {
            self.entries.push(Entry { flow, held, over: None, released: None });
            let table = self.table(flow);
            links = Some(table.links);
            self.tables.insert(flow, table);
        }
        self.audit.flow(flow, members, links);
    }

    fn table(&self, flow: FlowId) -> Table {
        let flow = self.flows.get(flow);
        let mut links = BTreeSet::new();
        for member in flow.members.iter() {
            let mut at = member;
            for next in self.grid.route(member, flow.destination) {
                links.insert((at, next));
                at = next;
            }
        }
        let broken = self.settings.fault == Some(Fault::WrongDirections);
        let directions = |router: u32| {
            let neighbours = links.iter().filter(|&&(_, to)| to == router && !broken).count();
            let neighbours = u32::try_from(neighbours).expect("a router has four neighbours");
            neighbours + u32::from(flow.members.contains(router))
        };
        Table {
            directions: (0..self.grid.nodes()).map(directions).collect(),
            dropped: vec![None; self.grid.nodes() as usize],
            links: u32::try_from(links.len()).expect("fewer links than 2^32"),
        }
    }

    /// The last response of a flow has arrived.
    pub(super) fn flow_is_over(&mut self, flow: FlowId) {
        self.audit.over(flow);
        self.reached.retain(|&(other, _), _| other != flow);
        if let Some(table) = self.tables.remove(&flow) {
            assert!(
                table.directions.iter().all(|&left| left == 0),
                "tables are empty after a flow"
            );
            assert!(table.dropped.iter().all(Option::is_none), "nothing is left behind");
        }
        let is_its = |entry: &&mut Entry| entry.flow == flow && entry.over.is_none();
        if let Some(entry) = self.entries.iter_mut().find(is_its) {
            entry.over = Some(self.now);
        }
    }

    /// Releases the entry of a held flow.
    pub(super) fn free(&mut self, flow: FlowId) {
        let is_its = |entry: &&mut Entry| entry.flow == flow && entry.released.is_none();
        if let Some(entry) = self.entries.iter_mut().find(is_its) {
            entry.released = Some(self.now);
        }
    }

    /// The number of directions from which responses of a flow are outstanding, at a router.
    pub(super) fn directions(&self, flow: FlowId, router: u32) -> u32 {
        self.tables[&flow].directions[router as usize]
    }

    /// A response comes to a router; returns whether it is merged into a buffered one of its flow.
    pub(super) fn merge_into_buffered(&mut self, router: u32, flow: FlowId, flit: &Flit) -> bool {
        let fits = |&(input, vc): &(Port, usize)| self.is_met(router, input, vc);
        let Some((input, vc)) = self.buffered(router, flow).into_iter().find(fits) else {
            return false;
        };
        let combine = self.flows.get(flow).combine;
        let (count, value) = operand(flit);
        let into = &mut self.input_mut(router, input).vcs[vc].flits[0];
        let (before, own) = operand_mut(into);
        *before += count;
        *own = combine.of(*own, value);
        self.counts.merged += 1;
        true
    }

    /// Whether a response that comes now is merged into a buffered one: with `merge = "buffered"`
    /// only if that was in its VC in this cycle's switch allocation, as all at L were.
    fn is_met(&self, router: u32, input: Port, vc: usize) -> bool {
        let arrived = self.input(router, input).vcs[vc].flits[0].arrived;
        let was_there = input == Port::Local || arrived < self.now;
        was_there || self.settings.merge == Merge::Landing
    }

    /// The positions of the buffered responses of a flow at a router, in the order in which they
    /// came.
    pub(super) fn buffered(&self, router: u32, flow: FlowId) -> Vec<(Port, usize)> {
        let mut found = Vec::new();
        for input in Port::ALL {
            for (vc, buffer) in self.input(router, input).vcs.iter().enumerate() {
                let Some(flit) = buffer.flits.front() else { continue };
                if flit.combines(Rule::Merge) == Some(flow) {
                    // Injection is before landing.
                    found.push(((flit.arrived, input != Port::Local, input), (input, vc)));
                }
            }
        }
        let alone = found.len() < 2 || self.settings.merge == Merge::Buffered;
        assert!(alone, "responses of a flow that meet are merged");
        found.sort();
        found.into_iter().map(|(_, place)| place).collect()
    }

    /// A response comes to a router: it is dropped if others are outstanding, else it takes over
    /// the dropped ones.
    pub(super) fn drop_or_take_over(&mut self, router: u32, flow: FlowId, flit: &mut Flit) -> bool {
        let combine = self.flows.get(flow).combine;
        let table = self.tables.get_mut(&flow).expect("it has an entry");
        let left = &mut table.directions[router as usize];
        *left = left.checked_sub(1).expect("the number of directions is never negative");
        let is_last = *left == 0;
        let dropped = &mut table.dropped[router as usize];
        let (count, value) = operand_mut(flit);
        if let Some((others, theirs)) = dropped.take() {
            *count += others;
            *value = combine.of(theirs, *value);
        }
        if !is_last {
            *dropped = Some((*count, *value));
            self.counts.merged += 1;
        }
        !is_last
    }

    /// A response bypasses a router, and takes along the buffered responses of its flow.
    pub(super) fn take_along(&mut self, router: u32, flit: &mut Flit) {
        let before = operand_of(flit);
        let combines = flit.combines(Rule::Merge).or(flit.combines(Rule::Table)).is_some();
        self.counts.table_reads += u64::from(combines);
        self.reaches(router, flit);
        if let Some(flow) = flit.combines(Rule::Table) {
            let is_dropped = self.drop_or_take_over(router, flow, flit);
            assert!(!is_dropped, "a response passes where it is the last to come");
        }
        if let Some(flow) = flit.combines(Rule::Merge)
            && self.settings.priority != Priority::Local
        {
            let combine = self.flows.get(flow).combine;
            let now = self.now;
            for (input, vc) in self.buffered(router, flow) {
                let other = self.input_mut(router, input).pop(vc, now);
                let (more, theirs) = operand(&other);
                let (count, value) = operand_mut(flit);
                *count += more;
                *value = combine.of(theirs, *value);
                self.counts.merged += 1;
            }
        }
        if self.settings.fault == Some(Fault::LostMerge)
            && let Some((lost_count, lost_value)) = before
        {
            let (count, value) = operand_mut(flit);
            (*count, *value) = (lost_count, lost_value);
        }
    }

    /// A response comes to a router or passes it.
    pub(super) fn reaches(&mut self, router: u32, flit: &Flit) {
        if let (Some(flow), Some((count, _))) = (flit.combines(Rule::Merge), operand_of(flit)) {
            *self.reached.entry((flow, router)).or_default() += count;
        }
    }

    /// The responses of a flow that have yet to reach a router.
    pub(super) fn missing(&self, flow: FlowId, router: u32) -> u32 {
        let of = self.flows.get(flow);
        let comes = |&member: &u32| {
            member == router || self.grid.route(member, of.destination).contains(&router)
        };
        let all = u32::try_from(of.members.iter().filter(comes).count()).expect("few nodes");
        all - self.reached.get(&(flow, router)).copied().unwrap_or_default()
    }

    /// Counts entries and buffered responses at the end of a cycle, for so many cycles.
    pub(super) fn tally(&mut self, cycles: u64) {
        let used = |table: &Table| table.directions.iter().filter(|&&left| left > 0).count();
        let used: usize = self.tables.values().map(used).sum();
        let inputs = self.routers.iter().flat_map(|router| &router.inputs);
        let flits = inputs.flat_map(|input| &input.vcs).flat_map(|vc| &vc.flits);
        let combines =
            |flit: &&Flit| flit.combines(Rule::Merge).or(flit.combines(Rule::Table)).is_some();
        let [used, flows] = [used, flits.filter(combines).count()]
            .map(|count| u64::try_from(count).expect("it fits"));
        self.counts.table_entries += cycles * used;
        self.counts.buffered_flows += cycles * flows;
        self.counts.cycles += cycles;
    }
}

fn operand_of(flit: &Flit) -> Option<(u32, u64)> {
    match flit.cargo {
        Cargo::Response { count, value, .. } => Some((count, value)),
        _ => None,
    }
}

/// The number of responses combined in a response, and their value.
fn operand(flit: &Flit) -> (u32, u64) {
    operand_of(flit).expect("it is a response")
}

fn operand_mut(flit: &mut Flit) -> (&mut u32, &mut u64) {
    match &mut flit.cargo {
        Cargo::Response { count, value, .. } => (count, value),
        _ => unreachable!("it is a response"),
    }
}
