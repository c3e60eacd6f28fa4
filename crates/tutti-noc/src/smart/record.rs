//! The events of flits.

/// Why a flit stopped where it did.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, tutti_units::Named)]
pub enum Stop {
    /// Its path ended: the turn, the destination, or as far as a cycle reaches.
    #[named("stopped:end")]
    End,
    /// A flit buffered here, or its input port, went first.
    #[named("stopped:local")]
    Local,
    /// A flit from farther away went first, or was expected to.
    #[named("stopped:farther")]
    Farther,
    /// The next router had no free buffer.
    #[named("stopped:no_room")]
    NoBuffer,
    /// Earlier flits of its packet were here.
    #[named("stopped:order")]
    Order,
    /// The router waited for other responses of the flow.
    #[named("stopped:answers")]
    Responses,
    /// The ports were reserved for a preset path.
    #[named("stopped:preset")]
    Preset,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum EventKind {
    /// A flit entered the router of its source.
    Injected,
    /// It was granted these outputs (bits in the order E, W, N, S, L), and will leave by them.
    Granted {
        /// A bit each.
        outputs: u8,
    },
    /// It requested a path of so many hops.
    Requested {
        /// 0 to 3 for E, W, N, S.
        output: u8,
        /// As many.
        hops: u8,
    },
    /// It was granted to go from here by an output over so many hops.
    Crossed {
        /// 0 to 3 for E, W, N, S.
        output: u8,
        /// As many.
        hops: u8,
        /// The cycle in which it does.
        crossing: u64,
    },
    /// It will stop here, having come in at this port.
    Stopped {
        /// 0 to 3 for E, W, N, S.
        input: u8,
        /// Why.
        why: Stop,
    },
    /// It will pass, and a copy stay.
    Retained {
        /// 0 to 3 for E, W, N, S.
        input: u8,
    },
    /// A copy, or a response that others follow, was dropped.
    Dropped,
    /// It became part of another response of its flow.
    Merged,
    /// It won the ejection port.
    Arrived,
    /// The output was reserved for this flit, which had been stopped before it came here.
    Idle {
        /// 0 to 3 for E, W, N, S.
        output: u8,
    },
}

/// Something that happened to a flit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Event {
    /// When.
    pub cycle: u64,
    /// Where.
    pub router: u32,
    /// To a flit of which packet: how many were sent before it.
    pub packet: u64,
    /// What.
    pub kind: EventKind,
}
