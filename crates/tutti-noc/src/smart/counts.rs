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
    /// Arbitrations at inputs: one for each input port and cycle in which a flit had an open output.
    pub input_arbitrations: u64,
    /// Arbitrations at outputs: one for each output port and cycle in which it was open to a nominee.
    pub output_arbitrations: u64,
    /// Requests for paths (SSRs), of packets other than answers with an id.
    pub requests: u64,
    /// Links along which these went: each is heard for HPC_max hops, or to the edge.
    pub request_hops: u64,
    /// Requests for paths of answers with an id.
    pub answer_requests: u64,
    /// Links along which these went.
    pub answer_request_hops: u64,
    /// Answers that can be combined and came to a router, or passed it: each is a look into its table, or for
    /// its flow among what is buffered.
    pub table_reads: u64,
    /// Answers that were dropped or merged into another.
    pub merged: u64,
    /// Answers that can be combined, written into a buffer.
    pub answers_buffered: u64,
    /// Entries of tables of reductions in use, summed over routers and cycles.
    pub table_entries: u64,
    /// Distinct flows with an answer buffered that can be combined, summed over routers and cycles.
    pub buffered_flows: u64,
    /// Cycles run, those passed over too.
    pub cycles: u64,
}

impl Counts {
    /// What has happened since these were the counts.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        let mut crossings = self.crossings;
        crossings.iter_mut().zip(earlier.crossings).for_each(|(now, before)| *now -= before);
        Counts {
            injected: self.injected - earlier.injected,
            ejected: self.ejected - earlier.ejected,
            buffer_writes: self.buffer_writes - earlier.buffer_writes,
            buffer_reads: self.buffer_reads - earlier.buffer_reads,
            crossings,
            bypasses: self.bypasses - earlier.bypasses,
            link_hops: self.link_hops - earlier.link_hops,
            input_arbitrations: self.input_arbitrations - earlier.input_arbitrations,
            output_arbitrations: self.output_arbitrations - earlier.output_arbitrations,
            requests: self.requests - earlier.requests,
            request_hops: self.request_hops - earlier.request_hops,
            answer_requests: self.answer_requests - earlier.answer_requests,
            answer_request_hops: self.answer_request_hops - earlier.answer_request_hops,
            table_reads: self.table_reads - earlier.table_reads,
            merged: self.merged - earlier.merged,
            answers_buffered: self.answers_buffered - earlier.answers_buffered,
            table_entries: self.table_entries - earlier.table_entries,
            buffered_flows: self.buffered_flows - earlier.buffered_flows,
            cycles: self.cycles - earlier.cycles,
        }
    }
}
