//! Combining of responses: tables of directions, and responses that meet.

use super::super::message::{Combine, Flow, FlowId};
use super::super::settings::{FanIn, Fault, Merge, Settings};
use super::geometry::{Geometry, LOCAL};
use super::vcs::VcId;

/// No response is buffered.
const NONE: u32 = u32::MAX;

/// A VC in 32 bits.
#[inline]
fn packed(place: VcId) -> u32 {
    place.input << 6 | u32::from(place.vc)
}

#[inline]
fn unpacked(at: u32) -> VcId {
    let vc = u8::try_from(at & 63).expect("six bits");
    VcId { input: at >> 6, vc }
}

/// The state of routers about the flows in flight.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    fan_in: FanIn,
    fault: Option<Fault>,
    nodes: usize,
    entries: u32,
    used: u32,
    /// By flow.
    tables: Vec<Table>,
    /// Routers that wait for responses, of all flows.
    pub(super) waiting: u64,
    /// Buffered responses that can be combined.
    pub(super) buffered: u64,
    merge: Merge,
    /// Whether [`Tables::missing`] is needed.
    holds: bool,
    /// With [`Merge::Buffered`]: responses that are not merged with others before
    /// [`Tables::settle`].
    fresh: Vec<(FlowId, u32, VcId)>,
}

/// One flow at all routers.
#[derive(Clone, Debug, Default)]
struct Table {
    combine: Combine,
    /// Whether its responses are combined.
    combines: bool,
    destination: u32,
    /// Directions from which responses are outstanding.
    directions: Vec<u8>,
    /// The dropped responses that the last one replaces: how many, and their value.
    dropped: Vec<Option<(u32, u64)>>,
    /// The VC of the buffered response that came first, [`packed`].
    at: Vec<u32>,
    /// Other buffered responses with their routers, in the order in which they came.
    others: Vec<(u32, VcId)>,
    /// If routers hold responses: the responses that each router still expects.
    missing: Vec<u32>,
}

/// The fate of a response that arrives at a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It continues, and combines so many responses with this value.
    Continues(u32, u64),
    /// It is dropped: the router waits for more.
    Dropped,
    /// It is merged into the response buffered there.
    MergedInto(VcId),
}

impl Tables {
    pub(super) fn new(settings: &Settings) -> Tables {
        Tables {
            fan_in: settings.fan_in,
            fault: settings.fault,
            nodes: settings.nodes() as usize,
            entries: settings.art_entries,
            used: 0,
            tables: Vec::new(),
            waiting: 0,
            buffered: 0,
            merge: settings.merge,
            holds: settings.hold.is_some(),
            fresh: Vec::new(),
        }
    }

    /// Opens a flow; returns whether its responses are combined.
    pub(super) fn open(&mut self, id: FlowId, flow: &Flow, geometry: &Geometry) -> bool {
        let complete = self.fan_in == FanIn::Complete;
        let combines = match self.fan_in {
            FanIn::Unicasts => false,
            FanIn::Greedy => true,
            FanIn::Complete => self.used < self.entries,
        };
        let slot = id.0 as usize;
        if self.tables.len() <= slot {
            self.tables.resize(slot + 1, Table::default());
        }
        let table = &mut self.tables[slot];
        (table.combine, table.combines) = (flow.combine, combines);
        table.destination = flow.destination;
        if combines {
            table.at.clear();
            table.at.resize(self.nodes, NONE);
        }
        if self.holds {
            table.missing.clear();
            table.missing.resize(self.nodes, 0);
            count_responses(&mut table.missing, flow, geometry);
        }
        if combines && complete {
            table.dropped.clear();
            table.dropped.resize(self.nodes, None);
            self.used += 1;
            table.directions.clear();
            table.directions.resize(self.nodes, 0);
            expect_responses(&mut table.directions, flow, geometry, self.fault);
            self.waiting += table.directions.iter().filter(|&&count| count > 0).count() as u64;
        }
        combines
    }

    /// All responses of a flow have arrived, and it is not held.
    pub(super) fn close(&mut self, id: FlowId) {
        let table = &mut self.tables[id.0 as usize];
        if table.combines && self.fan_in == FanIn::Complete {
            self.used -= 1;
            debug_assert!(table.directions.iter().all(|&count| count == 0), "a table is not empty");
        }
        debug_assert!(table.dropped.iter().all(Option::is_none), "a response was left behind");
        debug_assert!(!table.combines || table.at.iter().all(|&at| at == NONE), "one is buffered");
        debug_assert!(table.others.is_empty(), "one is buffered");
    }

    pub(super) fn combines(&self, id: FlowId) -> bool {
        self.tables[id.0 as usize].combines
    }

    /// Whether a router waits for no response other than the bypassing one.
    #[inline]
    pub(super) fn may_bypass(&self, id: FlowId, router: u32) -> bool {
        self.fan_in != FanIn::Complete
            || self.tables[id.0 as usize].directions[router as usize] == 1
    }

