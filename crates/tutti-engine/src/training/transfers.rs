//! The collectives of a run: their schedules, chunks and packets, computed before the run.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::algorithms::{Hop, check_marks};
use super::group::Groups;
use super::operations::{Operation, Operations};
use super::routes::{hop_routes, routes};
use super::{TrainingFabric, TrainingRunError};
use crate::dataflow::{Dataflow, Messages};
use crate::endpoint::ace::Exchanges;
use crate::endpoint::{Admission, Endpoint, EndpointError};
use crate::workload::{Rings, Transfer};
use tutti_schedule::collective::Collective;
use tutti_units::Bytes;

/// The sizes of a chunk.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    /// Bytes that enter each phase.
    pub(super) entry: Vec<Bytes>,
    /// Bytes that are loaded before the first phase, and of the result.
    pub(super) loaded: Bytes,
    pub(super) result: Bytes,
    /// By the length of a message: its packets, and the bytes of the last packet.
    packets: Vec<(u32, Bytes)>,
    /// Bytes of every other packet.
    packet: Bytes,
}

impl Sizes {
    fn new(flow: &Dataflow, bytes: Bytes, packet: Bytes) -> Result<Sizes, TrainingRunError> {
        let cut = |length: Bytes| {
            let count = length.0.div_ceil(packet.0).max(1);
            let last = Bytes(length.0 - (count - 1) * packet.0);
            let too_many = TrainingRunError::TooManyPackets { bytes: length, packet };
            u32::try_from(count).map(|count| (count, last)).map_err(|_| too_many)
        };
        let entry = (0..flow.phases.len()).map(|phase| flow.entry(phase, bytes));
        Ok(Sizes {
            entry: entry.collect(),
            loaded: flow.loaded(bytes),
            result: flow.result(bytes),
            packets: flow.lengths(bytes).into_iter().map(cut).collect::<Result<_, _>>()?,
            packet,
        })
    }

    /// The sizes at a side of a message: only the sender loads, and only the receiver stores.
    fn at(mut self, message: Option<(Side, u32)>) -> Sizes {
        match message {
            None => {}
            Some((Side::Sender, _)) => self.result = Bytes(0),
            Some((Side::Receiver, _)) => self.loaded = Bytes(0),
        }
        self
    }

    /// The number of packets of a message.
    #[inline]
    pub(super) fn packets(&self, length: u32) -> u32 {
        self.packets[length as usize].0
    }

    /// The bytes of a packet.
    #[inline]
    pub(super) fn bytes(&self, length: u32, piece: u32) -> Bytes {
        let (count, last) = self.packets[length as usize];
        if piece + 1 == count { last } else { self.packet }
    }

    /// How many packets of a message contain the first `part` of `chunks` chunks.
    #[inline]
    pub(super) fn packets_of(&self, length: u32, (part, chunks): (u32, u32)) -> u32 {
        let count = self.packets(length);
        if part == chunks {
            return count;
        }
        let share = u64::from(count) * u64::from(part);
        u32::try_from(share.div_ceil(u64::from(chunks.max(1)))).unwrap_or(u32::MAX)
    }

    /// The number of packets that a rank handles in a phase: what it receives, and what it sends
    /// without forwarding.
    pub(super) fn handled(&self, list: &Messages, phase: usize) -> u32 {
        let recvs = list.recvs_of(phase).map(|recv| list.recvs[recv as usize].length);
        let sends = list.sends_of(phase).map(|send| &list.sends[send as usize]);
        let own = sends.filter(|send| !send.forwarded).map(|send| send.length);
        recvs.chain(own).map(|length| self.packets(length)).sum()
    }
}

/// A channel of a collective: a schedule for some of its chunks.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) flow: Arc<Dataflow>,
    /// The partition and FSMs of each phase.
    pub(super) classes: Vec<usize>,
    /// By send, the links of its route, if it is the same for every NPU of a torus. Otherwise packets on
    /// a torus have routes that depend on their sender.
    pub(super) routes: Option<Arc<Vec<Vec<u16>>>>,
    /// Of every chunk but the last, and of the last.
    full: Sizes,
    rest: Sizes,
}

/// A side of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Sender,
    Receiver,
}

/// A collective or a side of a message, divided into chunks.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    pub(super) level: u8,
    /// Whether any FSM processes its chunks.
    any_fsm: bool,
    pub(super) groups: Arc<Groups>,
    /// For a message: its side, and how many ranks its receiver is ahead of its sender.
    pub(super) message: Option<(Side, u32)>,
    /// The number of its first chunk, and its number of chunks.
    pub(super) first: u32,
    pub(super) chunks: u32,
    pub(super) channels: Vec<Channel>,
}

