//! Pagination, as each cloud numbers and links its pages.

use serde_json::{Value, json};

use crate::request::{IncomingRequest, Request};

/// One page of a longer list, with its number and size and the list's length.
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    number: usize,
    size: usize,
    total: usize,
}

impl<T> Page<T> {
    /// Cuts out the page that the query asks for. A page size above `most` is lowered to it, and an
    /// invalid number is ignored; whether the clouds refuse these instead is not documented.
    fn cut(items: Vec<T>, request: &Request, usual: usize, most: usize) -> Self {
        let number = |name| {
            let value: Option<usize> = request.parameter(name)?.parse().ok();
            value.filter(|value| *value > 0)
        };
        let per_page = number("per_page").unwrap_or(usual).min(most);
        let page = number("page").unwrap_or(1);
        let total = items.len();
        let skipped = (page - 1).saturating_mul(per_page);
        let items = items.into_iter().skip(skipped).take(per_page).collect();
        Self { items, number: page, size: per_page, total }
    }

    /// A page of `DigitalOcean`'s: 20 items by default, at most 200 (DODESC), or `fewer`.
    pub(crate) fn digitalocean(items: Vec<T>, request: &Request, fewer: Option<usize>) -> Self {
        Self::cut(items, request, 20, fewer.unwrap_or(200))
    }

    /// A page of Hetzner's: 25 items by default, at most 50 (HZSPEC), or `fewer`.
    pub(crate) fn hetzner(items: Vec<T>, request: &Request, fewer: Option<usize>) -> Self {
        Self::cut(items, request, 25, fewer.unwrap_or(50))
    }

    fn last(&self) -> usize {
        self.total.div_ceil(self.size).max(1)
    }

    fn next(&self) -> Option<usize> {
        (self.number < self.last()).then(|| self.number + 1)
    }

    fn previous(&self) -> Option<usize> {
        (self.number > 1).then(|| self.number - 1)
    }

    /// `DigitalOcean`'s `links`, with absolute URLs that keep the query's other parameters.
    pub(crate) fn links(&self, incoming: &IncomingRequest) -> Value {
        let link = |page| self.link(incoming, page);
        let mut pages = json!({});
        if let Some(next) = self.next() {
            pages["next"] = link(next).into();
            pages["last"] = link(self.last()).into();
        }
        if let Some(previous) = self.previous() {
            pages["first"] = link(1).into();
            pages["prev"] = link(previous).into();
        }
        if self.last() == 1 { json!({}) } else { json!({"pages": pages}) }
    }

    /// `DigitalOcean`'s `meta`.
    pub(crate) fn total(&self) -> Value {
        json!({"total": self.total})
    }

    /// Hetzner's `meta`.
    pub(crate) fn meta(&self) -> Value {
        json!({"pagination": {
            "page": self.number,
            "per_page": self.size,
            "previous_page": self.previous(),
            "next_page": self.next(),
            "last_page": self.last(),
            "total_entries": self.total,
        }})
    }

    /// Hetzner's `Link` header.
    pub(crate) fn link_header(&self, incoming: &IncomingRequest) -> String {
        let named = [("next", self.next()), ("prev", self.previous()), ("last", Some(self.last()))];
        let link = |(name, page): (&str, Option<usize>)| {
            Some(format!("<{}>; rel=\"{name}\"", self.link(incoming, page?)))
        };
        named.into_iter().filter_map(link).collect::<Vec<_>>().join(", ")
    }

    fn link(&self, incoming: &IncomingRequest, page: usize) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let others = incoming.request.pairs();
        let others = others.iter().filter(|(key, _)| key != "page" && key != "per_page");
        query.extend_pairs(others);
        query.append_pair("page", &page.to_string());
        query.append_pair("per_page", &self.size.to_string());
        format!("{}{}?{}", incoming.origin, incoming.request.path, query.finish())
    }
}
