//! Checks of multicasts and combines: the marks of all participating ranks must agree.

use std::collections::BTreeMap;

use super::VerifyError;
use crate::{At, ChunkRange, Mark, Schedule, Step};
use tutti_units::ids::RankId;

/// The number of multicasts and combines of a schedule.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct InNetwork {
    pub(super) multicasts: u64,
    pub(super) combines: u64,
}

impl InNetwork {
    fn count(&mut self, step: &Step) {
        for mark in step.marks() {
            match mark {
                Mark::Multicast(_) => self.multicasts += 1,
                Mark::Combine(..) => self.combines += 1,
                Mark::Contribution(_) => {}
            }
        }
    }
}

/// The marked messages of pairs of ranks: by (from, to), their index among all messages of the
/// pair, their step and their chunks.
type Ends = BTreeMap<(RankId, RankId), Vec<(u64, At, ChunkRange)>>;

/// Checks all marks of a schedule whose messages all match receives.
pub(super) fn check(schedule: &dyn Schedule) -> Result<InNetwork, VerifyError> {
    let mut found = InNetwork::default();
    let (mut contributed, mut combines) = (Ends::new(), Ends::new());
    let mut step = Step::new();
    let ranks = schedule.shape().ranks as usize;
    let (mut sent, mut received) = (vec![None; ranks], vec![None; ranks]);
    for rank in (0..schedule.shape().ranks).map(RankId) {
        for index in 0..schedule.steps(rank) {
            step.clear();
            schedule.step(rank, index, &mut step);
            let at = At { rank, step: index };
            let mut marked = step.contributions().peekable();
            for (place, send) in (0..).zip(&step.sends) {
                let number = next(&mut sent[send.peer.index()], rank);
                if marked.next_if_eq(&place).is_some() {
                    let pair = (rank, send.peer);
                    contributed.entry(pair).or_default().push((number, at, send.chunks));
                }
            }
            let mut combined = step.combines().flat_map(|(run, _)| run.start..run.end).peekable();
            for (place, recv) in (0..).zip(&step.recvs) {
                let number = next(&mut received[recv.peer.index()], rank);
                if combined.next_if_eq(&place).is_some() {
                    let pair = (recv.peer, rank);
                    combines.entry(pair).or_default().push((number, at, recv.chunks));
                }
            }
            apart(at, &step)?;
            found.count(&step);
        }
    }
    meet(&contributed, &combines)?;
    Ok(found)
}

/// Returns the index of the next message between `rank` and a peer. `last` is the rank that last
/// had messages with the peer, and their number so far.
fn next(last: &mut Option<(RankId, u64)>, rank: RankId) -> u64 {
    let number = last.filter(|(of, _)| *of == rank).map_or(0, |(_, number)| number);
    *last = Some((rank, number + 1));
    number
}

/// Refuses a rank that appears twice in one multicast or combine.
fn apart(at: At, step: &Step) -> Result<(), VerifyError> {
    for mark in step.marks() {
        let (op, messages) = match *mark {
            Mark::Multicast(run) => ("multicast", run.of(&step.sends)),
            Mark::Combine(run, _) => ("combine", run.of(&step.recvs)),
            Mark::Contribution(_) => continue,
        };
        let mut peers: Vec<RankId> = messages.iter().map(|message| message.peer).collect();
        peers.sort_unstable();
        if let Some(twice) = peers.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(VerifyError::NamedTwice { at, op, peer: twice[0] });
        }
    }
    Ok(())
}