/// The schedules on one kind of groups.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) groups: Arc<Groups>,
    pub(super) flows: Vec<Arc<Dataflow>>,
}

/// The schedules of the collectives of a run, without duplicates.
#[derive(Default)]
pub(super) struct Plans {
    all: BTreeMap<(&'static str, u8), Plan>,
}

impl Plans {
    /// The schedules of a transfer.
    pub(super) fn of(
        &mut self,
        fabric: &TrainingFabric,
        transfer: Transfer,
    ) -> Result<Plan, TrainingRunError> {
        let Transfer { collective, rings, .. } = transfer;
        let rings = rings.of(&fabric.sizes);
        if let Some(plan) = self.all.get(&(collective.name(), rings.0)) {
            return Ok(plan.clone());
        }
        if rings == Rings(0) {
            return Err(TrainingRunError::NoPlan { collective: collective.name() });
        }
        let groups = Groups::new(&fabric.sizes, rings);
        let schedules = fabric.algorithms.of(collective, rings, &groups.sizes())?;
        let flows = schedules.iter().map(|schedule| Ok(Arc::new(Dataflow::of(&**schedule)?)));
        let flows = flows.collect::<Result<Vec<Arc<Dataflow>>, TrainingRunError>>()?;
        check_marks(fabric, &schedules, &flows)?;
        let plan = Plan { groups: Arc::new(groups), flows };
        self.all.insert((collective.name(), rings.0), plan.clone());
        Ok(plan)
    }

    /// The most phases of a collective.
    pub(super) fn phases(&self) -> usize {
        let flows = self.all.values().flat_map(|plan| &plan.flows);
        flows.map(|flow| flow.phases.len()).max().unwrap_or(1)
    }
}

/// The classes of the phases of a collective, ascending. Phases up to the last reduction use the
/// first classes, later ones the last classes, so that similar phases of different collectives share
/// partitions and FSMs.
pub(super) fn classes(flow: &Dataflow, classes: usize) -> Vec<usize> {
    let phases = flow.phases.len();
    let reducing = flow.phases.iter().rposition(|phase| phase.reduces).map_or(0, |last| last + 1);
    (0..phases)
        .map(|phase| if phase < reducing { phase } else { classes - phases + phase })
        .collect()
}

/// The classes of the phases where those along a dimension share a class: their dimensions.
fn dimensions(flow: &Dataflow, groups: &Groups) -> Vec<usize> {
    let list = flow.messages(0);
    let first = |phase| list.sends_of(phase).next().map(|send| list.sends[send as usize].peer.0);
    let dimension = |phase| first(phase).and_then(|offset| groups.dimension(offset)).unwrap_or(0);
    (0..flow.phases.len()).map(dimension).collect()
}

/// All collectives of a run.
#[derive(Clone, Debug)]
pub(super) struct Cuts {
    pub(super) cuts: Vec<Cut>,
    /// The number of classes of phases.
    pub(super) classes: usize,
    of: Vec<Place>,
}

/// The collective and the channel of a chunk.
#[derive(Clone, Copy, Debug)]
struct Place {
    transfer: u32,
    channel: u16,
    is_last: bool,
}

impl Cuts {
    /// Divides a collective alone into chunks, by size or number.
    pub(super) fn of_one(
        fabric: &TrainingFabric,
        transfer: Transfer,
    ) -> Result<Cuts, TrainingRunError> {
        let rings = transfer.rings.of(&fabric.sizes);
        let groups = vec![Arc::new(Groups::new(&fabric.sizes, rings))];
        Cuts::new(fabric, &[Operation::Collective(transfer)], &groups)
    }

    /// Divides the operations of a run.
    pub(super) fn of_run(
        fabric: &TrainingFabric,
        operations: &Operations,
    ) -> Result<Cuts, TrainingRunError> {
        Cuts::new(fabric, &operations.all, &operations.groups)
    }

