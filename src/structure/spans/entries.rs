//! The entries of tasks, at most so many of each, and what becomes of names beyond that.
//!
//! Input: a task and the name of an entry as its spans tell it; output: the number of the entry that stands for it.
//!
//! Names that are paths (`/a/b`, `GET /a/b`) may hold ids that nothing in their form shows. So where half as many different segments as a
//! task may have entries follow one beginning of a path, further ones become `{id}` there, whatever follows. A route that the
//! instrumentation gives, or a name that the user's rule gives, stays. What is over the bound after that is of the entry [`OTHER`].
//!
//! Where all spans are held until they are used, the names that are used most are entries first ([`Entries::make_room`]).

use std::cmp::Reverse;

use super::catalog::OTHER;
use crate::trace::{
    hashed::{HashMap, HashSet, IndexSet},
    names::Names,
};

/// Names beside their entries that are remembered.
const MAX_ALIASES: usize = 200_000;
/// What stands for a part of a name that differs.
const ID: &str = "{id}";

/// Entries by number.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    /// Task and name.
    known: IndexSet<(u32, u32)>,
    /// Number of entries of each task.
    n_entries: HashMap<u32, usize>,
    /// Names that are entries as they are, if there is room.
    fixed: HashSet<u32>,
    /// Segments that follow the beginnings of paths of a task.
    segments: HashMap<(u32, Box<str>), HashSet<Box<str>>>,
    /// Entries of other names.
    aliases: HashMap<(u32, u32), u32>,
    /// Requests of entries that were over the bound, by task.
    pub over_bound: HashMap<u32, u64>,
    /// Requests of entries whose paths were generalised, by task.
    pub generalised: HashMap<u32, u64>,
}

impl Entries {
    /// Task and name of an entry.
    pub fn get(&self, entry: u32) -> Option<(u32, u32)> {
        self.known.get_index(entry as usize).copied()
    }

    /// All entries, in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.known.iter().copied()
    }

    /// From here on a name is an entry as it is.
    pub fn fix(&mut self, name: u32) {
        self.fixed.insert(name);
    }

    /// Names that are entries as they are.
    pub fn fixed(&self) -> impl Iterator<Item = u32> {
        self.fixed.iter().copied()
    }

    /// The entry of `task` that stands for `name`, of at most `limit` and [`OTHER`].
    pub fn entry(&mut self, task: u32, name: u32, limit: usize, names: &mut Names) -> u32 {
        if let Some(known) = self.known.get_index_of(&(task, name)) {
            return known as u32;
        }
        if let Some(known) = self.aliases.get(&(task, name)) {
            return *known;
        }
        let segments = if self.fixed.contains(&name) { Vec::new() } else { segments(names.name(name)) };
        let general = self.generalised_path(task, &segments, names.name(name), limit).map_or(name, |text| names.intern(&text));
        let known = self.known.get_index_of(&(task, general)).map(|known| known as u32);
        let entry = known.unwrap_or_else(|| self.new_entry(task, general, limit, names));
        if self.known.get_index(entry as usize).is_some_and(|(_, given)| *given != name) && self.aliases.len() < MAX_ALIASES {
            self.aliases.insert((task, name), entry);
        }
        entry
    }

    fn new_entry(&mut self, task: u32, name: u32, limit: usize, names: &mut Names) -> u32 {
        let n_entries = self.n_entries.entry(task).or_insert(0);
        if *n_entries >= limit {
            let other = names.intern(OTHER);
            return self.known.insert_full((task, other)).0 as u32;
        }
        *n_entries += 1;
        if !self.fixed.contains(&name) {
            let text = names.name(name);
            for (start, end) in segments(text) {
                self.segments.entry((task, text[..start].into())).or_default().insert(text[start..end].into());
            }
        }
        self.known.insert_full((task, name)).0 as u32
    }

    /// A path with `{id}` for segments beyond those that may follow what is before them; `None` if it stays as it is.
    fn generalised_path(&self, task: u32, segments: &[(usize, usize)], text: &str, limit: usize) -> Option<String> {
        let (first, _) = segments.first()?;
        let mut out = text[..*first].to_owned();
        for (start, end) in segments {
            if out.len() > *first {
                out.push('/');
            }
            let segment = &text[*start..*end];
            let followers = self.segments.get(&(task, out.as_str().into()));
            let has_room = followers.is_none_or(|known| known.len() < (limit / 2).max(1) || known.contains(segment));
            out.push_str(if has_room || segment.contains(ID) { segment } else { ID });
        }
        (out != text).then_some(out)
    }

    /// Makes entries of the names that are used most, of tasks that have more than `limit`; `uses` are the uses of names, by task and name.
    pub fn make_room(&mut self, uses: HashMap<(u32, u32), u64>, limit: usize, names: &mut Names) {
        let mut n_names: HashMap<u32, usize> = HashMap::default();
        uses.keys().for_each(|(task, _)| *n_names.entry(*task).or_default() += 1);
        let mut most: Vec<_> = uses.into_iter().filter(|((task, _), _)| n_names[task] > limit).collect();
        most.sort_by_cached_key(|((task, name), n)| (Reverse(*n), names.name(*name).to_owned(), names.name(*task).to_owned()));
        for ((task, name), _) in most {
            self.entry(task, name, limit, names);
        }
    }

    /// Counts a request of the task's entry `name` where `entry` is another.
    pub fn count(&mut self, entry: u32, task: u32, name: u32, names: &Names) {
        let Some((_, given)) = self.get(entry).filter(|(_, given)| *given != name) else { return };
        let counted = if names.name(given) == OTHER { &mut self.over_bound } else { &mut self.generalised };
        *counted.entry(task).or_insert(0) += 1;
    }
}

