//! The transfers of a run: which tasks of which NPUs perform a collective or a message together.
//!
//! Collectives of a group are matched in the order in which its NPUs issue them, those of activations
//! and of weights separately. Messages from one NPU to another are matched in order, separately for
//! each tag. A collective that several groups along the same dimensions perform alike, as their n-th,
//! is one operation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::group::Groups;
use super::transfers::Side;
use super::{Population, TrainingRunError};
use crate::workload::{Content, Message, Program, Rings, TaskId, Transfer, What};
use tutti_units::Bytes;

/// What the NPUs of a group do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    /// A collective.
    Collective(Transfer),
    /// A message at its sender. The same message at its receiver is the next operation.
    Send(Message),
    /// A message at its receiver, described as at its sender.
    Recv(Message),
}

impl Operation {
    pub(super) fn rings(self) -> Rings {
        match self {
            Operation::Collective(transfer) => transfer.rings,
            Operation::Send(message) | Operation::Recv(message) => message.rings,
        }
    }

    /// The group and what it carries: a communicator.
    pub(super) fn communicator(self) -> (Rings, Content) {
        match self {
            Operation::Collective(transfer) => (transfer.rings, transfer.content),
            Operation::Send(_) | Operation::Recv(_) => (self.rings(), Content::default()),
        }
    }

    /// The level of a collective; 0 for messages.
    pub(super) fn level(self) -> u8 {
        match self {
            Operation::Collective(transfer) => transfer.level,
            Operation::Send(_) | Operation::Recv(_) => 0,
        }
    }

    pub(super) fn bytes(self) -> Bytes {
        match self {
            Operation::Collective(transfer) => transfer.bytes,
            Operation::Send(message) | Operation::Recv(message) => message.bytes,
        }
    }

    /// The side of a message, and how many ranks its receiver is ahead of its sender.
    pub(super) fn side(self) -> Option<(Side, u32)> {
        match self {
            Operation::Collective(_) => None,
            Operation::Send(message) => Some((Side::Sender, message.ahead)),
            Operation::Recv(message) => Some((Side::Receiver, message.ahead)),
        }
    }
}

/// The operations of a run.
#[derive(Clone, Debug)]
pub(super) struct Operations {
    pub(super) all: Vec<Operation>,
    /// The groups of each operation.
    pub(super) groups: Vec<Arc<Groups>>,
    /// By program and task: its operation, or [`NONE`].
    of: Vec<Vec<u32>>,
    /// By program and operation: its task.
    tasks: Vec<Vec<TaskId>>,
}

/// No operation.
const NONE: u32 = u32::MAX;

/// What an NPU does on some groups, in order.
#[derive(Default)]
struct Sequences {
    collectives: BTreeMap<(Rings, Content), Vec<Transfer>>,
    sends: BTreeMap<Channel, Vec<Bytes>>,
    recvs: BTreeMap<Channel, Vec<Bytes>>,
}

/// The messages from each NPU to another: dimensions, ranks ahead, tag.
type Channel = (Rings, u32, u32);

/// The message as its sender describes it.
fn as_sent(what: &What, groups: &Groups) -> Option<Message> {
    match *what {
        What::Send(message) => Some(Message { ahead: message.ahead % groups.size, ..message }),
        What::Recv(message) => {
            let ahead = (groups.size - message.ahead % groups.size) % groups.size;
            Some(Message { ahead, ..message })
        }
        _ => None,
    }
}

impl Operations {
    /// Matches the transfers of the programs; `of` is the program of each NPU.
    pub(super) fn new(
        programs: &[Program],
        of: &[u32],
        sizes: &[u32],
        population: Population,
    ) -> Result<Operations, TrainingRunError> {
        let mut found = Matching { sizes, groups: BTreeMap::new(), numbers: BTreeMap::new() };
        let mut operations =
            Operations { all: Vec::new(), groups: Vec::new(), of: Vec::new(), tasks: Vec::new() };
        let mut sequences = Vec::with_capacity(programs.len());
        for program in programs {
            sequences.push(found.add(program, &mut operations));
        }
        for of in &operations.of {
            let mut tasks = vec![TaskId(NONE); operations.all.len()];
            for (task, &operation) in (0..).zip(of).filter(|(_, at)| **at != NONE) {
                tasks[operation as usize] = TaskId(task);
            }
            operations.tasks.push(tasks);
        }
        if population == Population::All {
            found.check(&sequences, of)?;
        } else if operations.all.iter().any(|op| !matches!(op, Operation::Collective(_))) {
            return Err(TrainingRunError::NotSymmetric);
        }
        Ok(operations)
    }

    /// The operation of a task.
    #[inline]
    pub(super) fn of(&self, program: usize, task: TaskId) -> usize {
        self.of[program][task.index()] as usize
    }

    /// The task of an operation.
    #[inline]
    pub(super) fn task(&self, program: usize, operation: usize) -> TaskId {
        self.tasks[program][operation]
    }

    /// Whether an operation is a collective, which an NPU launches.
    #[inline]
    pub(super) fn is_collective(&self, operation: usize) -> bool {
        matches!(self.all[operation], Operation::Collective(_))
    }

    /// Whether an operation receives a message.
    #[inline]
    pub(super) fn receives(&self, operation: usize) -> bool {
        matches!(self.all[operation], Operation::Recv(_))
    }

    /// The receiver of a message of `npu`.
    pub(super) fn receiver(&self, npu: u32, operation: usize) -> Option<u32> {
        match self.all[operation] {
            Operation::Send(message) => Some(self.groups[operation].ahead(npu, message.ahead)),
            _ => None,
        }
    }
}

