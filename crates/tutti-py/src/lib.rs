//! Python bindings of the core: conversion and errors, no physics.
//!
//! One file per stage of the core that Python sees; `errors` maps the errors of each stage to a
//! Python class. Everything appears flat in the one module `tutti._core`, whose stub is
//! `_core.pyi`.

mod algorithm;
mod bypass;
mod chakra;
mod coherence;
mod coherence_result;
mod endpoint;
mod energy;
mod engine;
mod errors;
mod experts;
mod fabric_settings;
mod flit_result;
mod measure;
mod network;
mod noc;
mod noc_registry;
mod parameters;
mod perfetto;
mod platform;
mod run;
mod schedule;
mod schedule_builder;
mod search;
mod smart;
mod smart_measure;
mod smart_result;
mod step_bound;
mod step_fabric;
mod threads;
mod topology;
mod trace;
mod training;
mod training_case;
mod training_layer;
mod training_record;
mod transfer;
mod units;

use pyo3::prelude::*;

/// The compiled core of tutti: use it through the package `tutti`.
#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::algorithm::{
        Algorithm, Stage, algorithms, build_blocks, build_schedule, critical_path,
    };
    #[pymodule_export]
    use crate::bypass::{BypassConfiguration, BypassLink, BypassMesh, BypassPort};
    #[pymodule_export]
    use crate::chakra::{ChakraNodes, read_chakra};
    #[pymodule_export]
    use crate::coherence::{CoherenceCase, CoherenceTrace, coherence_kernels};
    #[pymodule_export]
    use crate::coherence_result::{CoherenceMean, CoherenceResult, FlowResult, MissResult};
    #[pymodule_export]
    use crate::endpoint::{Endpoint, EndpointServer, Scratchpad, ServerVisit};
    #[pymodule_export]
    use crate::energy::{
        Bounded, ComponentEnergy, EnergyMesh, EventCounts, NetworkHardware, RouterHardware,
        Technology, TechnologyConstant, TechnologyEntry, technologies,
    };
    #[pymodule_export]
    use crate::engine::{
        Case, LowerBound, algbw, busbw, simulate, simulate_fastest, simulate_many,
    };
    #[pymodule_export]
    use crate::errors::error_kinds;
    #[pymodule_export]
    use crate::experts::sample_experts;
    #[pymodule_export]
    use crate::fabric_settings::FabricSettings;
    #[pymodule_export]
    use crate::flit_result::{FlitClassResult, FlitResult, FlitRoundTrips, FlitStalls};
    #[pymodule_export]
    use crate::measure::measure;
    #[pymodule_export]
    use crate::network::{
        BackgroundFlow, Conditions, Detours, FlowLevel, LinkLoad, Model, Packets, b_opt,
        time_of_uniform_stages,
    };
    #[pymodule_export]
    use crate::noc::{
        ChannelEnd, FlitCase, FlitChannel, FlitLoad, FlitNetwork, FlitPlan, ThrottledLink,
    };
    #[pymodule_export]
    use crate::noc_registry::{FlitRegistryEntry, flit_allocators, flit_patterns, flit_routings};
    #[pymodule_export]
    use crate::parameters::{ParameterEntry, ParameterGroup, parameter_groups};
    #[pymodule_export]
    use crate::perfetto::{run_trace, track_events};
    #[pymodule_export]
    use crate::platform::{Contention, Flits, MeshFlits, Platform};
    #[pymodule_export]
    use crate::run::{CriticalPath, Hop, Run, activities};
    #[pymodule_export]
    use crate::schedule::{Op, Schedule, Verification, busbw_factor, collectives};
    #[pymodule_export]
    use crate::schedule_builder::ScheduleBuilder;
    #[pymodule_export]
    use crate::search::{ScheduleSearch, schedules_of};
    #[pymodule_export]
    use crate::smart::{SmartMesh, smart_designs};
    #[pymodule_export]
    use crate::smart_measure::{SmartCase, half_width};
    #[pymodule_export]
    use crate::smart_result::{SmartLoadResult, SmartResult};
    #[pymodule_export]
    use crate::step_bound::{EndpointCosts, StepBound, step_bound};
    #[pymodule_export]
    use crate::step_fabric::{StepFabric, TorusRing};
    #[pymodule_export]
    use crate::topology::{
        Routes, Topology, TopologyFacts, TopologyFamily, TopologyLink, Wire, format_length,
        parse_length, topology_families, topology_link_classes,
    };
    #[pymodule_export]
    use crate::trace::{TraceGraph, lower_schedule, read_goal, simulate_trace};
    #[pymodule_export]
    use crate::training::{
        IssuedTransfer, ProgramTask, TrainingProgram, collective_limit, roofline_time,
        systolic_cycles,
    };
    #[pymodule_export]
    use crate::training_case::{TrainingCase, simulate_steps, simulate_training};
    #[pymodule_export]
    use crate::training_layer::{EmbeddingTables, PipelineStage, TrainingLayer};
    #[pymodule_export]
    use crate::training_record::{
        Breakdown, BusyWindows, CollectiveLimit, GraphLinkUse, ServerUse, Stall, TaskSpan,
        TrainingRecord,
    };
    #[pymodule_export]
    use crate::transfer::{Message, TraceTask, Transfer};
    #[pymodule_export]
    use crate::units::{
        TimePerByte, format_frequency, format_op_rate, format_size, format_time, parse_frequency,
        parse_op_rate, parse_size, parse_time, time_of_cycles,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        // The stub lists the exports; `__all__` would duplicate it.
        module.delattr("__all__")
    }
}
