//! Recursive multiplying: recursive doubling with groups of any size.
//!
//! In each stage, ranks exchange partial results in groups of B instead of pairs. N ranks need as
//! many stages as N has factors, and the messages of a stage overlap. Rank counts without suitable
//! factors use collapse and expand (MPICH's pre- and post-processing, generalised) or merge and
//! inverse merge. The argument is a schedule in the [`notation`](crate::notation); without one,
//! [`choice`](super::choice) selects it. Source: Ruefenacht, Bull, Booth, "Generalisation of
//! recursive doubling for AllReduce: Now with simulation", Parallel Computing 69 (2017), algorithms
//! 2 to 6.
//!
//! **Peers.** Ranks that take part in the exchanges have a virtual rank w below their number P. In
//! a stage of base B after stages of product M, the group of w is all v that differ from w only in
//! digit (w / M) mod B; message i goes to digit + i mod B. Collapse `cTmB`: of every B consecutive
//! ranks below T the last takes part, as w = rank / B; a rank from T on takes part as w = rank - (T
//! / B)(B - 1). Merge `mRgGaB`: the R lowest ranks are the remainder, the others take part as w =
//! rank - R. Remainder rank q sends to all members of group q mod G of the first stage, and
//! receives from all members of group q mod G of the last.
//!
//! **Same bits on all ranks.** A group's partial results cover consecutive blocks of ranks, and
//! every member folds them in digit order, which is rank order. A remainder rank folds the same
//! values as the group that it receives from. All ranks therefore compute the same tree, whatever
//! the order of arrival.

use std::sync::Arc;

use super::choice::{Ratio, choose};
use super::divide::Divisor;
use super::{AlgorithmError, Entry, Request, Stage};
use crate::notation::{self, Notation};
use crate::{ChunkRange, Schedule, Shape, Slot, Step};
use tutti_units::ids::RankId;

