//! Paginated lists: the first page says how many pages there are, and the others are read several
//! at a time. Each keeps the instant of its request, because that is how old its content is.

use std::collections::BTreeMap;

use domain::{
    ResourceKind,
    look::Look,
    resource::{LoggedAction, Resource},
    text::{LONGEST_NAME, one_line},
};
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::{error::ProviderError, http::Request};

/// Maximum number of requests in flight at once for one list.
pub const AT_ONCE: usize = 8;

/// Called with the number of additional resources read.
pub type OnProgress<'a> = &'a (dyn Fn(usize) + Sync);

#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// The present instant.
    pub now: &'a (dyn Fn() -> Timestamp + Sync),
    /// From this instant on, no page is requested; `None` for no deadline.
    pub until: Option<Timestamp>,
    /// Called with the number of resources in each response, including those left out later.
    pub read: OnProgress<'a>,
}

impl Reading<'static> {
    /// For a list whose rows have no age of their own, read to the end.
    pub(crate) const UNTIMED: Self =
        Self { now: &|| Timestamp::UNIX_EPOCH, until: None, read: &|_| () };
}

impl Reading<'_> {
    /// Returns the present instant if there is still time for a request.
    pub(crate) fn begin(&self) -> Option<Timestamp> {
        let now = (self.now)();
        self.until.is_none_or(|until| now < until).then_some(now)
    }
}

/// What a list could not show. Nothing is concluded about it.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.what())]
pub struct Unread {
    pub kind: ResourceKind,
    /// Which resource, or which resources; `None` for all of the kind.
    pub name: Option<String>,
    /// Why it could not be read.
    #[source]
    pub error: ProviderError,
}

impl Unread {
    fn what(&self) -> String {
        let kind = self.kind;
        match &self.name {
            Some(name) => format!("{kind} {name} not read"),
            None => format!("no {kind} read"),
        }
    }
}

/// An element of a list that may have an unexpected form, which does not spoil the others.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Element<T> {
    Read(T),
    Unread(Value),
}

impl<T> Element<T> {
    /// Returns what was read, or names what was not.
    pub(crate) fn of_kind(self, kind: ResourceKind, list: &str) -> Result<T, Box<Unread>> {
        match self {
            Self::Read(read) => Ok(read),
            Self::Unread(value) => Err(Box::new(Unread {
                kind,
                name: Some(name_of(&value)),
                error: Request::get(list).not_understood("unexpected content"),
            })),
        }
    }

    pub(crate) fn has_id(&self, id: &str, read: impl Fn(&T) -> &str) -> bool {
        match self {
            Self::Read(element) => read(element) == id,
            Self::Unread(value) => value["id"] == id,
        }
    }
}

/// Names an element by whatever can be read of it.
fn name_of(value: &Value) -> String {
    let name = value["name"].as_str();
    let id = &value["id"];
    let number = id.as_u64().map(|id| id.to_string());
    let id = number.or_else(|| id.as_str().map(str::to_owned));
    match (name, id) {
        (Some(name), Some(id)) => format!("{name} ({id})"),
        (Some(name), None) => name.to_owned(),
        (None, Some(id)) => id,
        (None, None) => "without a name".to_owned(),
    }
}

/// What an account's lists show. Each list was read to its end, or is named among what is unread.
#[derive(Debug, Default)]
pub struct Listed {
    /// Each resource once, ordered by id. Pages shift when something is created or deleted while
    /// they are read, so a resource that is missing here may still exist.
    pub looks: Vec<Look>,
    /// How many requests each kind's list took.
    pub requests: BTreeMap<ResourceKind, u32>,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

impl Listed {
    /// Adds the list of one kind. Other kinds are still read after a failure of this one, unless it
    /// is the account's.
    pub(crate) fn add(
        &mut self,
        kind: ResourceKind,
        read: Result<Read<Result<Resource, Box<Unread>>>, ProviderError>,
    ) -> Result<(), ProviderError> {
        let read = match read {
            Ok(read) => read,
            Err(error) if error.is_of_account() => return Err(error),
            Err(error) => {
                self.unread.push(Unread { kind, name: None, error });
                return Ok(());
            }
        };
        *self.requests.entry(kind).or_default() += read.requests;
        for (requested_at, resource) in read.items {
            match resource {
                Ok(resource) => self.looks.push(Look { requested_at, resource, sight: None }),
                Err(unread) => self.unread.push(*unread),
            }
        }
        Ok(())
    }

