//! The text form of a schedule: one op per line, stable, and readable by people and by [`read`].
//!
//! ```text
//! tutti schedule 1
//! name pair
//! collective all_reduce
//! ranks 2
//! chunks 1
//! slots 2
//! result data
//!
//! rank 0
//! step exchange
//!   send data[0] to 1
//!   recv s1[0] from 1
//!   reduce data[0] = data + s1
//! ```
//!
//! The header comes first; rooted collectives have a line `root R`. An all_to_all_v has a line
//! `blocks 0 4; 9 1` with the relative sizes of its blocks, the row of a source after another. Ranks are in ascending order;
//! ranks without steps may be omitted. Within a step sends come first, then receives, then local
//! ops (`copy s1[0..2] to data[4]`, `compute 1.5 us`, `sleep 3 ns`). Messages that the network may
//! fork or combine are one op: `multicast data[0] to 1 2 3` and `contribute data[0] to 0` among the
//! sends, and `combine data[0] = data + s1 from 1 + s2 from 2` among the receives. `data` is slot
//! 0, `s1` slot 1. Blank lines and lines that start with `#` are ignored.

use std::fmt::Write;

use super::{Message, Op, Schedule, Slot, Step};
use tutti_units::ids::RankId;

mod read;
#[cfg(test)]
mod tests;

pub use read::{TextError, read};

const FIRST_LINE: &str = "tutti schedule 1";

/// Writes a schedule as text.
///
/// # Errors
/// Only those of `out`; writing to a `String` never fails.
pub fn write(schedule: &dyn Schedule, out: &mut impl Write) -> std::fmt::Result {
    let shape = schedule.shape();
    writeln!(out, "{FIRST_LINE}\nname {}", one_line(&shape.name))?;
    writeln!(out, "collective {}", shape.collective)?;
    if let Some(root) = shape.collective.root() {
        writeln!(out, "root {}", root.0)?;
    }
    writeln!(out, "ranks {}\nchunks {}", shape.ranks, shape.chunks)?;
    if let Some(blocks) = schedule.blocks() {
        writeln!(out, "blocks {blocks}")?;
    }
    writeln!(out, "slots {}\nresult {}", shape.slots, shape.result)?;
    let mut step = Step::new();
    for rank in (0..shape.ranks).map(RankId) {
        let steps = schedule.steps(rank);
        if steps > 0 {
            writeln!(out, "\nrank {}", rank.0)?;
        }
        for index in 0..steps {
            step.clear();
            schedule.step(rank, index, &mut step);
            let name = schedule.step_name(rank, index);
            let name =
                if name == format!("step {index}") { String::new() } else { one_line(&name) };
            writeln!(out, "{}", format!("step {name}").trim_end())?;
            step.ops().try_for_each(|op| writeln!(out, "  {op}"))?;
        }
    }
    Ok(())
}

/// Returns a schedule as text.
#[must_use]
pub fn to_string(schedule: &dyn Schedule) -> String {
    let mut out = String::new();
    write(schedule, &mut out).expect("writing to a string never fails");
    out
}

/// Returns a name without line breaks.
fn one_line(name: &str) -> String {
    name.replace(char::is_control, " ").trim().to_owned()
}

impl std::fmt::Display for Op {
    /// Formats the op as in the text form.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let operand = |index, slot: Slot| format!("{} {slot}", if index == 0 { "" } else { " +" });
        write!(f, "{} ", self.kind())?;
        match self {
            Op::Send(Message { peer, slot, chunks })
            | Op::Contribute(Message { peer, slot, chunks }) => {
                write!(f, "{slot}[{chunks}] to {}", peer.0)
            }
            Op::Multicast { peers, slot, chunks } => {
                write!(f, "{slot}[{chunks}] to")?;
                peers.iter().try_for_each(|peer| write!(f, " {}", peer.0))
            }
            Op::Combine { into, operands, chunks } => {
                write!(f, "{into}[{chunks}] =")?;
                for (index, (slot, from)) in operands.iter().enumerate() {
                    f.write_str(&operand(index, *slot))?;
                    from.map_or(Ok(()), |from| write!(f, " from {}", from.0))?;
                }
                Ok(())
            }
            Op::Recv(Message { peer, slot, chunks }) => {
                write!(f, "{slot}[{chunks}] from {}", peer.0)
            }
            Op::Reduce { into, operands, chunks } => {
                write!(f, "{into}[{chunks}] =")?;
                let mut slots = operands.iter().enumerate();
                slots.try_for_each(|(index, &slot)| f.write_str(&operand(index, slot)))
            }
            Op::Copy { from, into, chunks, to } => write!(f, "{from}[{chunks}] to {into}[{to}]"),
            Op::Compute { duration } | Op::Sleep { duration } => write!(f, "{duration}"),
        }
    }
}