    fn new(
        fabric: &TrainingFabric,
        operations: &[Operation],
        groups: &[Arc<Groups>],
    ) -> Result<Cuts, TrainingRunError> {
        let TrainingFabric { endpoint, chunk, parts, message, .. } = fabric;
        if *chunk == Bytes(0) || *message == Bytes(0) || *parts == Some(0) {
            return Err(TrainingRunError::EmptyChunk);
        }
        let mut plans = Plans::default();
        for operation in operations {
            if let &Operation::Collective(transfer) = operation {
                plans.of(fabric, transfer)?;
            }
        }
        // An all_reduce among all NPUs has the most phases of the usual collectives.
        let _ = plans.of(fabric, Transfer::new(Collective::AllReduce, Bytes(1)));
        let classes = class_count(fabric, plans.phases())?;
        let mut all = Cuts { cuts: Vec::with_capacity(operations.len()), classes, of: Vec::new() };
        let hop = Arc::new(Dataflow::of(&Hop::new())?);
        for (index, (&operation, groups)) in (0..).zip(operations.iter().zip(groups)) {
            let bytes = operation.bytes();
            let equal = |parts: u32| Bytes(bytes.0.div_ceil(u64::from(parts)).max(1));
            let plan = match operation {
                Operation::Collective(transfer) => plans.of(fabric, transfer)?,
                _ => Plan { groups: Arc::clone(groups), flows: vec![Arc::clone(&hop)] },
            };
            let cut = all.cut(fabric, &plan, operation, parts.map_or(*chunk, equal))?;
            if cut.message.is_none() {
                check_partitions(endpoint, &cut)?;
            }
            all.add(index, cut);
        }
        Ok(all)
    }

    fn add(&mut self, transfer: u32, cut: Cut) {
        let end = cut.first + cut.chunks;
        self.of.extend((cut.first..end).map(|chunk| Place {
            transfer,
            channel: u16::try_from(chunk as usize % cut.channels.len()).unwrap_or(0),
            is_last: chunk + 1 == end,
        }));
        self.cuts.push(cut);
    }

    fn cut(
        &self,
        fabric: &TrainingFabric,
        plan: &Plan,
        operation: Operation,
        chunk: Bytes,
    ) -> Result<Cut, TrainingRunError> {
        let bytes = operation.bytes();
        let too_many = TrainingRunError::TooManyChunks { bytes, chunk };
        let count = |count| u32::try_from(count).map_err(|_| too_many.clone());
        let chunks = count(bytes.0.div_ceil(chunk.0))?;
        let first = u32::try_from(self.of.len()).map_err(|_| too_many.clone())?;
        let full = if chunks > 1 { chunk } else { bytes };
        let rest = Bytes(bytes.0 - u64::from(chunks - 1) * chunk.0);
        let message = operation.side();
        let packet = fabric.endpoint.piece;
        let sizes =
            |flow: &Dataflow, bytes| Sizes::new(flow, bytes, packet).map(|sizes| sizes.at(message));
        let channel = |flow: &Arc<Dataflow>| {
            Ok(Channel {
                classes: match &fabric.endpoint.admission {
                    Admission::Chunks(chunks) if chunks.by_dimension && message.is_none() => {
                        dimensions(flow, &plan.groups)
                    }
                    _ => classes(flow, self.classes),
                },
                routes: match message {
                    None => routes(fabric, &plan.groups, flow)?,
                    Some((_, ahead)) => hop_routes(fabric, &plan.groups, ahead)?,
                },
                full: sizes(flow, full)?,
                rest: sizes(flow, rest)?,
                flow: Arc::clone(flow),
            })
        };
        let channels = plan.flows.iter().map(channel).collect::<Result<_, TrainingRunError>>()?;
        let any_fsm = runs_on_any_fsm(&fabric.endpoint.admission, operation);
        let groups = Arc::clone(&plan.groups);
        Ok(Cut { level: operation.level(), any_fsm, groups, message, first, chunks, channels })
    }

    pub(super) fn chunks(&self) -> usize {
        self.of.len()
    }

    pub(super) fn transfer_of(&self, chunk: u32) -> usize {
        self.of[chunk as usize].transfer as usize
    }

    #[inline]
    fn cut_of(&self, chunk: u32) -> &Cut {
        &self.cuts[self.transfer_of(chunk)]
    }

    #[inline]
    pub(super) fn groups(&self, chunk: u32) -> &Groups {
        &self.cut_of(chunk).groups
    }

    /// Whether a chunk is part of a message; endpoints do not limit how many are in flight.
    #[inline]
    pub(super) fn is_message(&self, chunk: u32) -> bool {
        self.cut_of(chunk).message.is_some()
    }

    /// The rank of an NPU in the schedule of a chunk.
    #[inline]
    pub(super) fn rank(&self, npu: u32, chunk: u32) -> u32 {
        let cut = self.cut_of(chunk);
        match cut.message {
            None => cut.groups.rank(npu),
            Some((side, _)) => u32::from(side == Side::Receiver),
        }
    }

    /// The NPU that receives a send of a chunk.
    #[inline]
    pub(super) fn receiver(&self, npu: u32, chunk: u32, send: u32) -> u32 {
        let cut = self.cut_of(chunk);
        if let Some((_, ahead)) = cut.message {
            return cut.groups.ahead(npu, ahead);
        }
        let (flow, rank) = (&self.channel(chunk).flow, cut.groups.rank(npu));
        let peer = flow.messages(rank).sends[send as usize].peer;
        cut.groups.member(npu, flow.peer(rank, peer))
    }

