//! The launch in lower bounds: every rank starts its first step after it.

use super::Bound;
use tutti_units::Time;

impl Bound {
    /// The bound of a collective that every rank starts after `launch`: each part is longer by it.
    #[must_use]
    pub fn after(self, launch: Time) -> Bound {
        Bound {
            latency: launch + self.latency,
            bandwidth: launch + self.bandwidth,
            links: launch + self.links,
            folding: launch + self.folding,
        }
    }
}