    /// A response arrives at a router and stops there.
    pub(super) fn arrives(&mut self, id: FlowId, router: u32, count: u32, value: u64) -> Fate {
        let router = router as usize;
        let table = &mut self.tables[id.0 as usize];
        if self.fan_in == FanIn::Greedy {
            let at = table.at[router];
            if self.holds {
                table.missing[router] = table.missing[router].saturating_sub(count);
            }
            return if at == NONE {
                Fate::Continues(count, value)
            } else {
                Fate::MergedInto(unpacked(at))
            };
        }
        let directions = &mut table.directions[router];
        assert!(*directions > 0, "a response of flow {} that router {router} did not expect", id.0);
        *directions -= 1;
        let dropped = &mut table.dropped[router];
        let all = match dropped.take() {
            Some((more, other)) => (more + count, table.combine.of(value, other)),
            None => (count, value),
        };
        if *directions > 0 {
            *dropped = Some(all);
            return Fate::Dropped;
        }
        self.waiting -= 1;
        Fate::Continues(all.0, all.1)
    }

    /// A response that combines `count` passes a router, with [`FanIn::Greedy`].
    pub(super) fn passes(&mut self, id: FlowId, router: u32, count: u32) {
        if self.holds {
            let missing = &mut self.tables[id.0 as usize].missing[router as usize];
            *missing = missing.saturating_sub(count);
        }
    }

    /// The responses of a flow that have yet to reach a router.
    pub(super) fn missing(&self, id: FlowId, router: u32) -> u32 {
        self.tables[id.0 as usize].missing[router as usize]
    }

    /// Whether a response that arrives at a router would need a VC.
    pub(super) fn needs_buffer(&self, id: FlowId, router: u32) -> bool {
        let table = &self.tables[id.0 as usize];
        match self.fan_in {
            FanIn::Complete => table.directions[router as usize] == 1,
            _ => table.at[router as usize] == NONE,
        }
    }

    /// A response is buffered in a VC.
    pub(super) fn is_at(&mut self, id: FlowId, router: u32, place: VcId) {
        self.buffered += 1;
        match self.merge {
            Merge::Landing => self.tables[id.0 as usize].at[router as usize] = packed(place),
            Merge::Buffered => self.fresh.push((id, router, place)),
        }
    }

    /// From now on, others merge into the responses that have come.
    pub(super) fn settle(&mut self) {
        for (id, router, place) in self.fresh.drain(..) {
            let table = &mut self.tables[id.0 as usize];
            match &mut table.at[router as usize] {
                at if *at == NONE => *at = packed(place),
                _ => table.others.push((router, place)),
            }
        }
    }

    /// A response has left its VC.
    pub(super) fn leaves(&mut self, id: FlowId, router: u32, place: VcId) {
        self.buffered -= 1;
        let Table { at, others, .. } = &mut self.tables[id.0 as usize];
        let at = &mut at[router as usize];
        if *at == packed(place) {
            let next = others.iter().position(|&(there, _)| there == router);
            *at = next.map_or(NONE, |next| packed(others.remove(next).1));
        } else {
            others.retain(|&(_, other)| other != place);
        }
    }

    /// The response that is buffered at a router; of several, the one that came first.
    #[inline]
    pub(super) fn buffered_at(&self, id: FlowId, router: u32) -> Option<VcId> {
        let at = self.tables[id.0 as usize].at[router as usize];
        (at != NONE).then(|| unpacked(at))
    }

    /// The combination of two responses.
    pub(super) fn joined(&self, id: FlowId, one: (u32, u64), other: (u32, u64)) -> (u32, u64) {
        (one.0 + other.0, self.tables[id.0 as usize].combine.of(one.1, other.1))
    }

    /// Dropped responses of flows with outstanding responses.
    #[cfg(debug_assertions)]
    pub(super) fn dropped(&self) -> u64 {
        let all = self.tables.iter().flat_map(|table| table.dropped.iter().flatten());
        all.map(|&(count, _)| u64::from(count)).sum()
    }
}

/// Counts the directions that responses come from at each router (section IV-A.1).
fn expect_responses(directions: &mut [u8], flow: &Flow, geometry: &Geometry, fault: Option<Fault>) {
    let mut sends = vec![false; directions.len()];
    for member in flow.members.iter() {
        directions[member as usize] += 1;
        let mut router = member;
        while !sends[router as usize] && router != flow.destination {
            sends[router as usize] = true;
            let (output, _) = geometry.towards(router, flow.destination);
            debug_assert!(output != LOCAL, "only the destination is at the destination");
            router = geometry.neighbour(router, output);
            if fault != Some(Fault::WrongDirections) {
                directions[router as usize] += 1;
            }
        }
    }
}

/// Counts the responses that come through each router.
fn count_responses(counts: &mut [u32], flow: &Flow, geometry: &Geometry) {
    for member in flow.members.iter() {
        let mut router = member;
        counts[router as usize] += 1;
        while router != flow.destination {
            let (output, _) = geometry.towards(router, flow.destination);
            router = geometry.neighbour(router, output);
            counts[router as usize] += 1;
        }
    }
}