pub(super) const ENTRY: Entry = Entry {
    name: "recursive_multiplying",
    summary: "exchanges in groups of any size; fewest stages when messages overlap",
    source: "Ruefenacht, Bull and Booth 2017",
    argument: "a schedule such as `a8,a4`, `c6m2,a2,a2,e6m2` or `m1g2a3,n1g3a2`, or `ratio=R`, \
               the best schedule for R = alpha_p / alpha_r (default `ratio=4`)",
    collectives: &["all_reduce", "barrier"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && resolve(request).is_ok(),
    build,
    critical_path: |request| resolve(request).ok().filter(is_exact).map(|n| stage_bound(&n)),
};

const PAYLOAD: ChunkRange = ChunkRange::one(0);

/// Returns the schedule of the request, or the default one.
fn resolve(request: &Request) -> Result<Notation, AlgorithmError> {
    let Some(argument) = request.argument else {
        return Ok(choose(request.ranks, Ratio::DEFAULT));
    };
    if let Some(ratio) = argument.strip_prefix("ratio=") {
        let at = argument.len() - ratio.len();
        let ratio = Ratio::parse(ratio).map_err(|p| request.refuse(ENTRY.name, at, p))?;
        return Ok(choose(request.ranks, ratio));
    }
    Notation::parse(argument)
        .and_then(|notation| notation.check(request.ranks).map(|()| notation))
        .map_err(|e| {
            let problem = format!("{}; {}", e.problem, e.problem.hint());
            AlgorithmError::Argument { name: ENTRY.name, argument: e.text, at: e.at, problem }
        })
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let notation = resolve(request)?;
    let name = format!("{}:{notation}", ENTRY.name);
    let shape = Shape::in_place(name, request.collective, request.ranks, 1, slots(&notation));
    Ok(Arc::new(RecursiveMultiplying::new(shape, &notation)))
}

/// Returns the stages of a schedule, each at its slowest: the terms of the paper's closed forms.
///
/// This is the exact critical path if every rank waits for every stage, and an upper bound
/// otherwise: with collapse or merge some ranks enter a stage late, and a stage may hide part of
/// their delay.
#[must_use]
pub fn stage_bound(notation: &Notation) -> Vec<Stage> {
    let stage =
        |messages, receives, reductions| Stage { messages, receives, chunks: 1, reductions, of: 1 };
    let cost = |of: &notation::Stage| match *of {
        notation::Stage::Factor { base } => stage(base - 1, base - 1, base - 1),
        notation::Stage::Collapse { base, .. } => stage(1, base - 1, base - 1),
        notation::Stage::Expand { base, .. } => stage(base - 1, 1, 0),
        notation::Stage::Merge { remainder, groups, base } => {
            let operands = base - 1 + remainder.div_ceil(groups);
            stage(base, operands, operands)
        }
        notation::Stage::InverseMerge { remainder, groups, base } => {
            stage(base - 1 + remainder.div_ceil(groups), base, base - 1)
        }
    };
    notation.stages().iter().map(cost).collect()
}

/// Returns whether every stage waits for the slowest rank of the previous stage, on any network.
///
/// A rank that enters an exchange late delays itself or, through its last message, the member whose
/// digit is one lower, or both, depending on the network. Collapse delays the ranks that also have
/// to expand: the T / B lowest virtual ranks. The delay always returns to one of them if they
/// extend beyond the P / B lowest ranks of the last exchange. They then include a rank and the rank
/// whose digits are all one higher, and every mixture of the two. Merge stages send and receive
/// unequal numbers of messages, which no stage of a closed form describes.
fn is_exact(notation: &Notation) -> bool {
    let stages = notation.stages();
    match stages[0] {
        notation::Stage::Factor { .. } => true,
        notation::Stage::Collapse { threshold, base } => {
            let last = stages[stages.len() - 2];
            let last = if last.is_exchange() { last.base() } else { 1 };
            let groups = threshold / base;
            groups > notation.inner() / last || groups == notation.inner()
        }
        _ => false,
    }
}

/// Returns the number of values that a rank holds at once.
fn slots(notation: &Notation) -> u32 {
    let held = |stage: &notation::Stage| match *stage {
        notation::Stage::Merge { remainder, groups, base } => base + remainder.div_ceil(groups),
        notation::Stage::Expand { .. } => 1,
        other => other.base(),
    };
    notation.stages().iter().map(held).max().unwrap_or(1)
}

/// The mapping from ranks to the virtual ranks of the exchanges.
#[derive(Clone, Copy)]
enum Frame {
    Plain,
    Collapsed {
        threshold: u32,
        base: Divisor,
        /// T / B.
        groups: u32,
    },
    Merged {
        remainder: u32,
        /// G of the first and of the last stage.
        groups: (Divisor, Divisor),
    },
}

/// The role of a rank in the schedule.
#[derive(Clone, Copy)]
enum Role {
    /// Takes part in the exchanges as this virtual rank, from the first step on.
    Active(u32),
    /// Takes part as this virtual rank, between collecting values and returning results.
    Collector(u32),
    /// Sends its value to this rank and receives the result from it.
    Collapsed(RankId),
    /// Joins the first and the last exchange.
    Remainder,
}

struct RecursiveMultiplying {
    shape: Shape,
    frame: Frame,
    exchanges: Vec<Exchange>,
    names: Vec<String>,
}

impl RecursiveMultiplying {
    fn new(shape: Shape, notation: &Notation) -> RecursiveMultiplying {
        let stages = notation.stages();
        let frame = match (stages[0], stages[stages.len() - 1]) {
            (notation::Stage::Collapse { threshold, base }, _) => {
                Frame::Collapsed { threshold, base: Divisor::new(base), groups: threshold / base }
            }
            (
                notation::Stage::Merge { remainder, groups, .. },
                notation::Stage::InverseMerge { groups: last, .. },
            ) => Frame::Merged { remainder, groups: (Divisor::new(groups), Divisor::new(last)) },
            _ => Frame::Plain,
        };
        let mut mask = 1;
        let mut exchanges = Vec::new();
        for stage in stages.iter().filter(|stage| stage.is_exchange()) {
            exchanges.push(Exchange { base: Divisor::new(stage.base()), mask: Divisor::new(mask) });
            mask *= stage.base();
        }
        let names = stages.iter().map(ToString::to_string).collect();
        RecursiveMultiplying { shape, frame, exchanges, names }
    }

    #[inline]
    fn role(&self, rank: u32) -> Role {
        match self.frame {
            Frame::Plain => Role::Active(rank),
            Frame::Collapsed { threshold, groups, .. } if rank >= threshold => {
                Role::Active(rank - (threshold - groups))
            }
            Frame::Collapsed { base, .. } => {
                let (group, member) = base.divide(rank);
                let last = base.value() - 1;
                if member == last {
                    Role::Collector(group)
                } else {
                    Role::Collapsed(RankId(rank - member + last))
                }
            }
            Frame::Merged { remainder, .. } if rank < remainder => Role::Remainder,
            Frame::Merged { remainder, .. } => Role::Active(rank - remainder),
        }
    }

    /// Returns the rank of a virtual rank.
    #[inline]
    fn rank(&self, w: u32) -> RankId {
        RankId(match self.frame {
            Frame::Plain => w,
            Frame::Collapsed { base, groups, .. } if w < groups => (w + 1) * base.value() - 1,
            Frame::Collapsed { threshold, groups, .. } => w + (threshold - groups),
            Frame::Merged { remainder, .. } => w + remainder,
        })
    }

    fn exchange_count(&self) -> u32 {
        u32::try_from(self.exchanges.len()).expect("a schedule has at most 32 exchanges")
    }

    /// Adds exchange `index` of virtual rank `w`, including messages with the remainder ranks.
    #[inline]
    fn exchange(&self, w: u32, index: u32, out: &mut Step) {
        let exchange = self.exchanges[index as usize];
        let group = exchange.group(w);
        exchange.messages(group, |w| self.rank(w), out);
        let Frame::Merged { remainder, groups: (first, last) } = self.frame else {
            return group.fold(0, out);
        };
        let mut merged = 0;
        if index == 0 {
            for rank in (exchange.base.divide(w).0..remainder).step_by(first.value() as usize) {
                out.recv(RankId(rank), Slot(group.base + merged), PAYLOAD);
                merged += 1;
            }
        } else if index + 1 == self.exchange_count() {
            for rank in (group.first..remainder).step_by(last.value() as usize) {
                out.send(RankId(rank), Slot::DATA, PAYLOAD);
            }
        }
        group.fold(merged, out);
    }

    /// A collector and the ranks below it in its group: gathers their values, or returns the
    /// result.
    fn collect(&self, rank: u32, out: &mut Step) {
        let last = self.collapse_base() - 1;
        for member in 0..last {
            out.recv(RankId(rank - last + member), Slot(member + 1), PAYLOAD);
        }
        out.reduce(Slot::DATA, (1..=last).map(Slot).chain([Slot::DATA]), PAYLOAD);
    }

    fn return_result(&self, rank: u32, out: &mut Step) {
        for member in rank - (self.collapse_base() - 1)..rank {
            out.send(RankId(member), Slot::DATA, PAYLOAD);
        }
    }

    fn collapse_base(&self) -> u32 {
        match self.frame {
            Frame::Collapsed { base, .. } => base.value(),
            _ => 1,
        }
    }

    /// A remainder rank: sends to a group of the first exchange, receives from one of the last.
    fn join(&self, rank: u32, step: u32, out: &mut Step) {
        let Frame::Merged { groups: (first, last), .. } = self.frame else { return };
        if step == 0 {
            let base = self.exchanges[0].base.value();
            let start = first.divide(rank).1 * base;
            for w in start..start + base {
                out.send(self.rank(w), Slot::DATA, PAYLOAD);
            }
        } else {
            let base = self.exchanges[self.exchanges.len() - 1].base.value();
            let start = last.divide(rank).1;
            for digit in 0..base {
                out.recv(self.rank(start + digit * last.value()), Slot(digit), PAYLOAD);
            }
            out.reduce(Slot::DATA, (0..base).map(Slot), PAYLOAD);
        }
    }
}

impl Schedule for RecursiveMultiplying {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn steps(&self, rank: RankId) -> u32 {
        match self.role(rank.0) {
            Role::Active(_) => self.exchange_count(),
            Role::Collector(_) => self.exchange_count() + 2,
            Role::Collapsed(_) | Role::Remainder => 2,
        }
    }

    #[inline]
    fn step(&self, rank: RankId, step: u32, out: &mut Step) {
        match self.role(rank.0) {
            Role::Active(w) => self.exchange(w, step, out),
            Role::Collector(_) if step == 0 => self.collect(rank.0, out),
            Role::Collector(w) if step <= self.exchange_count() => self.exchange(w, step - 1, out),
            Role::Collector(_) => self.return_result(rank.0, out),
            Role::Collapsed(collector) if step == 0 => out.send(collector, Slot::DATA, PAYLOAD),
            Role::Collapsed(collector) => out.recv(collector, Slot::DATA, PAYLOAD),
            Role::Remainder => self.join(rank.0, step, out),
        }
    }

    /// Returns the stage in the notation.
    fn step_name(&self, rank: RankId, step: u32) -> String {
        let last = self.names.len() - 1;
        let index = match self.role(rank.0) {
            Role::Active(_) if matches!(self.frame, Frame::Collapsed { .. }) => step as usize + 1,
            Role::Active(_) | Role::Collector(_) => step as usize,
            Role::Collapsed(_) | Role::Remainder => step as usize * last,
        };
        self.names[index.min(last)].clone()
    }
}

/// A factor stage: its base, and the product of the bases before it.
#[derive(Clone, Copy)]
struct Exchange {
    base: Divisor,
    mask: Divisor,
}

/// The group that a virtual rank exchanges with.
#[derive(Clone, Copy)]
struct Group {
    /// The member with digit zero.
    first: u32,
    /// This rank's digit.
    digit: u32,
    base: u32,
}

impl Exchange {
    #[inline]
    fn group(self, w: u32) -> Group {
        let digit = self.base.divide(self.mask.divide(w).0).1;
        Group { first: w - digit * self.mask.value(), digit, base: self.base.value() }
    }

    /// Sends to higher members, wrapping around, and receives from lower ones: the order of
    /// arrival.
    #[inline]
    fn messages(self, group: Group, rank: impl Fn(u32) -> RankId, out: &mut Step) {
        let Group { first, digit, base } = group;
        let mask = self.mask.value();
        let member = |digit: u32| rank(first + digit * mask);
        if base == 2 {
            // The most frequent base, at half the cost of the general case.
            let peer = member(1 - digit);
            out.send(peer, Slot::DATA, PAYLOAD);
            return out.recv(peer, Slot(1), PAYLOAD);
        }
        (digit + 1..base)
            .chain(0..digit)
            .for_each(|peer| out.send(member(peer), Slot::DATA, PAYLOAD));
        (0..digit)
            .rev()
            .chain((digit + 1..base).rev())
            .for_each(|peer| out.recv(member(peer), group.slot(peer), PAYLOAD));
    }
}

impl Group {
    /// Returns the slot for a member's value: in place for this rank, then one slot per peer.
    #[inline]
    fn slot(self, member: u32) -> Slot {
        Slot(if member < self.digit {
            member + 1
        } else if member == self.digit {
            0
        } else {
            member
        })
    }

    /// Folds the values of `merged` remainder ranks, which are the lowest, then those of the
    /// members.
    #[inline]
    fn fold(self, merged: u32, out: &mut Step) {
        if self.base == 2 && merged == 0 {
            return out.reduce(Slot::DATA, [Slot(self.digit), Slot(1 - self.digit)], PAYLOAD);
        }
        let members = (1..=self.digit).chain([0]).chain(self.digit + 1..self.base).map(Slot);
        if merged == 0 {
            return out.reduce(Slot::DATA, members, PAYLOAD);
        }
        let remainder = (0..merged).map(|index| Slot(self.base + index));
        out.reduce(Slot::DATA, remainder.chain(members), PAYLOAD);
    }
}

#[cfg(test)]
mod tests;
