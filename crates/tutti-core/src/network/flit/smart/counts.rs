//! What happened in a fabric, counted: what energy and statistics are made of.

/// Numbers of events since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Flits that NICs have injected.
    pub injected: u64,
    /// Flits that NICs have taken.
    pub ejected: u64,
    /// Flits written into a buffer: injected, stopped, or retained on passing.
    pub buffer_writes: u64,
    /// Flits read from a buffer: once per cycle in which it goes to outputs, however many.
    pub buffer_reads: u64,
    /// Passages through a crossbar, by the number of outputs reached at once, 1 to 5; bypasses are to one.
    pub crossings: [u64; 5],
    /// Of these, passages of flits that were not latched, or of which only a copy was retained.
    pub bypasses: u64,
    /// Links crossed by flits, one hop each; to and from NICs not counted.
    pub link_hops: u64,
    /// Arbitrations at inputs: one for each input port and cycle in which a flit asked.
    pub input_arbitrations: u64,
    /// Arbitrations at outputs: one for each output port and cycle in which a flit asked.
    pub output_arbitrations: u64,
    /// Requests for paths (SSRs), of packets other than answers with an id.
    pub requests: u64,
    /// Links along which these went: each is heard for HPC_max hops, or to the edge.
    pub request_hops: u64,
    /// Requests for paths of answers with an id.
    pub answer_requests: u64,
    /// Links along which these went.
    pub answer_request_hops: u64,
    /// Looks into tables of reductions, or operands added on passing.
    pub table_reads: u64,
    /// Answers that were dropped or merged into another.
    pub merged: u64,
    /// Answers that can be combined, written into a buffer.
    pub answers_buffered: u64,
    /// Entries of tables of reductions in use, summed over routers and cycles.
    pub table_entries: u64,
    /// Distinct flows with an answer buffered, summed over routers and cycles.
    pub buffered_flows: u64,
    /// Cycles run, those passed over too.
    pub cycles: u64,
}