/// The segments of a path, from where to where; none of what is no path.
fn segments(text: &str) -> Vec<(usize, usize)> {
    let Some(slash) = text.find('/') else { return Vec::new() };
    let is_path = slash == 0 || text[..slash].strip_suffix(' ').is_some_and(|word| word.bytes().all(|b| b.is_ascii_uppercase()));
    if !is_path {
        return Vec::new();
    }
    let mut start = slash + 1;
    let ends = text[start..].match_indices('/').map(|(at, _)| slash + 1 + at).chain([text.len()]);
    let mut segments = Vec::new();
    for end in ends {
        segments.push((start, end));
        start = end + 1;
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of one task, by the names given to it in this order; at most ten.
    fn entries_of(given: &[String], fixed: &[&str]) -> Vec<String> {
        let (mut entries, mut names) = (Entries::default(), Names::default());
        let task = names.intern("task");
        fixed.iter().for_each(|name| entries.fix(names.intern(name)));
        given.iter().for_each(|name| {
            let name = names.intern(name);
            let entry = entries.entry(task, name, 10, &mut names);
            assert_eq!(entries.entry(task, name, 10, &mut names), entry);
        });
        entries.iter().map(|(_, name)| names.name(name).to_owned()).collect()
    }

    #[test]
    fn what_differs_below_one_path_is_an_id() {
        let letters = || (b'a'..=b'h').map(char::from);
        let mut given: Vec<String> = letters().map(|c| format!("GET /junk/{c}")).collect();
        given.extend(letters().map(|c| format!("GET /junk/{c}/parts")));
        given.push("GET /cart".to_owned());
        let expected: Vec<String> = ["a", "b", "c", "d", "e", "{id}"].iter().map(|c| format!("GET /junk/{c}")).collect();
        let found = entries_of(&given, &[]);
        assert_eq!(found[..6], expected);
        assert!(found.len() <= 11, "{found:?}");
        assert_eq!(entries_of(&["x/1", "x/2", "x/3", "x/4", "x/5", "x/6", "x/7"].map(str::to_owned), &[]).len(), 7, "no paths");
    }

    #[test]
    fn routes_stay() {
        let given: Vec<String> = (b'a'..=b'g').map(|c| format!("/api/{}", char::from(c))).collect();
        assert_eq!(entries_of(&given, &[]).len(), 6);
        let fixed: Vec<&str> = given.iter().map(String::as_str).collect();
        assert_eq!(entries_of(&given, &fixed), given);
    }

    #[test]
    fn the_names_used_most_have_their_place() {
        let (mut entries, mut names) = (Entries::default(), Names::default());
        let task = names.intern("task");
        let mut uses = HashMap::default();
        for n in 0..40_u64 {
            uses.insert((task, names.intern(&format!("op{n}"))), n + 1);
        }
        entries.make_room(uses, 10, &mut names);
        let found: Vec<&str> = entries.iter().map(|(_, name)| names.name(name)).collect();
        assert_eq!((found[0], found[9], found[10], found.len()), ("op39", "op30", OTHER, 11));
        let (mut entries, few) = (Entries::default(), HashMap::from_iter([((task, task), 3)]));
        entries.make_room(few, 10, &mut names);
        assert_eq!(entries.iter().count(), 0, "there is room for all");
    }
}
