//! Orders: what a customer asked for, and what became of it.

extern crate serde as sd;

use std::collections::{hash_map::Entry, HashMap};
use std::{fmt, io::{self, Read as Source, *}};

use crate::billing::charge;
pub use self::errors::OrderError as Failure;

mod errors;
/// Prices in cents.
mod prices;

/// The most lines that an order has.
pub const MAX_LINES: usize = 50;

pub(crate) const CURRENCIES: &[&str] = &[
    "EUR",
    "USD",
];

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// How an order is known.
pub type OrderId = u64;

type Handler<T> = Box<dyn Fn(&T) -> io::Result<()>>;

/// An order with its lines.
///
/// It is open until it is paid.
#[derive(Debug, Clone)]
#[serde(rename_all = "camelCase")]
pub struct Order<T: Priced = Line>
where
    T: Clone,
{
    pub id: OrderId,
    lines: Vec<T>, // in order of entry
}

pub struct Marker;

struct Cents(pub i64, Currency);

/// The state of an order, from its entry until its end.
pub enum Status {
    Open,
    Paid { at: Instant },
    Failed(Failure),
}

union Bits {
    whole: u32,
    bytes: [u8; 4],
}

/// What has a price.
pub trait Priced: fmt::Debug {
    const CURRENCY: &'static str;
    type Amount;

    /// The price without tax.
    fn price(&self) -> Self::Amount;

    fn is_free(&self) -> bool {
        self.price().is_zero()
    }
}

impl<T: Priced> Order<T> {
    const START: usize = 1;

    /// A new order without lines.
    #[must_use]
    pub fn new(id: OrderId) -> Self {
        COUNTER.fetch_add(1, Ordering::Relaxed);
        Self { id, lines: Vec::with_capacity(Self::START) }
    }

    // Adds a line, if there is room.
    pub(crate) async fn add<'a, F>(
        &'a mut self,
        line: T,
        check: F,
    ) -> Result<&'a T, Failure>
    where
        F: Fn(&T) -> bool,
    {
        fn local(n: usize) -> bool { n < MAX_LINES }
        if !local(self.lines.len()) || !check(&line) {
            return Err(Failure::full(self.id));
        }
        self.lines.push(line);
        charge::<T>(&self.id).await?;
        self.lines.iter().map(|each| each.price()).sum::<Total>();
        Ok(self.lines.last().unwrap())
    }

    fn state(&self) -> Status { if self.lines.is_empty() { Status::Open } else { prices::state(self) } }
}

impl<T: Priced> fmt::Display for Order<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", total_of(&self.lines), (self.id, 1))
    }
}

impl<'a> From<&'a Order<Line>> for Status {
    fn from(order: &'a Order<Line>) -> Self {
        order.state()
    }
}

/// The sum of prices.
#[macro_export]
macro_rules! sum {
    ($($each:expr),*) => { 0 $(+ cents($each))* };
}

macro_rules! local { () => {}; }

extern "C" {
    fn native_total(lines: *const Cents, count: usize) -> i64;
}

/// Größe einer Bestellung, in Zeilen.
pub unsafe extern "C" fn größe(order: *const Order<Line>) -> usize { (*order).lines.len() }

pub mod report {
    //! Reports on orders.
    //! One a day.

    use super::*;

    pub fn daily(orders: &[Order<Line>]) -> HashMap<OrderId, Status> {
        orders.iter().map(|each| (each.id, Status::from(each))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{local, sum};

    #[test]
    fn a_new_order_is_open() {
        let order = super::Order::new(7);
        assert!(matches!(order.state(), Status::Open));
        assert_eq!(report::daily(&[order]).len(), sum!(1));
    }
}
