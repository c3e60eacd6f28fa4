//! Bruck's algorithms: all_gather and all_to_all in ceil(log_(K+1) N) rounds, for any number of
//! ranks.
//!
//! In every round a rank sends to K ranks and receives from K ranks. A round therefore multiplies
//! the blocks it holds by K + 1, or processes one base-(K + 1) digit of the distance of each block.
//! Blocks are indexed relative to the rank, so that all ranks send the same positions of their
//! buffers, and copied to rank order; a message is always one contiguous range. See [`all_gather`]
//! and [`all_to_all`]. Source: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for
//! all-to-all communications in multiport message-passing systems", IEEE TPDS 8 (1997).
//!
//! Both copy blocks to other positions, so all blocks must be equal
//! ([`Layout::of_schedule`](crate::Layout::of_schedule) refuses other sizes), and leave the result
//! in a separate slot.

mod all_gather;
mod all_to_all;

use std::sync::Arc;

use super::{AlgorithmError, Entry, Request, Stage};
use crate::Schedule;
use crate::collective::Collective;
use all_gather::AllGather;
use all_to_all::AllToAll;

pub(super) const ENTRY: Entry = Entry {
    name: "bruck",
    summary: "blocks indexed relative to each rank; fewest rounds of K messages for any rank count",
    source: "Bruck et al. 1997",
    argument: "K, the number of ports: messages that a rank sends per round; default 1",
    collectives: &["all_gather", "all_to_all"],
    ranks: "any",
    claims: |request| request.ranks >= 2 && ports(request).is_ok(),
    build,
    critical_path,
};

/// Returns K; values above the number of peers have no further effect.
fn ports(request: &Request) -> Result<u32, AlgorithmError> {
    let not_a_number = "expected the number of ports, an integer of at least 1, such as `bruck:2`";
    let below = "expected at least 1 port";
    Ok(request.number(ENTRY.name, 1, 1, [below, not_a_number])?.min(request.ranks - 1))
}

fn build(request: &Request) -> Result<Arc<dyn Schedule>, AlgorithmError> {
    let ports = ports(request)?;
    let name = request.notation(ENTRY.name);
    Ok(match request.collective {
        Collective::AllToAll => Arc::new(AllToAll::new(name, request.ranks, ports)),
        _ => Arc::new(AllGather::new(name, request.ranks, ports)),
    })
}

/// All ranks act alike at the same time. There is a closed form if the messages of each round are
/// equal, as they are with one port.
fn critical_path(request: &Request) -> Option<Vec<Stage>> {
    let (ranks, ports) = (request.ranks, ports(request).ok()?);
    let rounds = match request.collective {
        Collective::AllToAll => all_to_all::message_lengths(ranks, ports),
        _ => all_gather::message_lengths(ranks, ports),
    };
    let stage = |lengths: Vec<u32>| {
        let messages = u32::try_from(lengths.len()).ok()?;
        let chunks = *lengths.first()?;
        let equal = lengths.iter().all(|&length| length == chunks);
        equal.then_some(Stage { messages, receives: messages, chunks, reductions: 0, of: ranks })
    };
    rounds.into_iter().map(stage).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::check;
    use crate::{Layout, LayoutError};
    use tutti_units::Bytes;

    const BOTH: [Collective; 2] = [Collective::AllGather, Collective::AllToAll];

    #[test]
    fn it_does_what_it_claims_at_every_rank_count_and_with_every_number_of_ports() {
        for ranks in 2..=128 {
            check::claims(&ENTRY, "bruck", ranks);
            check::claims(&ENTRY, "bruck:3", ranks);
        }
        for ranks in 2..=40 {
            for ports in [2, 4, 5, 7, 30, u32::MAX] {
                check::claims(&ENTRY, &format!("bruck:{ports}"), ranks);
            }
        }
    }

    #[test]
    fn one_port_has_a_closed_form_at_every_rank_count() {
        for (ranks, collective) in (2..=80).flat_map(|ranks| BOTH.map(|kind| (ranks, kind))) {
            assert!(check::critical_path_is_exact("bruck", collective, ranks));
        }
    }

    #[test]
    fn more_ports_have_one_where_the_messages_of_each_round_are_equal() {
        let exact = |notation: &str, [gather, to_all]: [Collective; 2], ranks| {
            let [gather, to_all] = [gather, to_all]
                .map(|collective| check::critical_path_is_exact(notation, collective, ranks));
            (gather, to_all)
        };
        // 9 = 3^2: all messages are equal. 7 = 3 + 2 + 2, but of 0 ... 6 two have the first digit 2
        // and two the second digit 1, and only one has the second digit 2. 8 = 3 + 3 + 2.
        assert_eq!(exact("bruck:2", BOTH, 9), (true, true));
        assert_eq!(exact("bruck:2", BOTH, 7), (true, false));
        assert_eq!(exact("bruck:2", BOTH, 8), (false, false));
        assert_eq!(exact("bruck:3", BOTH, 64), (true, true));
        assert_eq!(exact("bruck:5", BOTH, 6), (true, true));
    }

    /// The smallest s with (K + 1)^s >= N.
    #[test]
    fn rounds_are_as_few_as_can_be() {
        for (ranks, ports) in (2..=300).flat_map(|ranks| [1, 2, 3, 7, 400].map(|k| (ranks, k))) {
            let ports = u32::min(ports, ranks - 1);
            let mut least = 0;
            while u64::from(ports + 1).pow(least) < u64::from(ranks) {
                least += 1;
            }
            assert_eq!(all_gather::message_lengths(ranks, ports).len(), least as usize);
            assert_eq!(all_to_all::message_lengths(ranks, ports).len(), least as usize);
        }
    }

    /// No block is received twice in an all_gather, and its last round divides the missing blocks
    /// evenly.
    #[test]
    fn an_all_gather_sends_the_least_bytes() {
        for (ranks, ports) in (2..=300).flat_map(|ranks| [1, 2, 3, 7].map(|k| (ranks, k))) {
            let rounds = all_gather::message_lengths(ranks, u32::min(ports, ranks - 1));
            assert_eq!(rounds.iter().flatten().sum::<u32>(), ranks - 1);
        }
        assert_eq!(all_gather::message_lengths(10, 3), [vec![1, 1, 1], vec![2, 2, 2]]);
    }

    #[test]
    fn parts_that_differ_are_refused() {
        for collective in BOTH {
            let schedule = crate::algorithm::build("bruck", collective, 5).unwrap();
            assert!(Layout::of(schedule.shape(), Bytes(160), 8).is_ok());
            let error = Layout::of(schedule.shape(), Bytes(168), 8).unwrap_err();
            assert!(matches!(error, LayoutError::UnequalParts { ranks: 5, .. }));
        }
    }

    #[test]
    fn invalid_numbers_of_ports_are_refused() {
        for (argument, at) in [("0", 0), (" x", 1), ("", 0), ("-2", 0)] {
            let notation = format!("bruck:{argument}");
            let error = crate::algorithm::build(&notation, Collective::AllGather, 8).err().unwrap();
            assert!(matches!(error, AlgorithmError::Argument { at: found, .. } if found == at));
        }
    }
}