    /// Returns the first kind's error if no kind could be read.
    pub(crate) fn or_error(mut self) -> Result<Self, ProviderError> {
        if self.requests.is_empty() && !self.unread.is_empty() {
            return Err(self.unread.swap_remove(0).error);
        }
        Ok(self)
    }

    /// Returns the kinds of which nothing could be read, each with the reason.
    pub fn unread_kinds(&self) -> impl Iterator<Item = (ResourceKind, &ProviderError)> {
        let whole = self.unread.iter().filter(|unread| unread.name.is_none());
        whole.map(|unread| (unread.kind, &unread.error))
    }

    /// Sorts by id and keeps each resource once, as the latest of its pages showed it.
    pub(crate) fn sorted(mut self) -> Self {
        self.looks.sort_by(|one, next| {
            let latest_first = next.requested_at.cmp(&one.requested_at);
            one.resource.id.cmp(&next.resource.id).then(latest_first)
        });
        self.looks.dedup_by(|one, next| one.resource.id == next.resource.id);
        self
    }

    /// Makes a printable line of every text.
    pub(crate) fn printable(mut self) -> Self {
        let looks =
            self.looks.into_iter().map(|look| Look { resource: look.resource.printable(), ..look });
        self.looks = looks.collect();
        for name in self.unread.iter_mut().filter_map(|one| one.name.as_mut()) {
            *name = one_line(name, LONGEST_NAME).into_owned();
        }
        self
    }
}

#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// The number of the next page; `None` on the last page.
    pub(crate) next: Option<u32>,
    /// The number of the last page, if given.
    pub(crate) last: Option<u32>,
}

impl<T> Page<T> {
    /// Rejects a next page whose number does not grow, because reading would never end.
    pub(crate) fn new(
        request: &Request,
        number: u32,
        items: Vec<T>,
        next: Option<u32>,
        last: Option<u32>,
    ) -> Result<Self, ProviderError> {
        if next.is_some_and(|next| next <= number) {
            return Err(request.not_understood("a next page that does not follow"));
        }
        Ok(Self { items, next, last })
    }

    pub(crate) fn map<U>(&self, of: impl FnMut(&T) -> U) -> Page<U> {
        Page { items: self.items.iter().map(of).collect(), next: self.next, last: self.last }
    }
}

/// The results of a number of requests, each item with the instant of its request.
#[derive(Debug)]
pub(crate) struct Read<T> {
    pub(crate) items: Vec<(Timestamp, T)>,
    pub(crate) requests: u32,
}

impl<T> Read<T> {
    pub(crate) fn nothing() -> Self {
        Self { items: Vec::new(), requests: 0 }
    }

    pub(crate) fn map<U>(self, of: impl Fn(T) -> U) -> Read<U> {
        let items = self.items.into_iter();
        Read { items: items.map(|(at, item)| (at, of(item))).collect(), requests: self.requests }
    }

    /// Adds the items of one request, made at an instant.
    pub(crate) fn add(&mut self, reading: Reading<'_>, at: Timestamp, items: Vec<T>) {
        (reading.read)(items.len());
        self.requests += 1;
        self.items.extend(items.into_iter().map(|item| (at, item)));
    }
}

