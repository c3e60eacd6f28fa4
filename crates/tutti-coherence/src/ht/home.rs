//! The homes: they serialise the requests of each line.

use std::collections::{BTreeMap, VecDeque};

use crate::checker::Checker;
use crate::chip::{Chip, Event};
use crate::core::Miss;
use crate::packet::{Kind, OWNER, Packet};
use crate::run::Parts;
use crate::settings::{Collector, Defect, SharedHint};
use tutti_noc::smart::{FlowId, NodeSet, Responses};

/// A request in progress at a home.
#[derive(Clone, Copy, Debug)]
struct Active {
    line: u32,
    requester: u32,
    home: u32,
    /// Its reduction, if the home must release it.
    held: Option<FlowId>,
    /// The cycles in which the request arrived, started, and in which its probe arrived at the last
    /// cache.
    arrived: u64,
    started: u64,
    probed: u64,
    /// If the home collects: the OR of the responses, and whether those of other caches and of the
    /// home's cache are outstanding.
    bits: u64,
    others_pending: bool,
    own_pending: bool,
}

/// All homes.
pub(super) struct Homes {
    /// Blocked lines, with their waiting requests.
    blocked: BTreeMap<u32, VecDeque<u32>>,
    /// By requester: its requests in progress, one or two, with their serial numbers.
    active: Vec<Vec<(u64, Active)>>,
    /// By line, with [`SharedHint::Never`]: whether a cache owns it.
    owned: Vec<bool>,
}

impl Homes {
    pub(super) fn new(lines: u32, nodes: u32) -> Homes {
        let owned = vec![false; lines as usize];
        Homes { blocked: BTreeMap::new(), active: vec![Vec::new(); nodes as usize], owned }
    }

    /// Returns a request in progress.
    #[inline]
    fn active(&mut self, requester: u32, serial: u64) -> Option<&mut Active> {
        let of_requester = &mut self.active[requester as usize];
        of_requester.iter_mut().find(|(other, _)| *other == serial).map(|(_, active)| active)
    }

    /// A request arrived; it waits while its line is blocked.
    pub(super) fn request(&mut self, chip: &mut Chip, id: u32) {
        let now = chip.now;
        let packet = chip.packets.get_mut(id);
        packet.request_arrived = now;
        let line = packet.line;
        if chip.settings.defect != Some(Defect::UnblockedHome)
            && let Some(waiting) = self.blocked.get_mut(&line)
        {
            waiting.push_back(id);
            return;
        }
        self.blocked.entry(line).or_default();
        chip.after(chip.settings.home_cycles, Event::Home(id));
    }

    /// Starts a request.
    pub(super) fn start(&mut self, chip: &mut Chip, id: u32) {
        let packet = *chip.packets.get(id);
        chip.packets.done(id);
        let Packet { line, to: home, .. } = packet;
        if packet.kind == Kind::Put {
            chip.send(Packet::new(Kind::PutGranted, line, home, packet.from));
            return;
        }
        let flow = self.open(chip, &packet);
        let mut probe = Packet { flow, ..packet };
        (probe.kind, probe.from) = (Kind::Probe, home);
        let remote = home != packet.requester;
        let probe = chip.broadcast(probe, u32::from(remote));
        if remote {
            chip.after(chip.settings.snoop_cycles, Event::Snoop { node: home, packet: probe });
        }
        let mut copy = Packet::new(Kind::MemoryData, line, home, packet.requester);
        copy.serial = packet.serial;
        copy.words = Some(chip.memory.line(line));
        copy.bits = if self.owned[line as usize] { OWNER } else { 0 };
        let at = chip.memory.read(chip.now, line);
        chip.send_at(at, copy);
    }

    /// Opens the reduction of a request's responses.
    fn open(&mut self, chip: &mut Chip, packet: &Packet) -> Option<FlowId> {
        let Packet { line, to: home, requester, serial, request_arrived: arrived, .. } = *packet;
        let collects = chip.settings.collector == Collector::Home;
        let collector = if collects { home } else { requester };
        let mut members = NodeSet::all_but(chip.nodes, collector);
        members.remove(requester);
        let held = collector != home;
        let mut responses = Packet::new(Kind::Responses, line, requester, collector);
        responses.serial = serial;
        let flow = chip.open(responses, members, held);
        let held = flow.filter(|_| held);
        let (started, own_pending) = (chip.now, collects && home != requester);
        let (probed, bits, others_pending) = (started, 0, collects);
        let active = Active {
            line,
            requester,
            home,
            held,
            arrived,
            started,
            probed,
            bits,
            others_pending,
            own_pending,
        };
        self.active[requester as usize].push((serial, active));
        flow
    }

