//! In-network multicasts: one message at the sender, and one at each receiver.

use super::super::record::Activity;
use super::super::{Probe, Simulation};
use super::Executor;
use tutti_network::{Carried, Carrier, MessageModel, Port};
use tutti_schedule::{Mark, Message, MessageRange};
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

    /// Sends a multicast as one message; returns when the rank is free.
    pub(super) fn fork(
        &mut self,
        rank: RankId,
        step: u32,
        run: MessageRange,
        now: Time,
        port: &mut Port,
    ) -> Time {
        let Simulation { layout, model, conditions, .. } = self.simulation;
        let Message { peer: first, chunks, .. } = self.step.sends[run.start as usize];
        let bytes = layout.bytes(chunks);
        let sent = model.send(port, now, bytes);
        let arrival = sent.arrival + conditions.late((rank, step, run.start), first, bytes);
        let copies = run.of(&self.step.sends).len();
        self.messages += 1;
        self.bytes += u128::from(bytes.0);
        self.copied.count(copies - 1, bytes);
        if P::OBSERVES {
            let only = (copies == 1).then_some(first);
            self.record_span(rank, step, Activity::Send, (now, sent.free), only, bytes);
        }
        self.forked.clear();
        for index in run.start..run.end {
            let peer = self.step.sends[index as usize].peer;
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
}
