//! Data flows derived by hand.

use super::*;
use tutti_schedule::Schedule;
use tutti_schedule::algorithm::build;
use tutti_schedule::collective::Collective;

fn flow(notation: &str, collective: Collective, ranks: u32) -> Dataflow {
    Dataflow::of(&*build(notation, collective, ranks).unwrap()).unwrap()
}

/// How each receive of a rank is handled: all its chunks alike.
fn handlings(flow: &Dataflow, rank: u32) -> Vec<Handling> {
    let of = |recv: &Incoming| {
        let (fused, chunks) = recv.fused;
        assert!(chunks == 0 || chunks == flow.chunks_of(recv.length));
        if chunks > 0 { fused } else { recv.kept }
    };
    flow.messages(rank).recvs.iter().map(of).collect()
}

/// Three reduce-and-sends, of which the last keeps its result; then stored and sent, last stored.
#[test]
fn a_ring_forwards_every_message_but_the_last() {
    use Handling::{Keep, KeepAndSend, ReduceAndKeep, ReduceAndSend, ReduceKeepAndSend};
    for notation in ["ring", "ring:backward"] {
        let ring = flow(notation, Collective::AllReduce, 4);
        let expected =
            [ReduceAndSend, ReduceAndSend, ReduceKeepAndSend, KeepAndSend, KeepAndSend, Keep];
        assert_eq!(handlings(&ring, 0), expected);
        let list = ring.messages(0);
        assert_eq!(list.sends[0].handling, Handling::SendOwn);
        assert!(!list.sends[0].forwarded && list.sends[1..].iter().all(|send| send.forwarded));
        assert!(!list.awaits_messages);
        assert_eq!(ring.entry(0, Bytes(100)), Bytes(100));
        assert_eq!(ring.lengths(Bytes(101)), [Bytes(26)]);
        let scatter = flow(notation, Collective::ReduceScatter, 4);
        assert_eq!(handlings(&scatter, 0), [ReduceAndSend, ReduceAndSend, ReduceAndKeep]);
        assert_eq!(scatter.result(Bytes(100)), Bytes(25));
        let gather = flow(notation, Collective::AllGather, 4);
        assert_eq!(handlings(&gather, 0), [KeepAndSend, KeepAndSend, Keep]);
        assert_eq!(gather.entry(0, Bytes(100)), Bytes(25));
    }
}

/// A reduce-scatter inside, all-reduces of the shard across, an all-gather inside.
#[test]
fn phases_of_a_torus_with_a_local_dimension() {
    let flow = flow("hierarchical_local:4x2x2", Collective::AllReduce, 16);
    let entries: Vec<_> = (0..4).map(|phase| flow.entry(phase, Bytes(1600)).0).collect();
    assert_eq!(entries, [1600, 400, 400, 400]);
    let reduces: Vec<bool> = flow.phases.iter().map(|phase| phase.reduces).collect();
    assert_eq!(reduces, [true, true, true, false]);
    let list = flow.messages(0);
    assert_eq!(list.recvs_of(3), 7..10);
    let first_of = |phase| list.sends[list.sends_of(phase).start as usize].handling;
    let (own, reduced) = (Handling::SendOwn, Handling::SendReduced);
    assert_eq!([0, 1, 2, 3].map(first_of), [own, own, own, reduced]);
    let last = |phase| {
        let recv = list.recvs[list.recvs_of(phase).end as usize - 1];
        if recv.fused.1 > 0 { recv.fused.0 } else { recv.kept }
    };
    let (reduce, keep) = (Handling::ReduceAndKeep, Handling::Keep);
    assert_eq!([0, 1, 2, 3].map(last), [reduce, keep, keep, keep]);
}

/// The order of shards of a separate reduce_scatter or all_gather costs nothing.
#[test]
fn copies_have_no_phase() {
    for collective in [Collective::ReduceScatter, Collective::AllGather] {
        let flow = flow("hierarchical:4x2", collective, 8);
        assert_eq!(flow.phases.len(), 2);
        assert_eq!(flow.messages(0).sends.len(), 4);
    }
}

