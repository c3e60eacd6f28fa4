//! Who sends packets to whom, and when.
