//! Maps a request's method and path to the operation that handles it.

use crate::{
    account::{Account, Action, Timeline},
    answer::{Answer, Refusal},
    request::IncomingRequest,
    things::{Id, Kind, Thing},
};

/// An operation: its method, its path after the version, and its handler. In the path, `#` stands
/// for a number and `*` for any id. The first match wins.
pub(crate) type Route = (&'static str, &'static str, Handler);

pub(crate) type Handler = fn(&mut Call<'_>) -> Result<Answer, Refusal>;

/// An authorized request, as its handler gets it.
pub(crate) struct Call<'a> {
    pub(crate) incoming: &'a IncomingRequest,
    pub(crate) account: &'a mut Account,
    pub(crate) timeline: &'a mut Timeline,
    pub(crate) ids: Ids,
}

/// The ids in a path, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ids {
    pub(crate) numbers: Vec<u64>,
    pub(crate) names: Vec<String>,
}

impl Call<'_> {
    /// The refusal of an unknown id.
    pub(crate) fn not_found(&self) -> Refusal {
        Refusal::of_status(self.incoming.request.provider(), 404)
    }

    /// The thing of a kind that the path names.
    pub(crate) fn thing(&self, kind: Kind) -> Result<&Thing, Refusal> {
        let thing = self.account.things.get(kind, self.thing_id());
        thing.ok_or_else(|| self.not_found())
    }

    pub(crate) fn thing_mut(&mut self, kind: Kind) -> Result<&mut Thing, Refusal> {
        let (id, not_found) = (self.thing_id(), self.not_found());
        self.account.things.get_mut(kind, id).ok_or(not_found)
    }

    fn thing_id(&self) -> Id {
        match self.ids.numbers.first() {
            Some(number) => Id::Number(*number),
            None => Id::Text(self.ids.names[0].clone()),
        }
    }

    pub(crate) fn action(&self, id: u64) -> Result<&Action, Refusal> {
        self.account.actions.get(&id).ok_or_else(|| self.not_found())
    }
}

/// Finds the operation at a path, and the path's ids. The error is the HTTP status: 404 if no
/// operation has the path, 405 if the path takes another method.
pub(crate) fn find(routes: &[Route], method: &str, path: &[&str]) -> Result<(Handler, Ids), u16> {
    let mut status = 404;
    for (of_method, pattern, handler) in routes {
        match ids(pattern, path) {
            Some(ids) if *of_method == method => return Ok((*handler, ids)),
            Some(_) => status = 405,
            None => {}
        }
    }
    Err(status)
}

fn ids(pattern: &str, path: &[&str]) -> Option<Ids> {
    let mut ids = Ids::default();
    let mut path = path.iter();
    for part in pattern.split('/') {
        let segment = *path.next()?;
        match part {
            "#" => ids.numbers.push(segment.parse().ok()?),
            "*" => ids.names.push(segment.to_owned()),
            fixed if fixed == segment => {}
            _ => return None,
        }
    }
    path.next().is_none().then_some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_by_its_form_and_method() {
        let answer: Handler = |_| Ok(Answer::empty(200));
        let routes = [
            ("GET", "servers/#", answer),
            ("POST", "servers/#/actions/poweroff", answer),
            ("GET", "clusters/*/pools/*", answer),
        ];
        let found = |method: &str, path: &str| {
            let path: Vec<_> = path.split('/').collect();
            find(&routes, method, &path).map(|(_, ids)| ids)
        };
        let numbers = found("GET", "servers/42").unwrap().numbers;
        assert_eq!(numbers, [42]);
        let names = found("GET", "clusters/c/pools/p").unwrap().names;
        assert_eq!(names, ["c", "p"]);
        assert_eq!(found("GET", "servers/42/actions/poweroff"), Err(405));
        for path in ["servers", "servers/x", "servers/42/actions", "servers/42/"] {
            assert_eq!(found("GET", path), Err(404), "{path}");
        }
    }
}
