//! The homes: what they do for which line, one thing after the other.

use std::collections::{BTreeMap, VecDeque};

use crate::checker::Checker;
use crate::chip::{Chip, Event};
use crate::core::Miss;
use crate::packet::{Kind, OWNER, Packet};
use crate::run::Parts;
use crate::settings::{Collector, Defect, SharedHint};
use tutti_noc::smart::{FlowId, NodeSet, Responses};

/// A request that a home has begun.
#[derive(Clone, Copy, Debug)]
struct Active {
    line: u32,
    requester: u32,
    home: u32,
    /// Its reduction, if it has to be released.
    held: Option<FlowId>,
    /// The cycles in which it came, in which it was begun, and in which its probe came to the last cache.
    asked: u64,
    begun: u64,
    probed: u64,
    /// Where the home collects: what answers said, and whether those of others, and its own, are still to come.
    bits: u64,
    others: bool,
    own: bool,
}

/// All homes.
pub(super) struct Homes {
    /// Lines that are blocked, and the requests that wait for them.
    blocked: BTreeMap<u32, VecDeque<u32>>,
    /// By requester, its requests that have begun, of which there are one or two, with their serials.
    active: Vec<Vec<(u64, Active)>>,
    /// By line, with [`SharedHint::Never`]: whether a cache owns it.
    owned: Vec<bool>,
}

impl Homes {
    pub(super) fn new(lines: u32, nodes: u32) -> Homes {
        let owned = vec![false; lines as usize];
        Homes { blocked: BTreeMap::new(), active: vec![Vec::new(); nodes as usize], owned }
    }

    /// A request that has begun and is not over.
    #[inline]
    fn active(&mut self, requester: u32, serial: u64) -> Option<&mut Active> {
        let of_requester = &mut self.active[requester as usize];
        of_requester.iter_mut().find(|(other, _)| *other == serial).map(|(_, active)| active)
    }

    /// A request has come; it waits while its line is blocked.
    pub(super) fn request(&mut self, chip: &mut Chip, id: u32) {
        let now = chip.now;
        let packet = chip.packets.get_mut(id);
        packet.asked = now;
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

    /// Turns to a request.
    pub(super) fn begin(&mut self, chip: &mut Chip, id: u32) {
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
        let own = home != packet.requester;
        let probe = chip.broadcast(probe, u32::from(own));
        if own {
            chip.after(chip.settings.snoop_cycles, Event::Snoop { node: home, packet: probe });
        }
        let mut copy = Packet::new(Kind::MemoryData, line, home, packet.requester);
        copy.serial = packet.serial;
        copy.words = Some(chip.memory.line(line));
        copy.bits = if self.owned[line as usize] { OWNER } else { 0 };
        let at = chip.memory.read(chip.now, line);
        chip.send_at(at, copy);
    }

    /// Opens the reduction of a request's answers.
    fn open(&mut self, chip: &mut Chip, packet: &Packet) -> Option<FlowId> {
        let Packet { line, to: home, requester, serial, asked, .. } = *packet;
        let collects = chip.settings.collector == Collector::Home;
        let collector = if collects { home } else { requester };
        let mut members = NodeSet::all_but(chip.nodes, collector);
        members.remove(requester);
        let held = collector != home;
        let mut answers = Packet::new(Kind::Answers, line, requester, collector);
        answers.serial = serial;
        let flow = chip.open(answers, members, held);
        let held = flow.filter(|_| held);
        let (begun, own) = (chip.now, collects && home != requester);
        let (probed, bits, others) = (begun, 0, collects);
        let active =
            Active { line, requester, home, held, asked, begun, probed, bits, others, own };
        self.active[requester as usize].push((serial, active));
        flow
    }

    /// A probe has come to a cache.
    #[inline]
    pub(super) fn probed(&mut self, requester: u32, serial: u64, now: u64) {
        if let Some(active) = self.active(requester, serial) {
            active.probed = now;
        }
    }

    /// Answers have come to a home that collects.
    pub(super) fn answered(&mut self, chip: &mut Chip, packet: &Packet, answers: &Responses) {
        let &Packet { requester, serial, .. } = packet;
        let active = self.active(requester, serial).expect("a request that has begun");
        active.bits |= answers.value;
        active.others = !answers.last;
        let active = *active;
        tell(chip, serial, &active);
    }

    /// The cache at a home that collects answers.
    pub(super) fn own_answer(&mut self, chip: &mut Chip, requester: u32, serial: u64, bits: u64) {
        let active = self.active(requester, serial).expect("a request that has begun");
        active.bits |= bits;
        active.own = false;
        let active = *active;
        tell(chip, serial, &active);
    }

    /// What a home waited for has come: it turns to the next request of the line.
    pub(super) fn end(&mut self, chip: &mut Chip, packet: &Packet) {
        let line = packet.line;
        match packet.kind {
            Kind::PutData => {
                let words = packet.words.expect("a line is written back");
                chip.memory.write(chip.now, line, &words);
                self.owned[line as usize] = false;
            }
            Kind::Unblock => {
                let begun = &mut self.active[packet.from as usize];
                if let Some(place) = begun.iter().position(|(serial, _)| *serial == packet.serial)
                    && let (_, Active { held: Some(flow), .. }) = begun.swap_remove(place)
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

    /// What a miss was spent on, up to its last answer.
    pub(super) fn parts(
        &mut self,
        core: u32,
        miss: &Miss,
        answered: u64,
        snoop_cycles: u64,
    ) -> Parts {
        let active = self.active(core, miss.serial).expect("a request that has begun");
        let probed = active.probed.min(answered);
        let snoop = snoop_cycles.min(answered - probed);
        Parts {
            lookup: miss.looked - miss.issued,
            request: active.asked - miss.sent,
            wait: active.begun - active.asked + (miss.sent - miss.looked),
            probe: probed - active.begun,
            snoop,
            answers: answered - probed - snoop,
            ..Parts::default()
        }
    }

    /// Where the request of a miss is, for errors.
    pub(super) fn describe(&self, core: u32, serial: u64, checker: &Checker) -> String {
        let begun = self.active[core as usize].iter().any(|&(other, _)| other == serial);
        match (begun, checker.missing_answers(serial)) {
            (false, _) => "the home has not begun its request".to_owned(),
            (true, None) => "the home has broadcast its request".to_owned(),
            (true, Some(missing)) => format!("{missing} caches have not answered its broadcast"),
        }
    }
}

/// Tells the requester once all have answered.
fn tell(chip: &mut Chip, serial: u64, active: &Active) {
    let &Active { line, requester, home, bits, others, own, .. } = active;
    if !others && !own {
        let mut all = Packet::new(Kind::AllAnswered, line, home, requester);
        (all.serial, all.bits) = (serial, bits);
        chip.send(all);
    }
}
