//! Ids as newtypes. Each counts from zero and indexes a vector.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $short:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index into a vector.
            #[inline]
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($short, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A member of a communicator, `0..n`.
    RankId, "rank "
);
id!(
    /// A vertex of the topology graph: NPU, switch or router.
    VertexId, "vertex "
);
id!(
    /// A unidirectional link of the topology graph.
    LinkId, "link "
);
