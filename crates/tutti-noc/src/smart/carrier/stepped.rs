//! Messages of endpoints, whose events interleave with the cycles of the fabric.
//!
//! A NIC injects its messages in the order in which they are sent. A cycle is executed once all
//! messages that can enter in it are known.

use super::{FabricCarrier, Reduction};
use tutti_network::packet::LinkUse;
use tutti_network::{Carried, Carrier, Progress, Stepped, Ticket};
use tutti_units::Time;
use tutti_units::ids::RankId;

impl FabricCarrier<'_> {
    /// Whether a cycle can be executed: nothing sent at `until` or later can enter in it.
    fn precedes(&self, until: Time) -> bool {
        self.endpoints.time_of(self.fabric.now()) < until
    }

    /// Skips to the next cycle in which a packet can be handed over or an arrival is due. Returns
    /// whether there is one before `until`.
    fn skip_before(&mut self, until: Time) -> bool {
        let now = self.fabric.now();
        let starts = self.nics.iter().flatten().flatten().map(|job| job.start);
        let next = starts.filter(|&start| start > now).chain(self.endpoints.due()).min();
        match next {
            Some(next) if self.endpoints.time_of(next) <= until => {
                self.fabric.skip_to(next.max(now));
                true
            }
            Some(_) => false,
            // All remaining messages wait for table entries.
            None => self.jobs > 0 && self.hand_over(true),
        }
    }
}

impl Stepped for FabricCarrier<'_> {
    fn send(&mut self, ticket: Ticket, message: Carried) {
        self.begin_step(message.source);
        self.carry(ticket, message);
    }

    fn tree_parts(&self, _: RankId, leaves: &[RankId], inwards: bool) -> Vec<Vec<usize>> {
        let is_one = if inwards { self.combines() } else { self.forks() };
        if is_one {
            return vec![(0..leaves.len()).collect()];
        }
        (0..leaves.len()).map(|index| vec![index]).collect()
    }

    fn send_tree(&mut self, messages: &[(Ticket, Carried)], inwards: bool) {
        for (_, message) in messages {
            self.begin_step(message.source);
        }
        if !inwards {
            return self.fork(messages);
        }
        let Some(&(_, Carried { destination, bytes, .. })) = messages.first() else { return };
        let members = messages.iter().map(|(_, message)| message.source.0).collect();
        self.reductions.push(Reduction::new(destination.0, members, bytes));
        let combine = self.reductions.len() - 1;
        for &(ticket, message) in messages {
            self.contribute(combine, ticket, message);
        }
    }

    fn progress(&mut self, until: Time) -> Option<Progress> {
        loop {
            let arrival = self.endpoints.next().filter(|&(_, time)| time <= until);
            if arrival.is_some() && self.endpoints.due() <= Some(self.fabric.now()) {
                let (ticket, time) = self.endpoints.report()?;
                return Some(Progress::Arrived(ticket, time));
            }
            if !self.precedes(until) {
                return None;
            }
            let handed_over = self.hand_over(false);
            if !handed_over && self.fabric.is_empty() {
                if self.skip_before(until) {
                    continue;
                }
                return None;
            }
            self.step();
            if let Some(since) = self.fabric.stalled_since()
                && self.endpoints.due().is_none()
            {
                self.report_deadlock(since);
                return None;
            }
        }
    }

    /// Links of the fabric are counted by [`FabricCarrier::counts`].
    fn used_links(&self) -> Vec<LinkUse> {
        Vec::new()
    }
}