    /// A probe arrived at a cache.
    #[inline]
    pub(super) fn probed(&mut self, requester: u32, serial: u64, now: u64) {
        if let Some(active) = self.active(requester, serial) {
            active.probed = now;
        }
    }

    /// Responses arrived at a home that collects them.
    pub(super) fn responded(&mut self, chip: &mut Chip, packet: &Packet, responses: &Responses) {
        let &Packet { requester, serial, .. } = packet;
        let active = self.active(requester, serial).expect("a request in progress");
        active.bits |= responses.value;
        active.others_pending = !responses.last;
        let active = *active;
        send_if_complete(chip, serial, &active);
    }

    /// Adds the response of the home's cache, at a home that collects responses.
    pub(super) fn home_response(
        &mut self,
        chip: &mut Chip,
        requester: u32,
        serial: u64,
        bits: u64,
    ) {
        let active = self.active(requester, serial).expect("a request in progress");
        active.bits |= bits;
        active.own_pending = false;
        let active = *active;
        send_if_complete(chip, serial, &active);
    }

    /// A request or write-back completed: starts the next request of the line.
    pub(super) fn finish(&mut self, chip: &mut Chip, packet: &Packet) {
        let line = packet.line;
        match packet.kind {
            Kind::PutData => {
                let words = packet.words.expect("a line is written back");
                chip.memory.write(chip.now, line, &words);
                self.owned[line as usize] = false;
            }
            Kind::Unblock => {
                let in_progress = &mut self.active[packet.from as usize];
                if let Some(index) =
                    in_progress.iter().position(|(serial, _)| *serial == packet.serial)
                    && let (_, Active { held: Some(flow), .. }) = in_progress.swap_remove(index)
                {
                    chip.fabric.release(flow);
                }
                let hints = chip.settings.shared_hint == SharedHint::Or;
                self.owned[line as usize] |= packet.write && !hints;
            }
            _ => {}
        }
        let Some(waiting) = self.blocked.get_mut(&line) else { return };
        match waiting.pop_front() {
            Some(next) => chip.after(chip.settings.home_cycles, Event::Home(next)),
            None => _ = self.blocked.remove(&line),
        }
    }

    /// Returns the latency components of a miss, up to its last response.
    pub(super) fn parts(
        &mut self,
        core: u32,
        miss: &Miss,
        last_response: u64,
        snoop_cycles: u64,
    ) -> Parts {
        let active = self.active(core, miss.serial).expect("a request in progress");
        let probed = active.probed.min(last_response);
        let snoop = snoop_cycles.min(last_response - probed);
        Parts {
            lookup: miss.lookup_done - miss.issued,
            request: active.arrived - miss.sent,
            wait: active.started - active.arrived + (miss.sent - miss.lookup_done),
            probe: probed - active.started,
            snoop,
            responses: last_response - probed - snoop,
            ..Parts::default()
        }
    }

    /// Describes the progress of a miss's request, in errors.
    pub(super) fn describe(&self, core: u32, serial: u64, checker: &Checker) -> String {
        let started = self.active[core as usize].iter().any(|&(other, _)| other == serial);
        match (started, checker.outstanding_responses(serial)) {
            (false, _) => "the home has not started its request".to_owned(),
            (true, None) => "the home has broadcast its request".to_owned(),
            (true, Some(missing)) => {
                format!("{missing} caches have not responded to its broadcast")
            }
        }
    }
}

/// Sends the combined response to the requester once all caches have responded.
fn send_if_complete(chip: &mut Chip, serial: u64, active: &Active) {
    let &Active { line, requester, home, bits, others_pending, own_pending, .. } = active;
    if !others_pending && !own_pending {
        let mut all = Packet::new(Kind::AllResponses, line, home, requester);
        (all.serial, all.bits) = (serial, bits);
        chip.send(all);
    }
}
