//! Why a run cannot finish.

use crate::dataflow::DataflowError;
use crate::endpoint::EndpointError;
use crate::workload::{PipelineError, ProgramError, TaskId};
use tutti_units::Time;
use tutti_units::ids::RankId;

/// A blocked rank and the peers it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The blocked rank.
    pub rank: RankId,
    /// The step in which it is blocked.
    pub step: u32,
    /// The peers from which messages are missing, one entry per message.
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

/// Why a run fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, tutti_units::Refusal)]
#[refusal(class = "SimulationError")]
#[expect(missing_docs, reason = "each variant's sentence names its fields")]
pub enum EngineError {
    /// Ranks wait for messages that no rank sends; at most the first sixteen are listed.
    #[error(
        "the simulation cannot finish: {stuck} of {ranks} ranks are blocked forever: {}",
        list(.waiting)
    )]
    #[refusal(class = "DeadlockError")]
    Deadlock { waiting: Vec<Waiting>, stuck: usize, ranks: u32 },
    /// The network is deadlocked with messages in flight.
    #[error(
        "the network is deadlocked: no packet has moved since {since}, with {messages} messages in \
         flight; {}",
        cycle_text(.deadlock_cycle)
    )]
    #[refusal(class = "DeadlockError")]
    NetworkDeadlock { since: Time, messages: usize, deadlock_cycle: Vec<String> },
    /// Ranks of a trace that wait forever; at most the first sixteen are listed.
    #[error("the trace cannot finish: {stuck} of {ranks} ranks are blocked forever: {waiting}")]
    #[refusal(class = "DeadlockError", kind = "trace_deadlock")]
    TraceDeadlock { waiting: String, stuck: usize, ranks: usize },
    /// Messages that no rank receives.
    #[error("{count} messages are never received; the first is from {sender} to {receiver}")]
    Unreceived { count: u64, sender: RankId, receiver: RankId },
    /// A message to a rank that does not exist.
    #[error("{sender} in step {step} sends to {receiver}, but there are only {ranks} ranks")]
    NoSuchRank { sender: RankId, step: u32, receiver: RankId, ranks: u32 },
    /// A message to a rank that no path of the graph reaches.
    #[error(
        "{sender} in step {step} sends to {receiver}, but no path of live links connects \
         {sender} to {receiver}"
    )]
    NoPath { sender: RankId, step: u32, receiver: RankId },
    /// The schedule sends no message.
    #[error("the schedule sends no messages: expected at least one")]
    NothingMoved,
    /// A payload layout with another number of chunks than the schedule.
    #[error("the payload layout has {layout} chunks: expected {schedule}, as in the schedule")]
    WrongLayout { layout: u32, schedule: u32 },
    /// The caller stopped the run.
    #[error("the simulation was stopped before it finished")]
    Stopped,
    /// A rank exceeds the latest time that the caller allows.
    #[error("the run would end too late")]
    TooLate,
    /// A completion time beyond the range of `Time`.
    #[error(
        "{rank} would finish after 2^63 - 1 ps (about 107 days), the latest completion time of a \
         run"
    )]
    TimeOverflow { rank: RankId },
}

fn list(waiting: &[Waiting]) -> String {
    waiting.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The most entries of a deadlock cycle that an error lists.
const SHOWN: usize = 8;

fn cycle_text(cycle: &[String]) -> String {
    if cycle.is_empty() {
        return "the cyclic dependency could not be determined".to_owned();
    }
    let shown = cycle.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = cycle.len().saturating_sub(SHOWN);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("cyclic dependency (each waits for the next, the last for the first): {shown}{more}")
}

tutti_units::fields! {
    Waiting => |value| (value.rank, value.step, value.on.clone()),
    TaskId => |value| value.0,
    ProgramError => |value| value.to_string(),
    PipelineError => |value| value.to_string(),
    DataflowError => |value| value.to_string(),
    EndpointError => |value| value.to_string(),
}
