//! The example program runs, and its answer is that of Python
//! (`tests/collectives/test_rust_example.py`).

#[expect(dead_code, reason = "`main` prints what `simulate` returns")]
#[path = "../examples/simulate_ring.rs"]
mod simulate_ring;

#[test]
fn the_example_has_the_times_of_python() {
    let (time, bound) = simulate_ring::simulate().unwrap();
    assert_eq!((time.ps(), bound.ps()), (105_236_800, 21_560_790));
}
