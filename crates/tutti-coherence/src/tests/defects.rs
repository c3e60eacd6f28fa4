//! What is broken, on purpose or by its user, and what is said about it.

use super::super::Defect;
use super::*;
use tutti_noc::FlitError;
use tutti_noc::smart::{Arrival, Counts, Flow, FlowId, Message};

/// What is said about a protocol with a defect when cores read and write a few words.
fn verdict(protocol: Protocol, defect: Defect) -> String {
    let mut settings = SystemSettings::new(2, 2, protocol);
    (settings.defect, settings.check) = (Some(defect), true);
    let accesses = program(4, 64, |core| async move {
        let mut lot = Lot(u64::from(core.id()));
        for _ in 0..200 {
            let address = 8 * lot.below(64);
            core.load(address).await;
            core.fetch_add(8 * lot.below(64), 1).await;
            core.compute(lot.below(30));
        }
    });
    match run(&settings, accesses) {
        Err(error @ CoherenceError::Incoherent { .. }) => error.to_string(),
        other => panic!("{defect:?} is not seen: {other:?}"),
    }
}

#[test]
fn an_invalidation_that_is_ignored_is_seen() {
    let said = verdict(Protocol::Ht, Defect::IgnoredInvalidation);
    assert!(said.contains("may write while others have copies"), "{said}");
    let said = verdict(Protocol::Tc, Defect::IgnoredInvalidation);
    assert!(said.contains("tokens, and not 5"), "{said}");
}

#[test]
fn an_answer_sent_before_the_copy_is_gone_is_seen() {
    let said = verdict(Protocol::Ht, Defect::EarlyAnswer);
    assert!(said.contains("may write while others have copies"), "{said}");
}

#[test]
fn a_home_that_does_not_block_is_seen() {
    let said = verdict(Protocol::Ht, Defect::UnblockedHome);
    assert!(said.contains("may write") || said.contains("has a copy"), "{said}");
}

#[test]
fn a_token_that_is_lost_is_seen() {
    let said = verdict(Protocol::Tc, Defect::LostToken);
    assert!(said.contains("there are 4 tokens, and not 5"), "{said}");
}

#[test]
fn an_owner_token_that_is_copied_is_seen() {
    let said = verdict(Protocol::Tc, Defect::CopiedOwner);
    assert!(said.contains("there are 2 owner tokens, and not one"), "{said}");
}

#[test]
fn a_writer_without_all_tokens_is_seen() {
    let said = verdict(Protocol::Tc, Defect::EarlyWrite);
    assert!(said.contains("may write with 4 of 5 tokens"), "{said}");
}

/// A fabric that loses what arrives at a moment.
struct Lossy {
    inner: Box<dyn Fabric>,
    /// How many arrivals until the one that is lost.
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
fn a_fabric_that_loses_a_packet_is_seen_and_who_waits_is_named() {
    for settings in chips(2, 2) {
        let mut seen = 0;
        for left in 0..40 {
            let adds = program(4, 1, |core| async move {
                for _ in 0..3 {
                    core.fetch_add(0, 1).await;
                }
            });
            let inner = connected(2, 2, &settings);
            let said = match run_on(&settings, adds, Box::new(Lossy { inner, left })) {
                Ok(_) => continue,
                Err(error) => error.to_string(),
            };
            let known = ["waits to write 0x0", "tokens, and not", "were missing", "never"];
            assert!(known.iter().any(|known| said.contains(known)), "{said}");
            seen += 1;
        }
        assert!(seen > 20, "only {seen} of 40 losses are seen: {settings:?}");
    }
}

#[test]
fn threads_that_race_end_with_what_is_wrong() {
    let settings = SystemSettings::new(2, 2, Protocol::Ht);
    let mut races = program(4, 1, |core| async move {
        for _ in 0..20 {
            let value = core.load(0).await;
            core.store(0, value + 1).await;
        }
    });
    races.check = Box::new(|memory| match memory[0] {
        80 => Ok(()),
        count => Err(format!("the count is {count}, and 80 were added")),
    });
    let said = run(&settings, races).unwrap_err().to_string();
    assert!(said.contains("and 80 were added") && said.contains("threads race"), "{said}");
}

#[test]
fn threads_that_wait_for_each_other_end_with_who_waits_for_what() {
    for settings in chips(2, 2) {
        let waits = program(2, 16, |core| async move {
            let (own, other) = (64 * u64::from(core.id()), 64 * u64::from(1 - core.id()));
            core.spin_while(other, 0).await;
            core.store(own, 1).await;
        });
        let said = run(&settings, waits).unwrap_err().to_string();
        assert!(said.contains("no core can go on: core 0 spins while 0x40 is 0, core 1"), "{said}");
    }
}

#[test]
fn a_program_without_end_is_given_up() {
    let mut settings = SystemSettings::new(2, 2, Protocol::Tc);
    settings.limit = 10_000;
    let polls = program(4, 1, |core| async move { while core.load(0).await == 0 {} });
    let said = run(&settings, polls).unwrap_err().to_string();
    assert!(said.starts_with("not finished after 10000 cycles"), "{said}");
}

#[test]
fn a_run_stops_when_asked_to() {
    let settings = SystemSettings::new(2, 2, Protocol::Ht);
    let polls = program(4, 1, |core| async move { while core.load(0).await == 0 {} });
    let system = System::new(&settings, polls, connected(2, 2, &settings)).unwrap();
    let error = system.run(&AtomicBool::new(true)).unwrap_err();
    assert!(matches!(error, CoherenceError::Stopped { .. }), "{error}");
}

#[test]
fn accesses_outside_of_the_memory_are_named() {
    let settings = SystemSettings::new(2, 2, Protocol::Ht);
    for (address, end) in [(8, 8), (4, 8), (u64::MAX, 8)] {
        let wrong = program(1, 1, move |core| async move { _ = core.load(address).await });
        let said = run(&settings, wrong).unwrap_err().to_string();
        let expected =
            format!("core 0 accesses {address:#x}: expected a multiple of 8 below {end:#x}");
        assert!(said.ends_with(&expected), "{said}");
    }
}

#[test]
fn a_region_that_has_no_end_or_no_beginning_is_named() {
    let settings = SystemSettings::new(2, 2, Protocol::Ht);
    let endless = program(1, 1, |core| async move { core.begin().await });
    assert!(run(&settings, endless).unwrap_err().to_string().contains("nobody has ended"));
    let unbegun = program(1, 1, |core| async move { core.end().await });
    assert!(run(&settings, unbegun).unwrap_err().to_string().contains("has not begun"));
}

#[test]
fn settings_that_cannot_be_are_named() {
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
        let said = run_on(&settings, nothing, connected(2, 2, &good)).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
    let many = run(&good, program(5, 1, |_| async {})).unwrap_err().to_string();
    assert!(many.contains("5 threads and the fabric 4 nodes"), "{many}");
}

#[test]
fn a_fabric_without_the_classes_is_refused_with_the_reason() {
    let settings = SystemSettings::new(2, 2, Protocol::Ht);
    let fabric = Box::new(FullyConnected::new(&Settings::new(2, 2), false).unwrap());
    let reads = program(1, 1, |core| async move { _ = core.load(0).await });
    let said = run_on(&settings, reads, fabric).unwrap_err().to_string();
    assert!(said.contains("SystemSettings::fit"), "{said}");
}
