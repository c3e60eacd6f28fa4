//! In-network multicasts: one message at the sender, and one at each receiver.

use super::super::record::Activity;
use super::super::{Probe, Simulation};
use super::Executor;
use tutti_network::{Carried, Carrier, MessageModel, Port};
use tutti_schedule::{Local, Mark, Message, MessageRange};
use tutti_units::Time;
use tutti_units::ids::RankId;

impl<M: MessageModel, C: Carrier, P: Probe> Executor<'_, M, C, P> {
    /// The multicast that starts with a send of the current step, if the network forks it.
    #[inline]
    pub(super) fn forked_from(&self, index: usize) -> Option<MessageRange> {
        if !C::IN_NETWORK || !self.carrier.forks() {
            return None;
        }
        self.step.marks().iter().find_map(|mark| match *mark {
            Mark::Multicast(run) if run.start as usize == index => Some(run),
            _ => None,
        })
    }

    /// Sends a multicast as one message for each of its parts; returns when the rank is free.
    pub(super) fn fork(
        &mut self,
        rank: RankId,
        step: u32,
        run: MessageRange,
        mut now: Time,
        port: &mut Port,
    ) -> Time {
        let sends = run.of(&self.step.sends);
        let peers: Vec<RankId> = sends.iter().map(|send| send.peer).collect();
        if peers.iter().any(|peer| peer.index() >= self.ranks.len()) {
            let all: Vec<usize> = (0..peers.len()).collect();
            return self.fork_part(rank, step, (run, &all), now, port);
        }
        for part in self.carrier.parts(rank, &peers, false) {
            now = self.fork_part(rank, step, (run, &part), now, port);
        }
        now
    }

    /// Sends some messages of a multicast as one; returns when the rank is free.
    fn fork_part(
        &mut self,
        rank: RankId,
        step: u32,
        (run, part): (MessageRange, &[usize]),
        now: Time,
        port: &mut Port,
    ) -> Time {
        let Simulation { layout, model, conditions, .. } = self.simulation;
        let index = run.start + u32::try_from(part[0]).unwrap_or(u32::MAX);
        let Message { peer: first, chunks, .. } = self.step.sends[index as usize];
        let bytes = layout.bytes(chunks);
        let sent = model.send(port, now, bytes);
        let arrival = sent.arrival + conditions.late((rank, step, index), first, bytes);
        self.messages += 1;
        self.bytes += u128::from(bytes.0);
        self.copied.count(part.len() - 1, bytes);
        if P::OBSERVES {
            let only = (part.len() == 1).then_some(first);
            self.record_span(rank, step, Activity::Send, (now, sent.free), only, bytes);
        }
        self.forked.clear();
        for member in part {
            let peer = self.step.sends[run.start as usize + member].peer;
            if peer.index() >= self.ranks.len() {
                self.note_invalid_send(rank, step, peer);
                continue;
            }
            self.ranks[rank.index()].in_flight += u32::from(self.waits_for_sends);
            let ticket = self.dispatch.transit.send((rank, peer), bytes, now);
            self.forked.push((ticket, Carried { source: rank, destination: peer, bytes, arrival }));
        }
        self.carrier.fork(&self.forked);
        sent.free
    }

    /// Whether a receive of the current step follows another one of the same in-network reduction, the
    /// result of which arrives as one message, the first of its contributions.
    pub(super) fn is_combined(&self, rank: RankId, position: u32) -> bool {
        let step = self.ranks[rank.index()].step;
        self.step.combines().enumerate().any(|(nth, (run, _))| {
            let member = (position.wrapping_sub(run.start)) as usize;
            let inside = run.start <= position && position < run.end;
            inside
                && self.combining.parts(rank, step, nth).map_or(member > 0, |parts| {
                    parts.iter().all(|part| part.first() != Some(&member))
                })
        })
    }

    /// The time of the reduction of a combine by its receiver: of the parts that the network has not
    /// reduced.
    pub(super) fn folding(&self, rank: RankId, nth: usize) -> Time {
        let Simulation { layout, costs, .. } = self.simulation;
        let step = self.ranks[rank.index()].step;
        let parts = self.combining.parts(rank, step, nth);
        let (Some(parts), Local::Reduce { operands, chunks, .. }) = (parts, self.step.locals[nth])
        else {
            return Time::ZERO;
        };
        let reduced: usize = parts.iter().map(|part| part.len() - 1).sum();
        let left = operands.len() - u32::try_from(reduced).unwrap_or(operands.len());
        costs.reduce(left, layout.bytes(chunks))
    }
}
