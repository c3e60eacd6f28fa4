//! A layer in training: three passes, each with a time and optional collectives.

use tutti_schedule::collective::Collective;
use tutti_units::{Bytes, Time};

/// The passes over a layer in one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, tutti_units::Named)]
pub enum Pass {
    /// Activations from inputs.
    Forward,
    /// Gradients of the inputs, for the previous layer.
    InputGradient,
    /// Gradients of the parameters.
    WeightGradient,
    /// New parameters from gradients.
    Update,
}

/// The participating dimensions of the NPU numbers; NPUs along the others form further groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rings(pub u8);

impl Rings {
    /// Every ring.
    pub const ALL: Rings = Rings(u8::MAX);

    /// Whether ring number `ring` is one of them.
    #[inline]
    #[must_use]
    pub fn contains(self, ring: usize) -> bool {
        ring < 8 && self.0 >> ring & 1 == 1
    }

    /// Returns those of more than one NPU.
    #[must_use]
    pub fn of(self, sizes: &[u32]) -> Rings {
        let bit = |(ring, &nodes): (usize, &u32)| {
            u8::from(nodes > 1 && self.contains(ring)).checked_shl(u32::try_from(ring).ok()?)
        };
        Rings(sizes.iter().enumerate().filter_map(bit).sum())
    }
}

/// What a collective carries. A group has a communicator for each, as in Megatron-Core and FSDP, so that their
/// collectives overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Content {
    /// Activations and their gradients.
    #[default]
    Activations,
    /// Weights and their gradients.
    Weights,
}

/// A collective issued by a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transfer {
    /// Which one.
    pub collective: Collective,
    /// Among the NPUs of these rings.
    pub rings: Rings,
    /// Its size by the convention of [`tutti_schedule::collective`].
    pub bytes: Bytes,
    /// Transfers of a higher level have priority; the configured order applies within a level.
    pub level: u8,
    /// What it carries.
    pub content: Content,
}

impl Transfer {
    /// A transfer of the default level among all NPUs.
    #[must_use]
    pub fn new(collective: Collective, bytes: Bytes) -> Transfer {
        let (rings, content) = (Rings::ALL, Content::default());
        Transfer { collective, rings, bytes, level: 0, content }
    }

    /// Returns the transfer with priority over the default level.
    #[must_use]
    pub fn first(self) -> Transfer {
        Transfer { level: 1, ..self }
    }

    /// Returns the transfer as one of weights or their gradients.
    #[must_use]
    pub fn of_weights(self) -> Transfer {
        Transfer { content: Content::Weights, ..self }
    }
}

/// A message between two NPUs of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message {
    /// The dimensions of the group.
    pub rings: Rings,
    /// The rank of the other NPU minus that of this one, modulo the size of the group.
    pub ahead: u32,
    /// Its size.
    pub bytes: Bytes,
    /// Messages from one NPU to another are matched in order, separately for each tag.
    pub tag: u32,
}

/// The cost of a layer on an NPU in one iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// Its name, for reports.
    pub name: String,
    /// Time of the forward pass.
    pub forward: Time,
    /// Time of the input gradient.
    pub input_gradient: Time,
    /// Time of the weight gradient.
    pub weight_gradient: Time,
    /// Time from the end of the gradients' collective to new parameters.
    pub update: Time,
    /// The collective that gathers the weights before the forward pass.
    pub before_forward: Option<Transfer>,
    /// The same before the backward pass, if weights are not stored in between.
    pub before_backward: Option<Transfer>,
    /// The sequential collectives after the forward pass, for which the next layer waits.
    pub after_forward: Vec<Transfer>,
    /// The rest of the forward pass, and the sequential collectives that run meanwhile; the next layer
    /// waits for them.
    pub covered_forward: Time,
    /// Those collectives.
    pub with_forward: Vec<Transfer>,
    /// The first part of the backward pass, and the sequential collectives that run meanwhile; the rest
    /// of the pass waits for them.
    pub covered_backward: Time,
    /// Those collectives.
    pub with_backward: Vec<Transfer>,
    /// The collectives after the input gradient, for which the previous layer waits.
    pub after_input_gradient: Vec<Transfer>,
    /// The collective of the weight gradient, for which the next forward pass of the layer waits.
    pub after_weight_gradient: Option<Transfer>,
}
