//! Why a run cannot finish.

use crate::endpoint::EndpointError;
use crate::workload::{ProgramError, TaskId};
use tutti_units::Time;
use tutti_units::ids::RankId;

/// A rank that can never go on, and whom it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Who waits.
    pub rank: RankId,
    /// In which of its steps.
    pub step: u32,
    /// The peers whose messages are missing, one entry a message.
    pub on: Vec<RankId>,
}

impl std::fmt::Display for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in step {} waits for ", self.rank, self.step)?;
        let shown: Vec<String> = self.on.iter().take(4).map(ToString::to_string).collect();
        f.write_str(&shown.join(", "))?;
        if self.on.len() > shown.len() {
            write!(f, " and {} more", self.on.len() - shown.len())?;
        }
        Ok(())
    }
}

/// Why a run gives no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "SimulationError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum EngineError {
    /// Ranks wait for messages that nobody sends; at most the first sixteen are listed.
    #[error("the simulation cannot finish: {stuck} of {ranks} ranks wait for ever: {}", list(.waiting))]
    #[refusal(class = "DeadlockError")]
    Deadlock { waiting: Vec<Waiting>, stuck: usize, ranks: u32 },
    /// The network is deadlocked with messages in it.
    #[error("the network is deadlocked: from {since} on nothing moves in it, with {messages} messages under way; {}", cycle_text(.deadlock_cycle))]
    #[refusal(class = "DeadlockError")]
    NetworkDeadlock { since: Time, messages: usize, deadlock_cycle: Vec<String> },
    /// Messages that nobody receives.
    #[error("{count} messages are never received; the first is from {sender} to {receiver}")]
    Unreceived { count: u64, sender: RankId, receiver: RankId },
    /// A message to a rank that does not exist.
    #[error("{sender} in step {step} sends to {receiver}, but there are only {ranks} ranks")]
    NoSuchRank { sender: RankId, step: u32, receiver: RankId, ranks: u32 },
    /// A message between ranks of which the graph does not lead from one to the other.
    #[error(
        "{sender} in step {step} sends to {receiver}, but there is no way from {sender} to \
         {receiver}: no live links lead there"
    )]
    NoWay { sender: RankId, step: u32, receiver: RankId },
    /// No message was sent at all.
    #[error("the schedule sends no message: there is nothing to simulate")]
    NothingMoved,
    /// Chunks of the payload that are not the schedule's.
    #[error("the payload is laid out in {layout} chunks but the schedule has {schedule}")]
    WrongLayout { layout: u32, schedule: u32 },
    /// Somebody stopped it.
    #[error("the simulation was stopped before it was done")]
    Stopped,
    /// Longer than time can count.
    #[error(
        "{rank} would finish later than 2^63 - 1 ps (about 107 days), the latest time a run may end at"
    )]
    TimeOverflow { rank: RankId },
}

fn list(waiting: &[Waiting]) -> String {
    waiting.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The most VCs of a deadlock cycle that are named.
const SHOWN: usize = 8;

fn cycle_text(cycle: &[String]) -> String {
    if cycle.is_empty() {
        return "what it waits for was not found".to_owned();
    }
    let shown = cycle.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = cycle.len().saturating_sub(SHOWN);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("each waits for the next and the last for the first: {shown}{more}")
}

tutti_units::fields! {
    Waiting => |value| (value.rank, value.step, value.on.clone()),
    TaskId => |value| value.0,
    ProgramError => |value| value.to_string(),
    EndpointError => |value| value.to_string(),
}
