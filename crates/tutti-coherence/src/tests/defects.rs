//! Errors of protocols with injected defects, and of user mistakes.

use super::super::Defect;
use super::*;
use tutti_noc::FlitError;
use tutti_noc::smart::{Arrival, Counts, Flow, FlowId, Message};

/// Returns the error of a protocol with a defect when cores access a few words.
fn violation(protocol: Protocol, defect: Defect) -> String {
    let mut settings = SystemSettings::new(2, 2, protocol);
    (settings.defect, settings.check) = (Some(defect), true);
    let accesses = program(4, 64, |core| async move {
        let mut random = Lcg(u64::from(core.id()));
        for _ in 0..200 {
            let address = 8 * random.below(64);
            core.load(address).await;
            core.fetch_add(8 * random.below(64), 1).await;
            core.compute(random.below(30));
        }
    });
    match run(&settings, accesses) {
        Err(error @ CoherenceError::Incoherent { .. }) => error.to_string(),
        other => panic!("{defect:?} is not detected: {other:?}"),
    }
}

#[test]
fn an_ignored_invalidation_is_detected() {
    let error = violation(Protocol::Ht, Defect::IgnoredInvalidation);
    assert!(error.contains("may write while others have copies"), "{error}");
    let error = violation(Protocol::Tc, Defect::IgnoredInvalidation);
    assert!(error.contains("tokens instead of 5"), "{error}");
}

#[test]
fn a_response_before_the_invalidation_is_detected() {
    let error = violation(Protocol::Ht, Defect::EarlyResponse);
    assert!(error.contains("may write while others have copies"), "{error}");
}

#[test]
fn a_home_that_does_not_block_is_detected() {
    let error = violation(Protocol::Ht, Defect::UnblockedHome);
    assert!(error.contains("may write") || error.contains("has a copy"), "{error}");
}

#[test]
fn a_lost_token_is_detected() {
    let error = violation(Protocol::Tc, Defect::LostToken);
    assert!(error.contains("there are 4 tokens instead of 5"), "{error}");
}

#[test]
fn a_duplicated_owner_token_is_detected() {
    let error = violation(Protocol::Tc, Defect::CopiedOwner);
    assert!(error.contains("there are 2 owner tokens instead of one"), "{error}");
}

#[test]
fn a_writer_without_all_tokens_is_detected() {
    let error = violation(Protocol::Tc, Defect::EarlyWrite);
    assert!(error.contains("may write with 4 of 5 tokens"), "{error}");
}

/// A fabric that loses one arrival.
struct Lossy {
    inner: Box<dyn Fabric>,
    /// Number of arrivals before the lost one.
    left: u32,
}

impl Fabric for Lossy {
    fn now(&self) -> u64 {
        self.inner.now()
    }
    fn nodes(&self) -> u32 {
        self.inner.nodes()
    }
    fn open(&mut self, flow: Flow) -> Result<FlowId, FlitError> {
        self.inner.open(flow)
    }
    fn release(&mut self, flow: FlowId) {
        self.inner.release(flow);
    }
    fn send(&mut self, message: Message) -> Result<(), FlitError> {
        self.inner.send(message)
    }
    fn step(&mut self, arrivals: &mut Vec<Arrival>) {
        self.inner.step(arrivals);
        let found = u32::try_from(arrivals.len()).unwrap();
        if found > self.left {
            arrivals.remove(self.left as usize);
            self.left = u32::MAX;
        } else if self.left < u32::MAX {
            self.left -= found;
        }
    }
    fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }
    fn skip_to(&mut self, cycle: u64) {
        self.inner.skip_to(cycle);
    }
    fn counts(&self) -> &Counts {
        self.inner.counts()
    }
    fn stalled_since(&self) -> Option<u64> {
        self.inner.stalled_since()
    }
}

#[test]
fn a_lost_packet_is_detected() {
    for settings in chips(2, 2) {
        let mut detected = 0;
        for left in 0..40 {
            let adds = program(4, 1, |core| async move {
                for _ in 0..3 {
                    core.fetch_add(0, 1).await;
                }
            });
            let inner = connected(2, 2, &settings);
            let error = match run_on(&settings, adds, Box::new(Lossy { inner, left })) {
                Ok(_) => continue,
                Err(error) => error.to_string(),
            };
            let expected = ["waits to write 0x0", "tokens instead of", "were outstanding", "never"];
            assert!(expected.iter().any(|text| error.contains(text)), "{error}");
            detected += 1;
        }
        assert!(detected > 20, "only {detected} of 40 losses are detected: {settings:?}");
    }
}

