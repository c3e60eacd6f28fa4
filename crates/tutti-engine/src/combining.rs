//! The combine that each contribution belongs to, on networks that combine.

use std::collections::{BTreeMap, VecDeque};

use super::Simulation;
use tutti_network::{Combined, MessageModel};
use tutti_schedule::Step;
use tutti_units::ids::RankId;

/// By (member, receiver), the outstanding combines of the member, the next first.
#[derive(Default)]
pub(super) struct Combining {
    left: BTreeMap<(RankId, RankId), VecDeque<usize>>,
}

impl Combining {
    /// Collects all combines of a schedule: the k-th contribution of a rank to a receiver belongs to
    /// the receiver's k-th combine of which the rank is a member.
    pub(super) fn of<M: MessageModel>(
        simulation: &Simulation<'_, M>,
    ) -> (Combining, Vec<Combined>) {
        let Simulation { schedule, layout, .. } = simulation;
        let (mut combining, mut all) = (Combining::default(), Vec::new());
        let mut content = Step::new();
        for destination in (0..schedule.shape().ranks).map(RankId) {
            for step in 0..schedule.steps(destination) {
                content.clear();
                schedule.step(destination, step, &mut content);
                for (run, _) in content.combines() {
                    let recvs = run.of(&content.recvs);
                    let members: Vec<RankId> = recvs.iter().map(|recv| recv.peer).collect();
                    for &member in &members {
                        let pair = (member, destination);
                        combining.left.entry(pair).or_default().push_back(all.len());
                    }
                    let bytes = layout.bytes(recvs[0].chunks);
                    all.push(Combined { destination, members, bytes });
                }
            }
        }
        (combining, all)
    }

    /// The next combine of a rank at a receiver; `None` if the receiver has no further one.
    pub(super) fn next(&mut self, member: RankId, receiver: RankId) -> Option<usize> {
        self.left.get_mut(&(member, receiver))?.pop_front()
    }
}
