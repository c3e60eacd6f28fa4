//! Replay of sends: the messages of a step follow from the schedule, the model and the time at
//! which the rank was ready, so a network need not store them before it injects them.

use std::ops::ControlFlow;

use super::Simulation;
use super::transit::Transit;
use tutti_network::{Carried, Cursor, MessageModel, Supply, Ticket};
use tutti_schedule::Step;
use tutti_units::ids::RankId;
use tutti_units::{Bytes, Time};

/// The messages in flight, and the source of those not injected yet.
pub(super) struct Dispatch<'a, M: MessageModel> {
    simulation: &'a Simulation<'a, M>,
    pub(super) transit: Transit,
    step: Step,
}

impl<'a, M: MessageModel> Dispatch<'a, M> {
    pub(super) fn new(simulation: &'a Simulation<'a, M>) -> Self {
        Dispatch { simulation, transit: Transit::new(), step: Step::new() }
    }
}

impl<M: MessageModel> Supply for Dispatch<'_, M> {
    /// The send time is unused: observed runs offer no messages.
    fn set_off(&mut self, source: RankId, destination: RankId, bytes: Bytes) -> Ticket {
        self.transit.send((source, destination), bytes, Time::ZERO)
    }

    fn replay(&mut self, from: &Cursor, each: &mut dyn FnMut(&Cursor, Carried) -> ControlFlow<()>) {
        let Simulation { schedule, layout, model, .. } = self.simulation;
        self.step.clear();
        schedule.step(from.rank, from.step, &mut self.step);
        let mut at = *from;
        for send in &self.step.sends[from.index as usize..] {
            let (source, destination, bytes) = (at.rank, send.peer, layout.bytes(send.chunks));
            let before = at;
            let sent = model.send(&mut at.port, at.ready, bytes);
            (at.ready, at.index) = (sent.free, at.index + 1);
            let message = Carried { source, destination, bytes, arrival: sent.arrival };
            let offered = destination != source && destination.0 < schedule.shape().ranks;
            if offered && each(&before, message).is_break() {
                return;
            }
        }
    }
}
