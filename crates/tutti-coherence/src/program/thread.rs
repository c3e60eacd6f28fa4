//! Threads as coroutines: an `async` function runs up to its next access, and continues with the
//! result.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A request of a thread; the thread waits for the result of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Loads the word.
    Load {
        /// Address of the word.
        address: u64,
    },
    /// Stores the word; returns an unspecified value.
    Store {
        /// Address of the word.
        address: u64,
        /// The new value.
        value: u64,
    },
    /// Swaps atomically; returns the previous word.
    Swap {
        /// Address of the word.
        address: u64,
        /// The new value.
        value: u64,
    },
    /// Adds atomically, modulo 2^64; returns the previous word.
    FetchAdd {
        /// Address of the word.
        address: u64,
        /// The summand.
        value: u64,
    },
    /// Compares and swaps atomically; returns the previous word.
    CompareSwap {
        /// Address of the word.
        address: u64,
        /// The word changes only if it equals this value.
        expected: u64,
        /// The new value.
        value: u64,
    },
    /// Spins on a cached copy until the word is not `value`; returns the word.
    SpinWhile {
        /// Address of the word.
        address: u64,
        /// The value to spin on.
        value: u64,
    },
    /// Computes on registers for a number of cycles, one instruction each.
    Compute {
        /// Number of cycles.
        cycles: u64,
    },
    /// Starts the region of interest. One core issues it when all have arrived at a barrier, before
    /// they continue.
    Begin,
    /// Ends the region of interest, likewise.
    End,
}

/// The channel between a thread and its caller.
#[derive(Default)]
struct Port {
    request: Cell<Option<Access>>,
    value: Cell<u64>,
    /// Cycles of work that have not been requested.
    pending_work: Cell<u64>,
}

/// A thread of a program.
pub struct Thread {
    body: Pin<Box<dyn Future<Output = ()>>>,
    port: Rc<Port>,
    finished: bool,
}

impl Thread {
    /// Returns a thread on core `id` of `cores`.
    pub fn new<F>(id: u32, cores: u32, body: impl FnOnce(Core) -> F) -> Thread
    where
        F: Future<Output = ()> + 'static,
    {
        let port = Rc::new(Port::default());
        let core = Core { id, cores, port: Rc::clone(&port) };
        Thread { body: Box::pin(body(core)), port, finished: false }
    }

    /// Continues with the result of the previous access, up to the next one; returns `None` once
    /// the thread has finished. The first call ignores `value`.
    ///
    /// # Panics
    /// When the thread awaits anything else than an access.
    pub fn resume(&mut self, value: u64) -> Option<Access> {
        if self.finished {
            return None;
        }
        self.port.value.set(value);
        let mut context = Context::from_waker(Waker::noop());
        if self.body.as_mut().poll(&mut context).is_pending() {
            return Some(self.port.request.take().expect("threads await only accesses"));
        }
        self.finished = true;
        let cycles = self.port.pending_work.take();
        (cycles > 0).then_some(Access::Compute { cycles })
    }
}

/// The core of a thread, as the thread's interface.
pub struct Core {
    id: u32,
    cores: u32,
    port: Rc<Port>,
}

impl Core {
    /// Returns the number of the core, from 0.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the number of cores.
    #[must_use]
    pub fn cores(&self) -> u32 {
        self.cores
    }

    /// Returns this core's part of `0..length`: consecutive, with lengths that differ by at most
    /// one among cores.
    #[must_use]
    pub fn share(&self, length: usize) -> std::ops::Range<usize> {
        let (id, cores) = (self.id as usize, self.cores as usize);
        id * length / cores..(id + 1) * length / cores
    }

    /// Computes on registers for a number of instructions, one cycle each; requested with the next
    /// access.
    pub fn compute(&self, instructions: u64) {
        self.port.pending_work.set(self.port.pending_work.get() + instructions);
    }

    /// Loads a word.
    pub async fn load(&self, address: u64) -> u64 {
        self.access(Access::Load { address }).await
    }

    /// Loads a word as a floating-point number.
    pub async fn load_f64(&self, address: u64) -> f64 {
        f64::from_bits(self.load(address).await)
    }

    /// Stores a word.
    pub async fn store(&self, address: u64, value: u64) {
        self.access(Access::Store { address, value }).await;
    }

    /// Stores a floating-point number.
    pub async fn store_f64(&self, address: u64, value: f64) {
        self.store(address, value.to_bits()).await;
    }

    /// Swaps the word; returns the previous word.
    pub async fn swap(&self, address: u64, value: u64) -> u64 {
        self.access(Access::Swap { address, value }).await
    }

    /// Adds to the word; returns the previous word.
    pub async fn fetch_add(&self, address: u64, value: u64) -> u64 {
        self.access(Access::FetchAdd { address, value }).await
    }

    /// Stores `value` if the word is `expected`; returns the previous word.
    pub async fn compare_swap(&self, address: u64, expected: u64, value: u64) -> u64 {
        self.access(Access::CompareSwap { address, expected, value }).await
    }

    /// Waits until the word is not `value`; returns the word.
    pub async fn spin_while(&self, address: u64, value: u64) -> u64 {
        self.access(Access::SpinWhile { address, value }).await
    }

    /// Starts the region of interest.
    pub async fn begin(&self) {
        self.access(Access::Begin).await;
    }

    /// Ends the region of interest.
    pub async fn end(&self) {
        self.access(Access::End).await;
    }

    fn access(&self, access: Access) -> AccessFuture<'_> {
        AccessFuture { port: &self.port, access: Some(access) }
    }
}

/// A future of an access: requests the pending work, then the access, then returns the result.
struct AccessFuture<'a> {
    port: &'a Port,
    access: Option<Access>,
}

impl Future for AccessFuture<'_> {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u64> {
        let Some(access) = self.access else { return Poll::Ready(self.port.value.get()) };
        let cycles = self.port.pending_work.take();
        if cycles > 0 {
            self.port.request.set(Some(Access::Compute { cycles }));
        } else {
            self.access = None;
            self.port.request.set(Some(access));
        }
        Poll::Pending
    }
}
