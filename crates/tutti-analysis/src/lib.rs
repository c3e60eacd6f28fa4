//! What can be known of a schedule without running it, and the search that uses it: closed forms of
//! completion times, lower bounds that no schedule can beat, and the fastest schedule of a family.
#![deny(unsafe_code)]

pub mod bound;
pub mod closed_form;
pub mod search;
