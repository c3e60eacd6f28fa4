//! Who of those that ask gets what: matchings of inputs to outputs.
