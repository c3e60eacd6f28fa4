//! Matches the receives of a step with the letters in a mailbox: all or none.

use super::mailbox::{Letters, Mailbox};
use tutti_schedule::Message;
use tutti_units::Time;
use tutti_units::ids::RankId;

/// The most letters that are compared one by one; more are sorted first.
const FEW: usize = 16;

/// The current matching, and buffers reused by the next one.
#[derive(Default)]
pub(super) struct Matching {
    /// (arrival, position in the step's receives), in order of handling: by arrival, at ties in the
    /// order of the step, so that the order of simulation has no effect.
    pub(super) matched: Vec<(Time, u32)>,
    letters: Vec<(RankId, Time)>,
    taken: Vec<bool>,
}

impl Matching {
    /// Takes a letter for every receive and returns zero; or takes none and returns how many are
    /// missing.
    #[inline]
    pub(super) fn run(
        &mut self,
        recvs: &[Message],
        letters: &mut Letters,
        mailbox: &mut Mailbox,
    ) -> u32 {
        self.matched.clear();
        let expected = u32::try_from(recvs.len()).unwrap_or(u32::MAX);
        if mailbox.count() < expected {
            return expected - mailbox.count();
        }
        match recvs {
            [] => 0,
            [only] => match letters.take(mailbox, only.peer) {
                Some(arrival) => {
                    self.matched.push((arrival, 0));
                    0
                }
                None => 1,
            },
            several => self.run_several(several, letters, mailbox),
        }
    }

    /// Takes the letters from the picked senders; returns their arrival times, ascending.
    pub(super) fn pick(
        &mut self,
        letters: &mut Letters,
        mailbox: &mut Mailbox,
        mut is_picked: impl FnMut(RankId) -> bool,
    ) -> Vec<Time> {
        self.letters.clear();
        letters.take_all(mailbox, &mut self.letters);
        let mut arrivals = Vec::new();
        for &(source, arrival) in &self.letters {
            if is_picked(source) {
                arrivals.push(arrival);
            } else {
                letters.put(mailbox, source, arrival);
            }
        }
        arrivals.sort_unstable();
        arrivals
    }

    fn run_several(
        &mut self,
        recvs: &[Message],
        letters: &mut Letters,
        mailbox: &mut Mailbox,
    ) -> u32 {
        self.letters.clear();
        letters.take_all(mailbox, &mut self.letters);
        self.taken.clear();
        self.taken.resize(self.letters.len(), false);
        let missing =
            if self.letters.len() <= FEW { self.one_by_one(recvs) } else { self.sorted(recvs) };
        if missing > 0 || self.letters.len() > recvs.len() {
            for (index, &(source, arrival)) in self.letters.iter().enumerate() {
                if missing > 0 || !self.taken[index] {
                    letters.put(mailbox, source, arrival);
                }
            }
        }
        self.matched.sort_unstable();
        missing
    }

    /// Each receive takes the first letter left from its peer.
    fn one_by_one(&mut self, recvs: &[Message]) -> u32 {
        let mut missing = 0;
        for (position, recv) in (0..).zip(recvs) {
            let mut letters = self.letters.iter().zip(&mut self.taken);
            match letters.find(|((source, _), taken)| *source == recv.peer && !**taken) {
                Some((&(_, arrival), taken)) => {
                    *taken = true;
                    self.matched.push((arrival, position));
                }
                None => missing += 1,
            }
        }
        missing
    }

    /// As `one_by_one` for many letters: sorts both sides stably by peer, then merges them.
    fn sorted(&mut self, recvs: &[Message]) -> u32 {
        let mut positions: Vec<u32> = (0..).take(recvs.len()).collect();
        positions.sort_by_key(|&position| recvs[position as usize].peer);
        let mut order: Vec<usize> = (0..self.letters.len()).collect();
        order.sort_by_key(|&index| self.letters[index].0);
        let mut order = order.into_iter().peekable();
        let mut missing = 0;
        for position in positions {
            let peer = recvs[position as usize].peer;
            while order.next_if(|&index| self.letters[index].0 < peer).is_some() {}
            match order.next_if(|&index| self.letters[index].0 == peer) {
                Some(index) => {
                    self.taken[index] = true;
                    self.matched.push((self.letters[index].1, position));
                }
                None => missing += 1,
            }
        }
        missing
    }
}
