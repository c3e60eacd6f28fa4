//! Event counters of a fabric, for energy and statistics.

/// Lists the counters once, and generates the struct, differences and names. `crossings` is the
/// only array.
macro_rules! counters {
    ($($(#[$doc_before:meta])* $before:ident,)* [] $($(#[$doc_after:meta])* $after:ident,)*) => {
        /// Events since the start.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Counts {
            $($(#[$doc_before])* pub $before: u64,)*
            /// Passages through a crossbar, by the number of outputs reached at once, 1 to 5;
            /// bypasses are to one.
            pub crossings: [u64; 5],
            $($(#[$doc_after])* pub $after: u64,)*
        }

        impl Counts {
            /// The events since an earlier count.
            #[must_use]
            pub fn since(&self, earlier: &Counts) -> Counts {
                let mut crossings = self.crossings;
                crossings.iter_mut().zip(earlier.crossings).for_each(|(now, then)| *now -= then);
                Counts {
                    $($before: self.$before - earlier.$before,)*
                    crossings,
                    $($after: self.$after - earlier.$after,)*
                }
            }

            /// All counters but `crossings`, by name.
            pub fn scalars(&mut self) -> Vec<(&'static str, &mut u64)> {
                vec![
                    $((stringify!($before), &mut self.$before),)*
                    $((stringify!($after), &mut self.$after),)*
                ]
            }
        }
    };
}

counters! {
    /// Flits that NICs have injected.
    injected,
    /// Flits that NICs have received.
    ejected,
    /// Flits written into a buffer: injected, stopped, or retained on passing.
    buffer_writes,
    /// Flits read from a buffer: once per cycle in which it goes to outputs, however many.
    buffer_reads,
    []
    /// Passages without latching, or with only a copy retained.
    bypasses,
    /// Links crossed by flits, one hop each; to and from NICs not counted.
    link_hops,
    /// Arbitrations at inputs: one for each input port and cycle in which a flit had an open
    /// output.
    input_arbitrations,
    /// Arbitrations at outputs: one for each output port and cycle in which it was open to a
    /// nominee.
    output_arbitrations,
    /// Requests for paths (SSRs), of packets other than responses with an id.
    requests,
    /// Links that these requests crossed: each reaches HPC_max hops, or the edge.
    request_hops,
    /// Requests for paths of responses with an id.
    response_requests,
    /// Links that these requests crossed.
    response_request_hops,
    /// Combinable responses that came to a router or bypassed it: each looks up its table, or its
    /// flow among the buffered flits.
    table_reads,
    /// Responses that were dropped or merged into another.
    merged,
    /// Combinable responses written into a buffer.
    responses_buffered,
    /// Entries of tables of reductions in use, summed over routers and cycles.
    table_entries,
    /// Combinable responses in buffers, summed over routers and cycles. They are of distinct flows,
    /// unless [`Merge::Buffered`](super::Merge::Buffered) lets several of a flow stay.
    buffered_flows,
    /// Cycles simulated, including skipped ones.
    cycles,
}