/// Reads all pages; `page` reads the one with a given number.
pub(crate) async fn all<T>(
    reading: Reading<'_>,
    page: impl AsyncFn(u32) -> Result<Page<T>, ProviderError>,
) -> Result<Read<T>, ProviderError> {
    let mut whole = Read::nothing();
    let (mut next, mut last) = (Some(1), None);
    while let Some(from) = next {
        // Pages added after the last page's number was reported are read one after the other.
        let to = last.filter(|&last| last > from).unwrap_or(from);
        let pages = (from..=to).map(|number| in_time(reading, page(number)));
        let mut pages = stream::iter(pages).buffered(AT_ONCE);
        while let Some(read) = pages.next().await {
            let Some((at, read)) = read? else {
                return Err(ProviderError::OutOfTime { read: whole.requests, of: last });
            };
            whole.add(reading, at, read.items);
            (next, last) = (read.next, read.last);
            if next.is_none() {
                break;
            }
        }
    }
    Ok(whole)
}

/// Reads unpaginated items, each with a request of its own, several at a time.
pub(crate) async fn each<I, T>(
    reading: Reading<'_>,
    at_once: usize,
    of: impl IntoIterator<Item = I>,
    request: impl AsyncFn(I) -> Result<Vec<T>, ProviderError>,
) -> Result<Read<T>, ProviderError> {
    let requests = of.into_iter().map(|one| in_time(reading, request(one)));
    let mut answers = stream::iter(requests).buffered(at_once);
    let mut whole = Read::nothing();
    while let Some(answer) = answers.next().await {
        let Some((at, items)) = answer? else {
            return Err(ProviderError::OutOfTime { read: whole.requests, of: None });
        };
        whole.add(reading, at, items);
    }
    Ok(whole)
}

/// Returns a request's result and when it was made; `None` if the deadline had passed before.
async fn in_time<T>(
    reading: Reading<'_>,
    request: impl Future<Output = Result<T, ProviderError>>,
) -> Result<Option<(Timestamp, T)>, ProviderError> {
    match reading.begin() {
        Some(now) => Ok(Some((now, request.await?))),
        None => Ok(None),
    }
}