#[test]
fn races_are_reported_with_the_wrong_result() {
    let settings = SystemSettings::new(2, 2, Protocol::Ht);
    let mut races = program(4, 1, |core| async move {
        for _ in 0..20 {
            let value = core.load(0).await;
            core.store(0, value + 1).await;
        }
    });
    races.check = Box::new(|memory| match memory[0] {
        80 => Ok(()),
        count => Err(format!("the count is {count} instead of 80")),
    });
    let error = run(&settings, races).unwrap_err().to_string();
    assert!(error.contains("instead of 80") && error.contains("threads race"), "{error}");
}

#[test]
fn a_deadlock_is_reported_with_the_waiting_cores() {
    for settings in chips(2, 2) {
        let waits = program(2, 16, |core| async move {
            let (own, other) = (64 * u64::from(core.id()), 64 * u64::from(1 - core.id()));
            core.spin_while(other, 0).await;
            core.store(own, 1).await;
        });
        let error = run(&settings, waits).unwrap_err().to_string();
        assert!(
            error.contains("no core can continue: core 0 spins while 0x40 is 0, core 1"),
            "{error}"
        );
    }
}

#[test]
fn a_program_over_the_limit_fails() {
    let mut settings = SystemSettings::new(2, 2, Protocol::Tc);
    settings.limit = 10_000;
    let polls = program(4, 1, |core| async move { while core.load(0).await == 0 {} });
    let error = run(&settings, polls).unwrap_err().to_string();
    assert!(error.starts_with("not finished after 10000 cycles"), "{error}");
}

#[test]
fn a_run_stops_on_request() {
    let settings = SystemSettings::new(2, 2, Protocol::Ht);
    let polls = program(4, 1, |core| async move { while core.load(0).await == 0 {} });
    let system = System::new(&settings, polls, connected(2, 2, &settings)).unwrap();
    let error = system.run(&AtomicBool::new(true)).unwrap_err();
    assert!(matches!(error, CoherenceError::Stopped { .. }), "{error}");
}

#[test]
fn accesses_outside_the_memory_are_reported() {
    let settings = SystemSettings::new(2, 2, Protocol::Ht);
    for (address, end) in [(8, 8), (4, 8), (u64::MAX, 8)] {
        let wrong = program(1, 1, move |core| async move { _ = core.load(address).await });
        let error = run(&settings, wrong).unwrap_err().to_string();
        let expected =
            format!("core 0 accesses {address:#x}: expected a multiple of 8 below {end:#x}");
        assert!(error.ends_with(&expected), "{error}");
    }
}

#[test]
fn a_region_without_start_or_end_is_reported() {
    let settings = SystemSettings::new(2, 2, Protocol::Ht);
    let endless = program(1, 1, |core| async move { core.begin().await });
    assert!(run(&settings, endless).unwrap_err().to_string().contains("no core has ended"));
    let unstarted = program(1, 1, |core| async move { core.end().await });
    assert!(run(&settings, unstarted).unwrap_err().to_string().contains("has not started"));
}

#[test]
fn invalid_settings_are_reported() {
    let good = SystemSettings::new(2, 2, Protocol::Ht);
    let bad = [
        (SystemSettings { l1_bytes: 100, ..good.clone() }, "`l1_bytes` is 100"),
        (SystemSettings { l2_ways: 0, ..good.clone() }, "`l2_ways` is 0"),
        (SystemSettings { homes: vec![0, 4], ..good.clone() }, "`homes` is 4"),
        (SystemSettings { homes: vec![1, 1], ..good.clone() }, "`homes` is 1"),
        (SystemSettings { homes: vec![], ..good.clone() }, "at least one node"),
        (SystemSettings { l1_cycles: 0, ..good.clone() }, "`l1_cycles` is 0"),
        (SystemSettings { dram_cycles: 1 << 40, ..good.clone() }, "`dram_cycles` is"),
    ];
    for (settings, expected) in bad {
        let nothing = program(1, 1, |_| async {});
        let error = run_on(&settings, nothing, connected(2, 2, &good)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let many = run(&good, program(5, 1, |_| async {})).unwrap_err().to_string();
    assert!(many.contains("5 threads and the fabric 4 nodes"), "{many}");
}

#[test]
fn a_fabric_without_the_message_classes_is_rejected() {
    let settings = SystemSettings::new(2, 2, Protocol::Ht);
    let fabric = Box::new(FullyConnected::new(&Settings::new(2, 2), false).unwrap());
    let reads = program(1, 1, |core| async move { _ = core.load(0).await });
    let error = run_on(&settings, reads, fabric).unwrap_err().to_string();
    assert!(error.contains("SystemSettings::fit"), "{error}");
}
