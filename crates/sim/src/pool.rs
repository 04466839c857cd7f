//! What threads count in: as many as work at a time, however many shares the work has.

use std::sync::{Mutex, PoisonError};

/// Workers, made when there is none to take.
#[derive(Debug)]
pub struct Pool<T, F> {
    idle: Mutex<Vec<T>>,
    make: F,
}

impl<T, F: Fn() -> T> Pool<T, F> {
    /// No worker yet; `make` makes one.
    pub const fn new(make: F) -> Self {
        Self {
            idle: Mutex::new(Vec::new()),
            make,
        }
    }

    /// Does `work` with a worker that nobody else has meanwhile.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let mut worker = idle.unwrap_or_else(&self.make);
        let result = work(&mut worker);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(worker);
        result
    }

    /// All workers there were, in no order.
    pub fn into_all(self) -> impl Iterator<Item = T> {
        let idle = self.idle.into_inner();
        idle.unwrap_or_else(PoisonError::into_inner).into_iter()
    }
}
