//! The public handle to the simulator.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
};

use domain::{AccountName, ResourceRef};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    bill::{self, Bill, BillQuery},
    clock::{HeldClock, Now, Pass},
    clouds::Clouds,
    faults::{Fault, Hold, HoldId, HoldView, UnknownHoldError, Verdict},
    fleet::{self, Fleet, FleetError},
    log::Entry,
    market::{Offer, OfferError},
    people::{self, Act, PersonError},
    prices::Prices,
    world::World,
};

/// Both simulated clouds. Clones share the same state.
#[derive(Clone)]
pub struct Simulator {
    now: Now,
    /// Advances the clock; `None` if it cannot be moved.
    pub(crate) pass: Option<Pass>,
    /// How many requests have arrived.
    pub(crate) arrived: Arc<AtomicU64>,
    held: Option<HeldClock>,
    clouds: Arc<Mutex<Clouds>>,
}

impl fmt::Debug for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulator").finish_non_exhaustive()
    }
}

impl Simulator {
    /// Creates clouds that hold `fleet`, on the clock `now`.
    #[must_use]
    pub fn new(fleet: &Fleet, now: Now) -> Self {
        let mut world = World::new(now());
        fleet.admit(&mut world).expect("a fleet was admitted once when it was read");
        Self {
            now,
            pass: None,
            arrived: Arc::default(),
            held: None,
            clouds: Arc::new(Mutex::new(Clouds::new(world))),
        }
    }

    /// Makes the clouds advance their clock themselves while a response is delayed.
    #[must_use]
    pub fn passing(self, pass: Pass) -> Self {
        Self { pass: Some(pass), ..self }
    }

    /// Creates clouds that hold `fleet`, with a clock that `POST /_simulator/clock` can move.
    #[must_use]
    pub fn with_held_clock(fleet: &Fleet, clock: HeldClock) -> Self {
        let simulator = Self::new(fleet, clock.as_now()).passing(clock.as_pass());
        Self { held: Some(clock), ..simulator }
    }

    /// The current simulated time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    #[must_use]
    pub fn held_clock(&self) -> Option<&HeldClock> {
        self.held.as_ref()
    }

    /// The requests so far, in the order in which the clouds handled them: of very many, the newest.
    #[must_use]
    pub fn log(&self) -> Vec<Entry> {
        self.log_after(0)
    }

    /// The requests after the one with this number.
    #[must_use]
    pub fn log_after(&self, sequence: u64) -> Vec<Entry> {
        self.log_page(sequence, usize::MAX)
    }

    /// The oldest of them, at most this many.
    pub(crate) fn log_page(&self, sequence: u64, most: usize) -> Vec<Entry> {
        self.up_to_date().log.after(sequence).take(most).cloned().collect()
    }

    /// The whole state of every resource, by its reference.
    #[must_use]
    pub fn resources(&self) -> BTreeMap<String, Value> {
        self.up_to_date().world.resources()
    }

    /// Every image, with the contents of its disk.
    #[must_use]
    pub fn images(&self) -> Vec<Value> {
        self.up_to_date().world.images()
    }

    /// The whole state of one resource.
    #[must_use]
    pub fn resource(&self, reference: &ResourceRef) -> Option<Value> {
        self.up_to_date().world.resource(reference)
    }

    /// Performs a person's act in the provider's console.
    pub fn person(&self, resource: &ResourceRef, act: Act) -> Result<(), PersonError> {
        people::act(&mut self.up_to_date().world, resource, act)
    }

    /// Deletes an image or a snapshot, protected or not, as a person can in the console. Returns
    /// whether it existed.
    #[must_use]
    pub fn delete_image(&self, account: &AccountName, id: u64) -> bool {
        self.up_to_date().world.delete_image(account, id)
    }

    /// Sets the word that responses have for an image's status, or a snapshot's as an image; `None`
    /// for that of the status itself. Returns whether the image or snapshot exists.
    #[must_use]
    pub fn show_image_as(&self, account: &AccountName, id: u64, word: Option<&str>) -> bool {
        self.up_to_date().world.show_image_as(account, id, word)
    }

    /// Adds the label `key=value` to an image, or the tag `key:value` to a snapshot of a Droplet,
    /// or removes it, as a person would. Returns whether the image or snapshot exists.
    #[must_use]
    pub fn label_image(
        &self,
        account: &AccountName,
        id: u64,
        label: (&str, &str),
        is_given: bool,
    ) -> bool {
        let world = &mut self.up_to_date().world;
        world.label_image(account, id, label, is_given)
    }

    /// Replaces an account's token, as a person would: from now on the previous one is refused.
    pub fn set_token(&self, account: &AccountName, token: &str) {
        self.up_to_date().world.set_token(account, token);
    }

    /// Creates what a fleet's TOML describes, as a person would.
    pub fn create(&self, description: &str) -> Result<(), FleetError> {
        fleet::create(description, &mut self.up_to_date().world)
    }

    /// Replaces the price list retroactively: responses show the new prices, and the bill charges
    /// them from the beginning.
    pub fn set_prices(&self, prices: Prices) {
        let world = &mut self.up_to_date().world;
        world.set_market(world.market().priced(prices));
    }

    /// Withdraws or restores a plan (a Droplet size or a server type), everywhere or in one region
    /// or location.
    pub fn set_offer(
        &self,
        plan: &str,
        place: Option<&str>,
        offer: &Offer,
    ) -> Result<(), OfferError> {
        let world = &mut self.up_to_date().world;
        world.set_market(world.market().offering(plan, place, offer)?);
        Ok(())
    }

    /// Computes what the clouds charge for everything they hold or have held.
    #[must_use]
    pub fn bill(&self, query: &BillQuery) -> Bill {
        bill::bill(&self.up_to_date().world, query)
    }

    pub fn add_fault(&self, fault: Fault) {
        self.lock().interference.faults.push(fault);
    }

    /// The active faults, each with the number of requests it still has to hit.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        self.lock().interference.faults.clone()
    }

    pub fn clear_faults(&self) {
        self.lock().interference.faults.clear();
    }

    #[must_use]
    pub fn add_hold(&self, hold: Hold) -> HoldId {
        self.lock().interference.add_hold(hold)
    }

    /// The active holds.
    #[must_use]
    pub fn holds(&self) -> Vec<HoldView> {
        self.lock().interference.holds()
    }

    pub async fn wait_until_caught(&self, id: HoldId) -> Result<(), UnknownHoldError> {
        let mut waiting = self.lock().interference.waiting(id)?;
        let caught = waiting.wait_for(|waiting| *waiting > 0).await;
        caught.map(|_| ()).map_err(|_| UnknownHoldError(id))
    }

    /// Ends a hold and lets the requests in it proceed.
    pub fn release(&self, id: HoldId) -> Result<(), UnknownHoldError> {
        self.lock().interference.end_hold(id, Verdict::Proceed)
    }

    /// Ends a hold and closes the connections of the requests in it. Requests held on arrival have
    /// no effect.
    pub fn discard(&self, id: HoldId) -> Result<(), UnknownHoldError> {
        self.lock().interference.end_hold(id, Verdict::Discard)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Clouds> {
        // A panic while the lock is held fails the test anyway.
        self.clouds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the clouds and applies everything that is due by now.
    pub(crate) fn up_to_date(&self) -> MutexGuard<'_, Clouds> {
        let now = (self.now)();
        let mut clouds = self.lock();
        clouds.advance(now);
        clouds
    }
}