/// Half of what is received in a step is sent in the next: the other half is stored.
#[test]
fn halving_doubling_fuses_half_of_each_message() {
    let flow = flow("recursive_halving_doubling", Collective::AllReduce, 8);
    let list = flow.messages(5);
    let fused: Vec<_> = list.recvs.iter().map(|recv| recv.fused).collect();
    let (reduce, both) = (Handling::ReduceAndSend, Handling::ReduceKeepAndSend);
    assert_eq!(fused[..3], [(reduce, 2), (reduce, 1), (both, 1)]);
    assert_eq!(list.sends.iter().map(|send| send.awaits).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert!(list.awaits_messages);
}

/// The root sends to one child what it has reduced, and reads it again for the other.
#[test]
fn a_tree_sends_one_copy_per_child() {
    let flow = flow("binomial", Collective::Broadcast { root: RankId(0) }, 8);
    let list = flow.messages(4);
    assert_eq!(list.recvs[0].fused, (Handling::KeepAndSend, 1));
    assert!(list.sends[0].forwarded && !list.sends[1].forwarded);
    let follower = Follower { send: 1, by_packet: true };
    assert_eq!(list.followers(&list.recvs[0]), [follower]);
}

/// The shard that a rank has reduced is sent by the same kernel once, and then read for each peer.
#[test]
fn only_the_first_send_of_a_reduced_shard_is_free() {
    let flow = flow("direct:two_step", Collective::AllReduce, 4);
    let sends: Vec<Handling> = flow.messages(0).sends.iter().map(|send| send.handling).collect();
    let (own, reduced) = (Handling::SendOwn, Handling::SendReduced);
    assert_eq!(sends, [own, own, own, reduced, own, own]);
}

/// Parts for other ranks pass through.
#[test]
fn a_ring_all_to_all_passes_parts_on() {
    let flow = flow("ring", Collective::AllToAll, 4);
    let first = flow.messages(0).recvs[0];
    assert_eq!((first.fused, first.kept), ((Handling::PassOn, 2), Handling::Keep));
}

/// Every message awaits the previous one: a forwarded part its data, a new part the order.
#[test]
fn ordered_steps_await_each_other() {
    let flow = flow("ring:blockwise", Collective::AllToAll, 4);
    let list = flow.messages(0);
    let awaits: Vec<_> = list.sends.iter().map(|send| (send.awaits, send.forwarded)).collect();
    let (new, onward) = ((1, false), (1, true));
    assert_eq!(awaits, [(0, false), new, onward, new, onward, onward]);
    let next = |recv: &Incoming| recv.forward.or(list.followers(recv).first().map(|it| it.send));
    let order: Vec<_> = list.recvs.iter().map(next).collect();
    assert_eq!(order, [Some(1), Some(2), Some(3), Some(4), Some(5), None]);
    assert_eq!(list.followers(&list.recvs[0]), [Follower { send: 1, by_packet: false }]);
    assert_eq!(handlings(&flow, 0)[..2], [Handling::Keep, Handling::PassOn]);
}

/// Ordered exchanges along several dimensions are phases; the others are one.
#[test]
fn an_ordered_exchange_has_a_phase_per_dimension() {
    let flow_of = |notation| flow(notation, Collective::AllToAll, 12);
    let ordered = flow_of("hierarchical:4x3:ring:blockwise");
    let counts = |of: &Dataflow| -> Vec<_> {
        (0..of.phases.len()).map(|phase| of.messages(0).sends_of(phase).len()).collect()
    };
    assert_eq!(counts(&ordered), [6, 3]);
    assert_eq!(counts(&flow_of("hierarchical:4x3:ring")), [5]);
    assert_eq!(ordered.messages(0).sends[6].awaits, 0);
}

#[test]
fn every_message_is_matched() {
    for (notation, ranks) in
        [("swing", 16), ("multi_tree:torus:4x4", 16), ("double_binary_tree", 13), ("ring", 5)]
    {
        let flow = flow(notation, Collective::AllReduce, ranks);
        for rank in 0..ranks {
            for (index, send) in (0..).zip(&flow.messages(rank).sends) {
                let to = flow.peer(rank, send.peer);
                let recv = flow.messages(to).recvs[send.arrives_as as usize];
                assert_eq!((flow.peer(to, recv.peer), recv.sent_as), (rank, index), "{notation}");
                assert_eq!(recv.length, send.length);
            }
        }
    }
}

/// Only the first of two equal schedules states a symmetry.
#[test]
fn a_canonical_text_has_the_messages_only() {
    let text = |schedule: &dyn Schedule| Dataflow::of(schedule).unwrap().canonical();
    let [ring, backward] = ["ring", "ring:backward"]
        .map(|notation| build(notation, Collective::AllReduce, 4).unwrap());
    let read = tutti_schedule::text::read(&tutti_schedule::text::to_string(&*ring)).unwrap();
    assert!(ring.symmetry().is_some() && read.symmetry().is_none());
    assert_eq!(text(&*ring), text(&read));
    assert_ne!(text(&*ring), text(&*backward));
}