/// Operations by their description and their number among those of the same groups.
struct Matching<'a> {
    sizes: &'a [u32],
    groups: BTreeMap<Rings, Arc<Groups>>,
    numbers: BTreeMap<(Operation, usize), u32>,
}

impl Matching<'_> {
    fn groups(&mut self, rings: Rings) -> Arc<Groups> {
        let new = || Arc::new(Groups::new(self.sizes, rings));
        Arc::clone(self.groups.entry(rings).or_insert_with(new))
    }

    /// Adds the operations of a program.
    fn add(&mut self, program: &Program, into: &mut Operations) -> Sequences {
        let mut sequences = Sequences::default();
        let mut of = vec![NONE; program.tasks().len()];
        for (at, task) in of.iter_mut().zip(program.tasks()) {
            let rings = match task.what {
                What::Compute { .. } => continue,
                What::Collective(Transfer { rings, .. }) => rings,
                What::Send(Message { rings, .. }) | What::Recv(Message { rings, .. }) => rings,
            };
            let rings = rings.of(self.sizes);
            let groups = self.groups(rings);
            if let What::Collective(transfer) = task.what {
                let transfer = Transfer { rings, ..transfer };
                let all = sequences.collectives.entry((rings, transfer.content)).or_default();
                *at = self.number(Operation::Collective(transfer), all.len(), &groups, into);
                all.push(transfer);
            } else if let Some(message) = as_sent(&task.what, &groups) {
                let message = Message { rings, ..message };
                let receives = matches!(task.what, What::Recv(_));
                let side = if receives { &mut sequences.recvs } else { &mut sequences.sends };
                let all = side.entry((rings, message.ahead, message.tag)).or_default();
                let sent = self.number(Operation::Send(message), all.len(), &groups, into);
                *at = sent + u32::from(receives);
                all.push(message.bytes);
            }
        }
        into.of.push(of);
        sequences
    }

    /// The number of an operation, new if it is the first of its kind.
    fn number(
        &mut self,
        operation: Operation,
        index: usize,
        groups: &Arc<Groups>,
        into: &mut Operations,
    ) -> u32 {
        let next = u32::try_from(into.all.len()).expect("fewer than 2^32 operations");
        let number = *self.numbers.entry((operation, index)).or_insert(next);
        if number == next {
            into.all.push(operation);
            into.groups.push(Arc::clone(groups));
            if let Operation::Send(message) = operation {
                into.all.push(Operation::Recv(message));
                into.groups.push(Arc::clone(groups));
            }
        }
        number
    }

    /// Checks that the NPUs of each group issue the same collectives in the same order, and that
    /// each message has a sender and a receiver.
    fn check(&self, sequences: &[Sequences], of: &[u32]) -> Result<(), TrainingRunError> {
        let npus: u32 = self.sizes.iter().product();
        let program = |npu: u32| of.get(npu as usize).map_or(0, |&program| program as usize);
        let mut checked = BTreeSet::new();
        for npu in 0..npus {
            for (&rings, groups) in &self.groups {
                let first = groups.member(npu, 0);
                if checked.insert((program(first), program(npu), rings)) {
                    let pair = (&sequences[program(first)], &sequences[program(npu)]);
                    for content in [Content::Activations, Content::Weights] {
                        same_collectives((first, npu), (rings, content), pair)?;
                    }
                }
            }
        }
        let channels = sequences.iter().flat_map(|one| one.sends.keys().chain(one.recvs.keys()));
        let channels: BTreeSet<Channel> = channels.copied().collect();
        let mut checked = BTreeSet::new();
        for channel in channels {
            let (rings, ahead, _) = channel;
            for from in 0..npus {
                let to = self.groups[&rings].ahead(from, ahead);
                if checked.insert((program(from), program(to), channel)) {
                    let sides = (&sequences[program(from)], &sequences[program(to)]);
                    same_messages((from, to), channel, sides)?;
                }
            }
        }
        Ok(())
    }
}

fn same_collectives(
    (first, npu): (u32, u32),
    communicator: (Rings, Content),
    (expected, found): (&Sequences, &Sequences),
) -> Result<(), TrainingRunError> {
    let of = |sequences: &Sequences, index: usize| -> Option<Transfer> {
        sequences.collectives.get(&communicator).and_then(|all| all.get(index)).copied()
    };
    let listed = |transfer: Option<Transfer>| match transfer {
        Some(transfer) => format!("{} of {}", transfer.collective.name(), transfer.bytes),
        None => "missing".to_owned(),
    };
    for index in 0.. {
        let (expected, found) = (of(expected, index), of(found, index));
        if expected.is_none() && found.is_none() {
            break;
        }
        if expected != found {
            let (found, expected) = (listed(found), listed(expected));
            return Err(TrainingRunError::OtherCollectives { npu, index, found, first, expected });
        }
    }
    Ok(())
}

fn same_messages(
    (from, to): (u32, u32),
    channel: Channel,
    (sender, receiver): (&Sequences, &Sequences),
) -> Result<(), TrainingRunError> {
    let all =
        |side: &BTreeMap<Channel, Vec<Bytes>>| side.get(&channel).cloned().unwrap_or_default();
    let (sent, received) = (all(&sender.sends), all(&receiver.recvs));
    if !sent.is_empty() && from == to {
        return Err(TrainingRunError::SelfMessage { npu: from });
    }
    if sent == received {
        return Ok(());
    }
    let index = (0..).find(|&index| sent.get(index) != received.get(index)).unwrap_or(0);
    let listed = |bytes: Option<&Bytes>| bytes.map_or("missing".to_owned(), ToString::to_string);
    let (sent, received) = (listed(sent.get(index)), listed(received.get(index)));
    Err(TrainingRunError::OtherMessages { from, to, index, sent, received })
}