/// Reads a log until its last page, or until one whose last entry had ended before `since`. No order
/// is relied on: reading stops early only on a page that is newest first.
pub(crate) async fn log(
    since: Timestamp,
    page: impl AsyncFn(u32) -> Result<Page<LoggedAction>, ProviderError>,
) -> Result<Vec<LoggedAction>, ProviderError> {
    let mut actions = Vec::new();
    let mut next = Some(1);
    while let Some(number) = next {
        let page = page(number).await?;
        let falls = page.items.is_sorted_by(|one, next| one.started_at >= next.started_at);
        let last = page.items.last();
        let is_older = last.is_some_and(|last| last.is_over_before(since));
        next = page.next.filter(|_| !(falls && is_older));
        actions.extend(page.items);
    }
    Ok(actions)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    };

    use domain::resource::Power;
    use testing::history::machine;

    use super::*;

    /// A list whose pages differ by their number, at a cloud whose clock moves by a
    /// second with each answer.
    #[derive(Default)]
    struct Cloud {
        seconds: AtomicI64,
        asked: Mutex<Vec<u32>>,
        at_once: AtomicUsize,
        most_at_once: AtomicUsize,
    }

    impl Cloud {
        fn now(&self) -> Timestamp {
            Timestamp::from_second(self.seconds.load(Ordering::Relaxed)).unwrap()
        }

        async fn page(
            &self,
            number: u32,
            next: Option<u32>,
            last: Option<u32>,
        ) -> Result<Page<u32>, ProviderError> {
            self.asked.lock().unwrap().push(number);
            let at_once = self.at_once.fetch_add(1, Ordering::Relaxed) + 1;
            self.most_at_once.fetch_max(at_once, Ordering::Relaxed);
            tokio::task::yield_now().await;
            self.at_once.fetch_sub(1, Ordering::Relaxed);
            self.seconds.fetch_add(1, Ordering::Relaxed);
            Ok(Page { items: vec![number], next, last })
        }

        /// Reads a list whose pages report the next and the last page as `says` does.
        async fn read(
            &self,
            until: Option<i64>,
            says: impl Fn(u32) -> (Option<u32>, Option<u32>),
        ) -> Result<Read<u32>, ProviderError> {
            let reading = Reading {
                now: &|| self.now(),
                until: until.map(|seconds| Timestamp::from_second(seconds).unwrap()),
                read: &|_| (),
            };
            let says = &says;
            let page = |number| async move {
                let (next, last) = says(number);
                self.page(number, next, last).await
            };
            all(reading, page).await
        }

        fn asked(self) -> Vec<u32> {
            self.asked.into_inner().unwrap()
        }
    }

    /// What each page says in a list with this many pages.
    fn of(pages: u32) -> impl Fn(u32) -> (Option<u32>, Option<u32>) {
        move |number| ((number < pages).then_some(number + 1), Some(pages))
    }

    #[tokio::test]
    async fn the_pages_after_the_first_are_read_several_at_a_time() {
        let cloud = Cloud::default();
        let read = cloud.read(None, of(20)).await.unwrap();
        let pages: Vec<_> = read.items.iter().map(|(_, page)| *page).collect();
        assert!(pages.iter().copied().eq(1..=20));
        assert_eq!(read.requests, 20);
        assert_eq!(cloud.most_at_once.load(Ordering::Relaxed), AT_ONCE);
    }

    #[tokio::test]
    async fn an_item_is_as_old_as_the_request_for_its_own_page() {
        let read = Cloud::default().read(None, of(3)).await.unwrap();
        let seconds: Vec<_> = read.items.iter().map(|(at, _)| at.as_second()).collect();
        assert_eq!(seconds, [0, 1, 1]);
    }

    #[tokio::test]
    async fn a_list_that_grows_or_shrinks_meanwhile_is_read_to_its_own_end() {
        let cloud = Cloud::default();
        let grows = |number: u32| ((number < 4).then_some(number + 1), Some(number.max(3)));
        assert_eq!(cloud.read(None, grows).await.unwrap().requests, 4);
        assert_eq!(cloud.asked(), [1, 2, 3, 4]);
        let cloud = Cloud::default();
        let shrinks = |number: u32| ((number == 1).then_some(2), Some(20));
        assert_eq!(cloud.read(None, shrinks).await.unwrap().requests, 2);
    }

    #[tokio::test]
    async fn a_list_that_does_not_name_its_last_page_is_read_one_after_the_other() {
        let cloud = Cloud::default();
        let untold = |number: u32| ((number < 4).then_some(number + 1), None);
        assert_eq!(cloud.read(None, untold).await.unwrap().requests, 4);
        assert_eq!(cloud.most_at_once.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn no_page_is_asked_for_after_the_time_is_over_and_a_part_is_not_a_list() {
        let cloud = Cloud::default();
        let error = cloud.read(Some(12), of(100)).await.unwrap_err();
        assert!(
            matches!(&error, ProviderError::OutOfTime { read, of: Some(100) } if *read >= 12),
            "{error}"
        );
        let asked = cloud.asked().len();
        assert!((12..=12 + AT_ONCE).contains(&asked), "{asked}");
    }

    #[test]
    fn what_shifted_from_one_page_to_another_counts_once_as_it_was_seen_last() {
        let look = |seconds, power| Look {
            requested_at: Timestamp::from_second(seconds).unwrap(),
            resource: machine(&"server/1".parse().unwrap(), power),
            sight: None,
        };
        let listed = Listed {
            looks: vec![look(1, Power::Running), look(2, Power::Stopped)],
            ..Listed::default()
        };
        assert_eq!(listed.sorted().looks, [look(2, Power::Stopped)]);
    }
}
