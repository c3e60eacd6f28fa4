//! Threads as coroutines: an `async` function runs until it needs an access, and goes on with its answer.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// What a core asks of its memory, or tells it; it waits for the answer to each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Answers the word.
    Load {
        /// Of the word.
        address: u64,
    },
    /// The answer says nothing.
    Store {
        /// Of the word.
        address: u64,
        /// What it becomes.
        value: u64,
    },
    /// Atomically; answers what the word was.
    Swap {
        /// Of the word.
        address: u64,
        /// What it becomes.
        value: u64,
    },
    /// Atomically, modulo 2^64; answers what the word was.
    FetchAdd {
        /// Of the word.
        address: u64,
        /// What is added.
        value: u64,
    },
    /// Atomically; answers what the word was.
    CompareSwap {
        /// Of the word.
        address: u64,
        /// It is changed only if it is this.
        expected: u64,
        /// What it becomes.
        value: u64,
    },
    /// Spins on a cached copy: waits until the word is not `value`, answers the word.
    SpinWhile {
        /// Of the word.
        address: u64,
        /// What it waits for to change.
        value: u64,
    },
    /// Works on registers for so many cycles, an instruction each.
    Compute {
        /// How many.
        cycles: u64,
    },
    /// The region of interest begins: one core says so when all have come to a barrier, before they go on.
    Begin,
    /// The region of interest ends, likewise.
    End,
}

/// What passes between a thread and whoever resumes it.
#[derive(Default)]
struct Port {
    request: Cell<Option<Access>>,
    answer: Cell<u64>,
    /// Cycles of work not yet asked for.
    owed: Cell<u64>,
}

/// What a core executes.
pub struct Thread {
    body: Pin<Box<dyn Future<Output = ()>>>,
    port: Rc<Port>,
    finished: bool,
}

impl Thread {
    /// A thread on core `id` of `cores`.
    pub fn new<F>(id: u32, cores: u32, body: impl FnOnce(Core) -> F) -> Thread
    where
        F: Future<Output = ()> + 'static,
    {
        let port = Rc::new(Port::default());
        let core = Core { id, cores, port: Rc::clone(&port) };
        Thread { body: Box::pin(body(core)), port, finished: false }
    }

    /// Goes on with the answer to the access before, up to the next one; `None` once it has finished. The
    /// answer given first is not looked at.
    ///
    /// # Panics
    /// When the thread awaits something else than an access.
    pub fn resume(&mut self, answer: u64) -> Option<Access> {
        if self.finished {
            return None;
        }
        self.port.answer.set(answer);
        let mut context = Context::from_waker(Waker::noop());
        if self.body.as_mut().poll(&mut context).is_pending() {
            return Some(
                self.port.request.take().expect("threads await accesses and nothing else"),
            );
        }
        self.finished = true;
        let cycles = self.port.owed.take();
        (cycles > 0).then_some(Access::Compute { cycles })
    }
}

/// The core that a thread runs on, for the thread.
pub struct Core {
    id: u32,
    cores: u32,
    port: Rc<Port>,
}

impl Core {
    /// Which one, from 0.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// How many there are.
    #[must_use]
    pub fn cores(&self) -> u32 {
        self.cores
    }

    /// The part of `0..length` that is this core's: consecutive, and as long as any other's or one more.
    #[must_use]
    pub fn share(&self, length: usize) -> std::ops::Range<usize> {
        let (id, cores) = (self.id as usize, self.cores as usize);
        id * length / cores..(id + 1) * length / cores
    }

    /// Works on registers for so many instructions, of a cycle each; asked for with the next access.
    pub fn compute(&self, instructions: u64) {
        self.port.owed.set(self.port.owed.get() + instructions);
    }

    /// The word.
    pub async fn load(&self, address: u64) -> u64 {
        self.ask(Access::Load { address }).await
    }

    /// The word as a number.
    pub async fn load_f64(&self, address: u64) -> f64 {
        f64::from_bits(self.load(address).await)
    }

    /// Changes the word.
    pub async fn store(&self, address: u64, value: u64) {
        self.ask(Access::Store { address, value }).await;
    }

    /// Changes the word to a number.
    pub async fn store_f64(&self, address: u64, value: f64) {
        self.store(address, value.to_bits()).await;
    }

    /// Changes the word; what it was.
    pub async fn swap(&self, address: u64, value: u64) -> u64 {
        self.ask(Access::Swap { address, value }).await
    }

    /// Adds to the word; what it was.
    pub async fn fetch_add(&self, address: u64, value: u64) -> u64 {
        self.ask(Access::FetchAdd { address, value }).await
    }

    /// Changes the word if it is `expected`; what it was.
    pub async fn compare_swap(&self, address: u64, expected: u64, value: u64) -> u64 {
        self.ask(Access::CompareSwap { address, expected, value }).await
    }

    /// Waits until the word is not `value`; what it is.
    pub async fn spin_while(&self, address: u64, value: u64) -> u64 {
        self.ask(Access::SpinWhile { address, value }).await
    }

    /// Says that the region of interest begins.
    pub async fn begin(&self) {
        self.ask(Access::Begin).await;
    }

    /// Says that the region of interest ends.
    pub async fn end(&self) {
        self.ask(Access::End).await;
    }

    fn ask(&self, access: Access) -> Asked<'_> {
        Asked { port: &self.port, access: Some(access) }
    }
}

/// An access that is awaited: work that is owed is asked for first, then the access, then its answer read.
struct Asked<'a> {
    port: &'a Port,
    access: Option<Access>,
}

impl Future for Asked<'_> {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u64> {
        let Some(access) = self.access else { return Poll::Ready(self.port.answer.get()) };
        let cycles = self.port.owed.take();
        if cycles > 0 {
            self.port.request.set(Some(Access::Compute { cycles }));
        } else {
            self.access = None;
            self.port.request.set(Some(access));
        }
        Poll::Pending
    }
}
