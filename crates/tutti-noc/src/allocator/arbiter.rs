//! Arbiters: each grants one of its contenders, and remembers the grant.
//!
//! Each arbiter is an order of its contenders that changes when one is served, so the cost of an
//! arbitration grows with the number of requests, not with the number of contenders.

use std::cmp::Reverse;

use super::{AllocatorError, ArbiterKind};

/// A bank of arbiters of one kind, each with the same number of contenders.
#[derive(Clone, Debug)]
pub struct Arbiters {
    contenders: u32,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    /// The pointer of each arbiter.
    RoundRobin(Vec<u32>),
    /// When each contender of each arbiter was last served. This order equals a priority matrix in
    /// which the winner yields to all others; it starts with the highest number.
    Matrix { served: Vec<u64>, now: u64 },
    /// Groups of equal size.
    Tree { group: u32, among: Box<Arbiters>, within: Box<Arbiters> },
}

/// The position of a contender in the order of an arbiter, low first: that of the group, then
/// within it. Positions are unique within an arbiter.
pub(super) type Turn = (u64, u64);

/// The order of contenders in arbiters: by priority, at ties by round-robin position.
pub(super) type Claim = (i64, Reverse<Turn>);

impl Arbiters {
    /// So many arbiters, each with so many contenders.
    ///
    /// # Errors
    /// When groups do not divide the contenders.
    pub fn new(kind: ArbiterKind, arbiters: u32, contenders: u32) -> Result<Self, AllocatorError> {
        let tree = |groups: u32, part: ArbiterKind| {
            if groups == 0 || !contenders.is_multiple_of(groups) {
                return Err(AllocatorError::Groups { arbiter: kind, contenders });
            }
            let group = contenders / groups;
            let among = Box::new(Arbiters::new(part, arbiters, groups)?);
            let within = Box::new(Arbiters::new(part, arbiters * groups, group)?);
            Ok(State::Tree { group, among, within })
        };
        let state = match kind {
            ArbiterKind::RoundRobin => State::RoundRobin(vec![0; arbiters as usize]),
            ArbiterKind::Matrix => {
                let one = (0..u64::from(contenders)).rev();
                let served = (0..arbiters).flat_map(|_| one.clone()).collect();
                State::Matrix { served, now: u64::from(contenders) }
            }
            ArbiterKind::TreeRoundRobin { groups } => tree(groups, ArbiterKind::RoundRobin)?,
            ArbiterKind::TreeMatrix { groups } => tree(groups, ArbiterKind::Matrix)?,
        };
        Ok(Arbiters { contenders, state })
    }

    /// The contender that an arbiter chooses, from contenders with their priorities; it is not
    /// served yet.
    pub fn choose(
        &self,
        arbiter: u32,
        contend: impl IntoIterator<Item = (u32, i64)>,
    ) -> Option<u32> {
        let claim = |&(contender, priority): &(u32, i64)| self.claim(arbiter, contender, priority);
        contend.into_iter().max_by_key(claim).map(|(contender, _)| contender)
    }

    /// Serves a contender: the arbiter advances.
    pub fn serve(&mut self, arbiter: u32, contender: u32) {
        match &mut self.state {
            State::RoundRobin(next) => {
                let after = contender + 1;
                next[arbiter as usize] = if after == self.contenders { 0 } else { after };
            }
            State::Matrix { served, now } => {
                served[place(arbiter, contender, self.contenders)] = *now;
                *now += 1;
            }
            State::Tree { group, among, within } => {
                let (part, member) = (contender / *group, contender % *group);
                within.serve(arbiter * among.contenders + part, member);
                among.serve(arbiter, part);
            }
        }
    }

    #[inline]
    pub(super) fn claim(&self, arbiter: u32, contender: u32, priority: i64) -> Claim {
        (priority, Reverse(self.turn(arbiter, contender)))
    }

    #[inline]
    fn turn(&self, arbiter: u32, contender: u32) -> Turn {
        match &self.state {
            State::RoundRobin(next) => {
                (0, cyclic(next[arbiter as usize], contender, self.contenders))
            }
            State::Matrix { served, .. } => (0, served[place(arbiter, contender, self.contenders)]),
            State::Tree { group, among, within } => {
                let (part, member) = (contender / group, contender % group);
                let (_, first) = among.turn(arbiter, part);
                let (_, second) = within.turn(arbiter * among.contenders + part, member);
                (first, second)
            }
        }
    }
}

/// The index of a contender of an arbiter in a bank.
fn place(arbiter: u32, contender: u32, contenders: u32) -> usize {
    arbiter as usize * contenders as usize + contender as usize
}

/// Steps on a ring of `size` from `from` to `to`; both are below `size`.
#[inline]
pub(super) fn cyclic(from: u32, to: u32, size: u32) -> u64 {
    u64::from(if to >= from { to - from } else { to + size - from })
}
