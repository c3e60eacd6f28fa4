//! The events of flits.

/// Why a flit stopped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, tutti_units::Named)]
pub enum Stop {
    /// Its path ended: the turn, the destination, or HPC_max hops.
    #[named("stopped:end")]
    End,
    /// A flit buffered here, or of its input port, had priority.
    #[named("stopped:local")]
    Local,
    /// A flit from farther away had priority, or was expected to.
    #[named("stopped:farther")]
    Farther,
    /// Another passing flit had priority, or was expected to.
    #[named("stopped:passing")]
    Passing,
    /// The next router had no free buffer.
    #[named("stopped:no_buffer")]
    NoBuffer,
    /// Earlier flits of its packet were buffered here.
    #[named("stopped:order")]
    Order,
    /// The router waited for other responses of the flow.
    #[named("stopped:responses")]
    Responses,
    /// The ports were reserved for a preset path.
    #[named("stopped:preset")]
    Preset,
}

/// An event of a flit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum EventKind {
    /// A flit entered the router of its source.
    Injected,
    /// It was granted these outputs (bits in the order E, W, N, S, L).
    Granted {
        /// One bit per output.
        outputs: u8,
    },
    /// It requested a path (SSR).
    Requested {
        /// 0 to 3 for E, W, N, S.
        output: u8,
        /// The length of the path.
        hops: u8,
    },
    /// It was granted a path along an output.
    Crossed {
        /// 0 to 3 for E, W, N, S.
        output: u8,
        /// The length of the path.
        hops: u8,
        /// The cycle in which it crosses the links.
        crossing: u64,
    },
    /// Its path turns here, at a router that it passes.
    Turned {
        /// 0 to 3 for E, W, N, S.
        output: u8,
        /// The length of the path from here.
        hops: u8,
        /// The cycle in which it crosses the links.
        crossing: u64,
    },
    /// It will stop here, at this input port.
    Stopped {
        /// 0 to 3 for E, W, N, S.
        input: u8,
        /// The reason.
        why: Stop,
    },
    /// It will bypass, and a copy is retained.
    Retained {
        /// 0 to 3 for E, W, N, S.
        input: u8,
    },
    /// A copy, or a response that others follow, was dropped.
    Dropped,
    /// It was merged into another response of its flow.
    Merged,
    /// It won the ejection port.
    Arrived,
    /// The output was reserved for this flit, which stopped earlier.
    Idle {
        /// 0 to 3 for E, W, N, S.
        output: u8,
    },
}

/// An event of a flit, with time and place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Event {
    /// Its cycle.
    pub cycle: u64,
    /// Its router.
    pub router: u32,
    /// The packet of the flit: the number of packets sent before it.
    pub packet: u64,
    /// The event.
    pub kind: EventKind,
}
