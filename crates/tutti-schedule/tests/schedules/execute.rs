//! Reference execution of a schedule on data: every rank's buffers, messages and folds, without a
//! network.

use std::collections::{BTreeMap, VecDeque};

use tutti_schedule::{ChunkRange, Local, Schedule, Slot, Step};
use tutti_units::ids::RankId;

/// The written slots of a rank, and messages in flight by (source, destination).
type Slots<T> = BTreeMap<Slot, Vec<T>>;
type Queues<T> = BTreeMap<(RankId, RankId), VecDeque<Vec<T>>>;

/// Returns the final result slot of each rank, given one payload per rank that the chunks divide
/// evenly. A fold is `operator(operator(x1, x2), x3)` and so on, element by element.
#[expect(clippy::too_many_lines, reason = "the complete machine, in the order of a step")]
pub(crate) fn execute<T: Copy + Default>(
    schedule: &dyn Schedule,
    inputs: &[Vec<T>],
    operator: impl Fn(T, T) -> T,
) -> Vec<Vec<T>> {
    let shape = schedule.shape();
    let per_chunk = inputs[0].len() / shape.chunks as usize;
    let place = |run: ChunkRange| run.start as usize * per_chunk..run.end as usize * per_chunk;
    let empty = || vec![T::default(); inputs[0].len()];
    let mut slots: Vec<Slots<T>> =
        inputs.iter().map(|input| BTreeMap::from([(Slot::DATA, input.clone())])).collect();
    let mut queues = Queues::new();
    // By rank, the next step, and whether its messages were sent.
    let mut at = vec![(0, false); inputs.len()];
    let mut moved = true;
    while std::mem::take(&mut moved) {
        for rank in (0..shape.ranks).map(RankId) {
            let (next, sent) = &mut at[rank.index()];
            while *next < schedule.steps(rank) {
                let (mut step, held) = (Step::new(), &mut slots[rank.index()]);
                schedule.step(rank, *next, &mut step);
                for message in step.sends.iter().filter(|_| !*sent) {
                    let values = held.entry(message.slot).or_insert_with(empty)
                        [place(message.chunks)]
                    .to_vec();
                    queues.entry((rank, message.peer)).or_default().push_back(values);
                }
                moved |= !std::mem::replace(sent, true);
                let expected = |peer| step.recvs.iter().filter(|recv| recv.peer == peer).count();
                let there = |peer| queues.get(&(peer, rank)).map_or(0, VecDeque::len);
                if step.recvs.iter().any(|recv| there(recv.peer) < expected(recv.peer)) {
                    break;
                }
                for recv in &step.recvs {
                    let values = queues.get_mut(&(recv.peer, rank)).unwrap().pop_front().unwrap();
                    held.entry(recv.slot).or_insert_with(empty)[place(recv.chunks)]
                        .copy_from_slice(&values);
                }
                step.locals.iter().for_each(|local| {
                    let (into, to, values) = match *local {
                        Local::Reduce { into, operands, chunks } => {
                            let of = |slot: &Slot| {
                                held.get(slot).map_or_else(empty, Clone::clone)[place(chunks)]
                                    .to_vec()
                            };
                            let fold = |a: Vec<T>, b: Vec<T>| {
                                a.into_iter().zip(b).map(|(a, b)| operator(a, b)).collect()
                            };
                            (
                                into,
                                chunks.start,
                                step.operands(operands).iter().map(of).reduce(fold).unwrap(),
                            )
                        }
                        Local::Copy { from, into, chunks, to } => {
                            (into, to, held[&from][place(chunks)].to_vec())
                        }
                        Local::Compute { .. } | Local::Sleep { .. } => return,
                    };
                    let start = to as usize * per_chunk;
                    held.entry(into).or_insert_with(empty)[start..start + values.len()]
                        .copy_from_slice(&values);
                });
                (*next, *sent, moved) = (*next + 1, false, true);
            }
        }
    }
    assert!(queues.values().all(VecDeque::is_empty), "{}: messages are left", shape.name);
    slots.into_iter().map(|mut held| held.remove(&shape.result).unwrap_or_else(empty)).collect()
}