    /// The NPU that sends what `npu` receives.
    #[inline]
    pub(super) fn sender(&self, npu: u32, chunk: u32, recv: u32) -> u32 {
        let cut = self.cut_of(chunk);
        if let Some((_, ahead)) = cut.message {
            return cut.groups.ahead(npu, cut.groups.size - ahead % cut.groups.size);
        }
        let (flow, rank) = (&self.channel(chunk).flow, cut.groups.rank(npu));
        let peer = flow.messages(rank).recvs[recv as usize].peer;
        cut.groups.member(npu, flow.peer(rank, peer))
    }

    /// The number of a chunk at the receiver of its packets: the sides of a message differ.
    #[inline]
    pub(super) fn at_receiver(&self, chunk: u32) -> u32 {
        let cut = self.cut_of(chunk);
        if cut.message.is_some() { chunk + cut.chunks } else { chunk }
    }

    /// The channel of a chunk: its channels take turns by the number of the chunk in the run.
    #[inline]
    pub(super) fn channel(&self, chunk: u32) -> &Channel {
        let Place { transfer, channel, .. } = self.of[chunk as usize];
        &self.cuts[transfer as usize].channels[usize::from(channel)]
    }

    /// The sizes of a chunk.
    #[inline]
    pub(super) fn sizes(&self, chunk: u32) -> &Sizes {
        let channel = self.channel(chunk);
        if self.of[chunk as usize].is_last { &channel.rest } else { &channel.full }
    }

    /// The messages of an NPU for a chunk.
    #[inline]
    pub(super) fn list(&self, npu: u32, chunk: u32) -> &Messages {
        self.channel(chunk).flow.messages(self.rank(npu, chunk))
    }

    /// The FSMs that may process a phase of a chunk: those of a class, or any.
    #[inline]
    pub(super) fn pool(&self, chunk: u32, phase: u32) -> usize {
        if self.cut_of(chunk).any_fsm {
            return self.classes;
        }
        self.channel(chunk).classes[phase as usize]
    }

    /// The partition of a chunk in a phase, and its size there. After the last phase, `results` is
    /// the partition.
    #[inline]
    pub(super) fn partition(&self, chunk: u32, phase: u32, results: usize) -> (usize, Bytes) {
        let sizes = self.sizes(chunk);
        match sizes.entry.get(phase as usize) {
            Some(&bytes) => (self.channel(chunk).classes[phase as usize], bytes),
            None => (results, sizes.result),
        }
    }

    /// The number of phases of a chunk.
    pub(super) fn phases(&self, chunk: u32) -> usize {
        self.channel(chunk).classes.len()
    }
}

/// Whether any FSM processes the chunks of an operation: exchanges, where partitions allow it.
fn runs_on_any_fsm(admission: &Admission, operation: Operation) -> bool {
    let exchanges = matches!(admission,
        Admission::Partitions(partitions) if partitions.exchanges == Exchanges::AnyFsm);
    exchanges
        && matches!(operation, Operation::Collective(one) if one.collective == Collective::AllToAll)
}

/// The classes of an endpoint; without partitions, as many as the most phases or as the dimensions.
fn class_count(fabric: &TrainingFabric, phases: usize) -> Result<usize, TrainingRunError> {
    let partitions = match &fabric.endpoint.admission {
        Admission::Chunks(chunks) if chunks.by_dimension => return Ok(fabric.sizes.len()),
        Admission::Chunks(_) => return Ok(phases),
        Admission::Partitions(partitions) => partitions,
    };
    let given = partitions.fsms.len();
    if given < phases {
        return Err(EndpointError::WrongFsms { given, phases }.into());
    }
    Ok(given)
}

/// Checks that every chunk fits into the partitions that it passes.
fn check_partitions(endpoint: &Endpoint, cut: &Cut) -> Result<(), TrainingRunError> {
    let Admission::Partitions(partitions) = &endpoint.admission else { return Ok(()) };
    let last = partitions.sizes.len() - 1;
    for Channel { classes, full, .. } in &cut.channels {
        let entries = classes.iter().copied().zip(full.entry.iter().copied());
        for (partition, chunk) in entries.chain([(last, full.result)]) {
            let size = partitions.sizes[partition];
            if size < chunk {
                return Err(EndpointError::PartitionTooSmall { partition, size, chunk }.into());
            }
        }
    }
    Ok(())
}