/// Matches every contribution with a combine of the same chunks, and every combine with
/// contributions.
fn meet(contributed: &Ends, combines: &Ends) -> Result<(), VerifyError> {
    let nothing = Vec::new();
    let pairs = contributed.keys().chain(combines.keys());
    for pair in pairs {
        let [contributed, combines] =
            [contributed, combines].map(|ends| ends.get(pair).unwrap_or(&nothing));
        for index in 0..contributed.len().max(combines.len()) {
            match (contributed.get(index), combines.get(index)) {
                (Some(&(number, from, sent)), Some(&(other, to, expected))) if number == other => {
                    if sent != expected {
                        return Err(VerifyError::UnlikeCombine { from, to, sent, expected });
                    }
                }
                (Some(&(number, from, _)), other) if other.is_none_or(|other| other.0 > number) => {
                    return Err(VerifyError::NotCombined { from, to: pair.1 });
                }
                (_, Some(&(_, at, _))) => {
                    return Err(VerifyError::NotContributed { at, from: pair.0 });
                }
                (Some(&(_, from, _)), None) => {
                    return Err(VerifyError::NotCombined { from, to: pair.1 });
                }
                (None, None) => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{verify, verify_exactly};
    use crate::collective::Collective;
    use crate::text::read;
    use crate::{Builder, ChunkRange, Explicit, Slot, Step};
    use tutti_units::ids::RankId;

    const ALL: ChunkRange = ChunkRange::new(0, 2);
    const A: RankId = RankId(0);
    const B: RankId = RankId(1);
    const C: RankId = RankId(2);

    /// Ranks 1 and 2 contribute to rank 0, which multicasts the sum.
    fn root(alter: impl Fn(&mut Builder)) -> Builder {
        let mut builder = Explicit::builder(Collective::AllReduce, 3, 2);
        builder.combine(
            A,
            Slot::DATA,
            &[(Slot::DATA, None), (Slot(1), Some(B)), (Slot(2), Some(C))],
            ALL,
        );
        builder.multicast(A, &[B, C], Slot::DATA, ALL);
        builder.contribute(B, A, Slot::DATA, ALL).end_step(B).recv(B, A, Slot::DATA, ALL);
        alter(&mut builder);
        builder.end_step(C).recv(C, A, Slot::DATA, ALL);
        builder
    }

    fn fault(builder: &Builder) -> String {
        let schedule = builder.build().unwrap();
        let exact = verify_exactly(&schedule).unwrap_err();
        assert_eq!(verify(&schedule).unwrap_err(), exact);
        exact.to_string()
    }

    #[test]
    fn multicasts_and_combines_are_counted() {
        let right = root(|builder| _ = builder.contribute(C, A, Slot::DATA, ALL));
        let found = verify(&right.build().unwrap()).unwrap();
        assert_eq!((found.multicasts, found.combines), (1, 1));
        assert_eq!((found.messages, found.reductions), (4, 4));
        let exact = verify_exactly(&right.build().unwrap()).unwrap();
        assert_eq!((exact.multicasts, exact.combines), (1, 1));
    }

    #[test]
    fn combined_messages_must_be_contributed() {
        let alone = root(|builder| _ = builder.send(C, A, Slot::DATA, ALL));
        let expected = "rank 0, step 0: combine takes a message from rank 2 that is a plain send";
        assert!(fault(&alone).starts_with(expected), "{}", fault(&alone));
    }

    #[test]
    fn contributed_messages_must_be_combined() {
        let text = "tutti schedule 1\nname x\ncollective broadcast\nroot 1\nranks 2\nchunks 1\nslots 1\n\
            result data\nrank 0\nstep\nrecv data[0] from 1\nrank 1\nstep\ncontribute data[0] to 0\n";
        let error = verify(&read(text).unwrap()).unwrap_err().to_string();
        assert!(
            error.starts_with("rank 1, step 0 contributes to a combine at rank 0, but"),
            "{error}"
        );
    }

    #[test]
    fn members_contribute_the_same_chunks() {
        // Both halves are equal at rank 0 of a barrier without further folds.
        let mut builder = Explicit::builder(Collective::Barrier, 2, 2);
        builder.slots(2);
        let (first, second) = (ChunkRange::one(0), ChunkRange::one(1));
        builder.contribute(B, A, Slot::DATA, second);
        builder.combine(A, Slot::DATA, &[(Slot::DATA, None), (Slot(1), Some(B))], first);
        builder.end_step(A).multicast(A, &[B], Slot::DATA, first);
        builder.recv(B, A, Slot(1), first).reduce(B, Slot::DATA, &[Slot::DATA, Slot(1)], first);
        builder.copy(A, Slot::DATA, first, Slot::DATA, 1);
        builder.copy(B, Slot::DATA, first, Slot::DATA, 1);
        let error = fault(&builder);
        assert!(error.starts_with("rank 1, step 0 contributes chunks 1 to the combine at rank 0, step 0, which combines chunks 0"), "{error}");
    }

    #[test]
    fn no_rank_is_named_twice() {
        let mut builder = Explicit::builder(Collective::Broadcast { root: A }, 2, 1);
        let one = ChunkRange::one(0);
        builder.multicast(A, &[B, B], Slot::DATA, one);
        builder.recv(B, A, Slot::DATA, one).end_step(B).recv(B, A, Slot::DATA, one);
        let error = fault(&builder);
        assert_eq!(
            error,
            "rank 0, step 0: multicast names rank 1 twice: expected one message per rank"
        );
    }

    /// Unmarked messages before and after do not shift the matching of contributions and combines.
    #[test]
    fn contributions_are_counted_among_all_messages() {
        let mut builder = Explicit::builder(Collective::Barrier, 2, 1);
        let one = ChunkRange::one(0);
        builder.send(B, A, Slot::DATA, one).contribute(B, A, Slot::DATA, one);
        builder.recv(A, B, Slot(1), one).end_step(A);
        builder.combine(A, Slot::DATA, &[(Slot::DATA, None), (Slot(1), Some(B))], one);
        builder.multicast(A, &[B], Slot::DATA, one);
        builder.end_step(B).recv(B, A, Slot(1), one);
        builder.reduce(B, Slot::DATA, &[Slot::DATA, Slot(1)], one);
        assert_eq!(verify(&builder.build().unwrap()).unwrap().combines, 1);
        // In the opposite order the combine matches the send.
        let mut step = Step::new();
        step.contribute(A, Slot::DATA, one);
        step.send(A, Slot::DATA, one);
        let mut swapped = Explicit::builder(Collective::Barrier, 2, 1);
        swapped.step(B, "", step).recv(B, A, Slot(1), one);
        swapped.reduce(B, Slot::DATA, &[Slot::DATA, Slot(1)], one);
        swapped.recv(A, B, Slot(1), one).end_step(A);
        swapped.combine(A, Slot::DATA, &[(Slot::DATA, None), (Slot(1), Some(B))], one);
        swapped.multicast(A, &[B], Slot::DATA, one);
        assert!(fault(&swapped).contains("contributes to a combine at rank 0"));
    }
}
