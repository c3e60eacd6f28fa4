//! Tests across the layers, in one binary: linking a binary per file takes minutes.

mod anomalies;
mod closed_form;
mod conservation;
mod failures;
mod fast_against_slow;
mod first_principles;
mod flit_bypass;
mod flit_schedules;
mod flows;
mod forest;
mod lower_bound;
mod packets;
mod packets_fast_slow;
mod random_graphs;
mod repeated;
mod rounds;
mod search_optimum;
mod smart_carrier;
mod smart_in_network;
mod validation_loggopsim;
