//! Compares kernels with their serial programs for several numbers of cores, inputs and
//! interleavings.

use super::super::{InterleaveError, Program, Tally, interleave};
use super::*;

fn run(kernel: &dyn Kernel, cores: u32, scale: Scale, seed: u64, order: u64) -> Tally {
    let program = kernel.program(cores, scale, seed).unwrap();
    interleave(program, order, 1 << 28).unwrap_or_else(|error| {
        panic!("{} on {cores} cores, seed {seed}, order {order}: {error}", kernel.name())
    })
}

#[test]
fn every_kernel_matches_its_serial_program() {
    for kernel in REGISTRY {
        for cores in [1, 2, 3, 8, 16] {
            if kernel.program(cores, Scale::Tiny, 0).is_err() {
                assert_eq!((kernel.name(), cores), ("lu_like", 16));
                continue;
            }
            for order in 0..12 {
                let tally = run(*kernel, cores, Scale::Tiny, order % 3, order);
                assert_eq!(tally.region_marks, [1, 1], "{}", kernel.name());
                assert!(tally.region > 1000, "{}", kernel.name());
            }
        }
    }
}

#[test]
fn other_input_has_another_result() {
    for kernel in REGISTRY {
        let [one, other] = [1, 2].map(|seed| run(*kernel, 2, Scale::Tiny, seed, 0).memory);
        assert_ne!(one, other, "{}", kernel.name());
        assert_eq!(one, run(*kernel, 2, Scale::Tiny, 1, 0).memory, "{}", kernel.name());
    }
}

#[test]
fn the_default_scale_has_millions_of_instructions() {
    for kernel in REGISTRY {
        // On one core no access waits.
        let tally = run(*kernel, 1, Scale::Small, 1, 0);
        assert!(
            (1_000_000..6_000_000).contains(&tally.region),
            "{}: {}",
            kernel.name(),
            tally.region
        );
    }
}

/// Returns how many of 40 interleavings the check rejects.
fn rejected(kernel: &dyn Kernel) -> usize {
    let wrong = |&order: &u64| {
        let program = kernel.program(8, Scale::Tiny, 1).unwrap();
        matches!(interleave(program, order, 1 << 24), Err(InterleaveError::Wrong { .. }))
    };
    (0..40).filter(wrong).count()
}

#[test]
fn the_check_rejects_kernels_without_locks() {
    assert_eq!(rejected(&water::WaterLike { locked: true }), 0);
    assert!(rejected(&water::WaterLike { locked: false }) > 10);
    assert_eq!(rejected(&canneal::CannealLike { locked: true }), 0);
    assert!(rejected(&canneal::CannealLike { locked: false }) > 0);
}

#[test]
fn the_check_rejects_wrong_words() {
    for kernel in REGISTRY {
        let Program { threads, memory, check } = kernel.program(2, Scale::Tiny, 1).unwrap();
        let right = Program { threads, memory, check: Box::new(|_| Ok(())) };
        let right = interleave(right, 0, 1 << 24).unwrap().memory;
        assert_eq!(check(&right), Ok(()));
        let rejected = (0..right.len()).filter(|&word| {
            let mut wrong = right.clone();
            wrong[word] ^= 1 << 40;
            check(&wrong).is_err()
        });
        assert!(rejected.count() >= 16, "{}", kernel.name());
    }
}

#[test]
fn an_invalid_number_of_cores_is_rejected() {
    for kernel in REGISTRY {
        for cores in [0, 5000] {
            let error = kernel.program(cores, Scale::Tiny, 0).err().unwrap().to_string();
            let expected =
                format!("{} at scale tiny cannot be divided among {cores} cores", kernel.name());
            assert!(error.starts_with(&expected), "{error}");
        }
    }
    let error = fft::FftLike.program(17, Scale::Tiny, 0).err().unwrap().to_string();
    assert!(error.ends_with("expected 1 to 16, one per row of its matrix"), "{error}");
    assert!(ocean::OceanLike.program(32, Scale::Tiny, 0).is_ok());
    assert!(ocean::OceanLike.program(37, Scale::Tiny, 0).is_err());
}

#[test]
fn kernels_are_found_by_name() {
    for kernel in REGISTRY {
        assert_eq!(named(kernel.name()).unwrap().name(), kernel.name());
        assert!(kernel.name().ends_with("_like"));
    }
    let error = named("fft").err().unwrap().to_string();
    assert!(
        error.starts_with("there is no kernel `fft`: expected one of fft_like, lu_like"),
        "{error}"
    );
}
