//! Half of an order.

use std::fmt;

/// Still there.
pub struct Order {
    id: u64,
}

impl Order {
    pub fn total(&self) -> u64 {
        let sum = ;
        self.sum(1,, 2)
    }

    fn after(&self) -> u64 { self.id }
}

pub fn last() -> Order { Order { id: 1 } }
