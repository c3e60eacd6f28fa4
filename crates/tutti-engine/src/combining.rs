//! The combine that each contribution belongs to, on networks that combine.

use std::collections::{BTreeMap, VecDeque};

use super::Simulation;
use tutti_network::{Carrier, Combined, MessageModel};
use tutti_schedule::Step;
use tutti_units::ids::RankId;

/// By (member, receiver), the outstanding combines of the member, the next first.
#[derive(Default)]
pub(super) struct Combining {
    left: BTreeMap<(RankId, RankId), VecDeque<usize>>,
    /// By receiver, step and combine of the step: the parts of combines that have several.
    divided: BTreeMap<(RankId, u32, usize), Vec<Vec<usize>>>,
}

impl Combining {
    /// Collects all combines of a schedule: the k-th contribution of a rank to a receiver belongs to
    /// the receiver's k-th combine of which the rank is a member.
    pub(super) fn of<M: MessageModel>(
        simulation: &Simulation<'_, M>,
        carrier: &impl Carrier,
    ) -> (Combining, Vec<Combined>) {
        let Simulation { schedule, layout, .. } = simulation;
        let (mut combining, mut all) = (Combining::default(), Vec::new());
        let mut content = Step::new();
        for destination in (0..schedule.shape().ranks).map(RankId) {
            for step in 0..schedule.steps(destination) {
                content.clear();
                schedule.step(destination, step, &mut content);
                for (nth, (run, _)) in content.combines().enumerate() {
                    let recvs = run.of(&content.recvs);
                    let members: Vec<RankId> = recvs.iter().map(|recv| recv.peer).collect();
                    let bytes = layout.bytes(recvs[0].chunks);
                    let parts = carrier.parts(destination, &members, true);
                    for part in &parts {
                        let members: Vec<RankId> = part.iter().map(|&at| members[at]).collect();
                        for &member in &members {
                            let left = combining.left.entry((member, destination));
                            left.or_default().push_back(all.len());
                        }
                        all.push(Combined { destination, members, bytes });
                    }
                    if parts.len() > 1 {
                        combining.divided.insert((destination, step, nth), parts);
                    }
                }
            }
        }
        (combining, all)
    }

    /// The next combine of a rank at a receiver; `None` if the receiver has no further one.
    pub(super) fn next(&mut self, member: RankId, receiver: RankId) -> Option<usize> {
        self.left.get_mut(&(member, receiver))?.pop_front()
    }

    /// The parts of a combine of a step, if it has several.
    pub(super) fn parts(&self, receiver: RankId, step: u32, nth: usize) -> Option<&[Vec<usize>]> {
        self.divided.get(&(receiver, step, nth)).map(Vec::as_slice)
    }
}
