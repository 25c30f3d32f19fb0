//! Entries told apart by the class of customers that they work for.
//!
//! An arc has one wait for all its requests. Where one entry works for several classes, that is a mean over them, although a class of few
//! customers meets next to none of its own (`N_c - 1` of `N_c`) and all of the others. So the entries that a class of few customers
//! uses are laid out once for it and once for the rest, with tasks, threads and processors in common:
//!
//! ```text
//! group of a class        its own where N_c <= FEW, else that of all others, to which arrivals from outside belong
//! variant (e, g)          entry e as it works for group g; a call e -> d becomes (e, g) -> (d, g)
//! ```
//!
//! Asynchronous requests work for nobody who waits: they belong to the others. So do entries whose variants would be alike (they call nothing
//! and never wait for their processor), and those that share activities with others. Which classes have variants follows from the model's structure and whole
//! numbers alone, so that solutions are as smooth in all else as without.
//!
//! | symbol | here |
//! |---|---|
//! | `N_c` | customers of the class, with all copies |
//! | `g` | a number, 0 that of all others |

use std::collections::{BTreeSet, HashMap};

use super::{
    MOST_TIMES, OTHERS, Place, Variants, called, destinations, entries,
    graphs::{Graph, activities_of},
    redirect, redirect_entry, served,
};
use crate::{
    model::{Entry, Model, Number, Task},
    solve::copies,
};

/// Most customers of a class that has variants of its own.
const FEW: f64 = 8.0;
/// The variants of `model`; none where no entry has several, or where its numbers cannot be read.
pub(super) fn tell_apart(model: &Model, value: &impl Fn(&Number) -> Option<f64>) -> Option<Variants> {
    let mut classes = Vec::new();
    for task in model.tasks.iter().filter(|t| t.scheduling.is_reference()) {
        classes.push((value(&task.multiplicity)? * value(&task.replication)?, task));
    }
    classes.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let n_few = classes.partition_point(|(customers, _)| *customers <= FEW);
    let called = model.tasks.iter().filter(|t| !t.scheduling.is_reference());
    let open: Vec<&str> = called.flat_map(|t| &t.entries).filter(|e| e.open_arrival_rate.is_some()).map(|e| e.name.as_str()).collect();
    if n_few == 0 || classes.len() + usize::from(!open.is_empty()) < 2 {
        return None;
    }

    let mut uses = Uses::new(model, value)?;
    let (few, many) = classes.split_at(n_few);
    uses.reach(open.into_iter().map(|entry| (entry, OTHERS)).collect());
    many.iter().for_each(|(_, class)| uses.add(class, OTHERS));
    for (group, (_, class)) in (1..).zip(few) {
        uses.add(class, group);
    }
    for (at, (_, class)) in few.iter().enumerate().rev() {
        if uses.n_variants() <= MOST_TIMES * uses.entries.len() {
            break;
        }
        for used in &mut uses.entries {
            used.groups.remove(&(at + 1));
        }
        uses.add(class, OTHERS);
    }
    let groups: Vec<&str> = few.iter().map(|(_, class)| class.name.as_str()).collect();
    uses.entries.iter().any(|used| used.groups.len() > 1).then(|| uses.lay_out(&groups))
}

/// Who uses which entry.
struct Uses<'a> {
    model: &'a Model,
    /// All entries in order.
    entries: Vec<Used<'a>>,
    numbers: HashMap<&'a str, usize>,
}

struct Used<'a> {
    place: Place<'a>,
    /// Whom it works for.
    groups: BTreeSet<usize>,
}

impl<'a> Uses<'a> {
    fn new(model: &'a Model, value: &impl Fn(&Number) -> Option<f64>) -> Option<Self> {
        let entries: Vec<_> = entries(model, value)?.into_iter().map(|place| Used { place, groups: BTreeSet::new() }).collect();
        let numbers = entries.iter().enumerate().map(|(number, used)| (used.place.entry.name.as_str(), number)).collect();
        Some(Self { model, entries, numbers })
    }

    fn n_variants(&self) -> usize {
        self.entries.iter().map(|used| used.groups.len()).sum()
    }

    /// Adds what the customers of a reference task use.
    fn add(&mut self, class: &'a Task, group: usize) {
        let calls = class.entries.iter().flat_map(destinations).chain(class.activities.iter().flat_map(called));
        self.reach(calls.map(|(dest, kind)| (dest, served(group, kind))).collect());
    }

    /// Adds what requests to these entries, each of a group, use.
    fn reach(&mut self, mut open: Vec<(&'a str, usize)>) {
        while let Some((name, group)) = open.pop() {
            let Some(&number) = self.numbers.get(name) else { continue };
            let used = &mut self.entries[number];
            let group = if used.place.has_variants { group } else { OTHERS };
            if !used.groups.insert(group) {
                continue;
            }
            open.extend(destinations(used.place.entry).map(|(dest, kind)| (dest, served(group, kind))));
            let Place { task, entry, has_variants } = used.place;
            if entry.start_activity.is_none() {
                continue;
            }
            // All activities of the task, whichever of them the entry starts, where they are not its own.
            let own = if has_variants { activities_of(task, entry) } else { None };
            let group = if own.is_some() { group } else { OTHERS };
            let activities = task.activities.iter().filter(|it| own.as_ref().is_none_or(|own| own.contains(it.name.as_str())));
            open.extend(activities.flat_map(called).map(|(dest, kind)| (dest, served(group, kind))));
        }
    }

    /// The model of all variants, given the names of the classes with a group.
    fn lay_out(&self, classes: &[&str]) -> Variants {
        let word = copies::free_word(self.model, "for");
        let name = |number: usize, group: usize| {
            let Used { place: Place { entry, .. }, groups } = &self.entries[number];
            // The first variant has the entry's own name, also for an entry that nobody uses.
            if groups.contains(&group) && groups.first() != Some(&group) {
                format!("{} ({word} {})", entry.name, classes[group - 1])
            } else {
                entry.name.clone()
            }
        };
        let to = |dest: &str, group: usize| self.numbers.get(dest).map(|&number| name(number, group));
        let mut laid = Variants { model: self.model.clone(), originals: Vec::new(), activities: HashMap::new() };
        let mut number = 0;
        for (at, task) in laid.model.tasks.iter_mut().enumerate() {
            // Customers' own entries have no variants: they are of their class.
            let own =
                task.scheduling.is_reference().then(|| classes.iter().position(|class| *class == task.name).map_or(OTHERS, |at| at + 1));
            let own = own.unwrap_or(OTHERS);
            let entries = std::mem::take(&mut task.entries);
            let graphs: Vec<_> = (number..).take(entries.len()).map(|number| self.graph_of(number)).collect();
            for activity in &mut task.activities {
                // The first variant has the activities that there are.
                let of_entry = graphs.iter().position(|graph| graph.as_ref().is_some_and(|graph| graph.has(&activity.name)));
                let group = of_entry.and_then(|place| self.entries[number + place].groups.first().copied()).unwrap_or(own);
                redirect(activity, &|dest, kind| to(dest, served(group, kind)));
            }
            for (entry, graph) in entries.into_iter().zip(graphs) {
                let groups = &self.entries[number].groups;
                let groups = if groups.is_empty() { vec![own] } else { groups.iter().copied().collect() };
                for group in groups {
                    let mut variant = Entry { name: name(number, group), ..entry.clone() };
                    variant.open_arrival_rate.take_if(|_| variant.name != entry.name);
                    redirect_entry(&mut variant, &|dest, kind| to(dest, served(group, kind)), &|dest| to(dest, group));
                    if let Some(graph) = graph.as_ref().filter(|_| variant.name != entry.name) {
                        let name = |activity: &str| format!("{activity} ({word} {})", classes[group - 1]);
                        let names = graph.add(task, &mut variant, name, |it| redirect(it, &|dest, kind| to(dest, served(group, kind))));
                        laid.activities.extend(names.into_iter().map(|(copy, original)| ((at, copy), original)));
                    }
                    task.entries.push(variant);
                    laid.originals.push(number);
                }
                number += 1;
            }
        }
        laid
    }

    /// The graph of an entry that is laid out for groups; none where it has none of its own.
    fn graph_of(&self, number: usize) -> Option<Graph> {
        let Used { place, groups } = &self.entries[number];
        let is_told = place.has_variants && groups.iter().any(|&group| group != OTHERS);
        let own = activities_of(place.task, place.entry).filter(|_| is_told)?;
        Some(Graph::of(place.task, &own))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::wiring, *};
    use crate::model::{CallKind, Processor, Severity, lqn_text};

    /// Two classes, of `customers` each, before `es`, which calls `et` on the same processor, in elements of the language's text form; `more` follows.
    fn model(customers: [u32; 2], more: &str) -> Model {
        let [c, d] = customers;
        let text = format!(
            "P 0 p PP f p CC i -1 T 0 t cc r ec -1 CC m {c} t dd r ed -1 CC m {d} t ss n es -1 PP t tt n et -1 PP -1 \
             E 0 s ec 0.1 -1 y ec es 1 -1 s ed 0.1 -1 y ed es 1 -1 s es 0.2 -1 y es et 2 -1 s et 0.1 -1 {more} -1"
        );
        lqn_text::parse(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn apart(model: &Model) -> Option<Variants> {
        tell_apart(model, &|number| number.literal())
    }

    #[test]
    fn a_class_of_few_has_entries_of_its_own() {
        let laid = apart(&model([2, 30], "")).unwrap();
        assert_eq!(wiring(&laid.model), "es > et, es (for cc) > et (for cc); et, et (for cc); ec > es (for cc); ed > es");
        assert_eq!(laid.originals, [0, 0, 1, 1, 2, 3]);
        // Of two classes of few, neither is the rest.
        let both = apart(&model([2, 3], "")).unwrap();
        assert_eq!(wiring(&both.model), "es > et, es (for dd) > et (for dd); et, et (for dd); ec > es; ed > es (for dd)");
    }

    #[test]
    fn classes_of_many_and_a_class_alone_share_their_entries() {
        assert!(apart(&model([9, 30], "")).is_none());
        let mut alone = model([2, 30], "");
        alone.tasks.retain(|task| task.name != "dd");
        assert!(apart(&alone).is_none());
        // Two copies of five are ten.
        let mut copied = model([5, 30], "");
        copied.tasks[2].replication = 2.0.into();
        assert!(apart(&copied).is_none());
    }

    #[test]
    fn arrivals_from_outside_and_asynchronous_requests_belong_to_the_others() {
        let mut open = model([2, 30], "a es 0.5");
        open.tasks.retain(|task| task.name != "dd");
        let laid = apart(&open).unwrap();
        assert_eq!(wiring(&laid.model), "es > et, es (for cc) > et (for cc); et, et (for cc); ec > es (for cc)");
        let rates: Vec<bool> = laid.model.tasks[0].entries.iter().map(|e| e.open_arrival_rate.is_some()).collect();
        assert_eq!(rates, [true, false]);

        let mut sending = model([2, 30], "");
        sending.tasks[0].entries[0].phases[0].activity.calls[0].kind = CallKind::Async;
        assert_eq!(wiring(&apart(&sending).unwrap().model), "es > et, es (for cc) > et; et; ec > es (for cc); ed > es");
    }

    #[test]
    fn what_works_alike_for_all_has_one_entry() {
        // A single thread with a processor to itself, which calls nothing.
        let mut own = model([2, 30], "");
        own.processors.push(Processor::new("QQ"));
        own.tasks[1].processor = "QQ".into();
        assert_eq!(wiring(&apart(&own).unwrap().model), "es > et, es (for cc) > et; et; ec > es (for cc); ed > es");
        own.tasks[1].multiplicity = 2.0.into();
        assert!(wiring(&apart(&own).unwrap().model).contains("; et, et (for cc);"));
    }

    /// Nine classes before an entry that calls twenty: three of them can have entries of their own beside those of the rest.
    #[test]
    fn there_are_at_most_three_variants_of_an_entry_in_the_mean() {
        let classes: String = (0..9).map(|i| format!("t c{i} r e{i} -1 CC m 2 ")).collect();
        let calls: String = (0..9).map(|i| format!("s e{i} 0.1 -1 y e{i} es 1 -1 ")).collect();
        let called: String = (0..20).map(|i| format!("f{i} ")).collect();
        let work: String = (0..20).map(|i| format!("y es f{i} 2 -1 s f{i} 0.1 -1 ")).collect();
        let text = format!("P 0 p PP f p CC i -1 T 0 {classes} t ss n es -1 PP t tt n {called} -1 PP -1 E 0 {calls} s es 0.2 -1 {work} -1");
        let model = lqn_text::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let laid = apart(&model).unwrap();
        let n_entries = |model: &Model| model.tasks.iter().map(|t| t.entries.len()).sum::<usize>();
        // Thirty entries have at most ninety variants, of the twenty-one that have any: four each.
        assert_eq!((n_entries(&model), n_entries(&laid.model)), (30, 9 + 21 * 4), "{}", wiring(&laid.model));
    }

    /// `ea` and `eb` of a task start graphs, the latter where `from` says.
    fn graphs(from: &str) -> Model {
        let text = format!(
            "P 0 p PP f p CC i -1 T 0 t cc r ec -1 CC m 2 t dd r ed -1 CC m 30 t ss i ea eb -1 PP t tt i et -1 PP -1
             E 0 s ec 0 -1 y ec ea 1 -1 y ec eb 1 -1 s ed 0 -1 y ed ea 1 -1 A ea a1 A eb {from} s et 0.1 -1 -1
             A ss s a1 0.1 s a2 0.2 y a2 et 1 s a3 0.3 s a4 0.1 s b1 0.5 y b1 et 2 : a1 -> a2 & a3; a2 & a3 -> a4; a4[ea]; b1[eb] -1"
        );
        lqn_text::parse(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_graph_is_laid_out_with_its_entry() {
        let laid = apart(&graphs("b1")).unwrap();
        let task = laid.model.tasks.iter().find(|task| task.name == "ss").unwrap();
        let names: Vec<&str> = task.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["ea", "ea (for cc)", "eb"]);
        let mut calls: Vec<(&str, &str)> =
            task.activities.iter().flat_map(|it| called(it).map(move |(dest, _)| (it.name.as_str(), dest))).collect();
        calls.sort_unstable();
        assert_eq!(calls, [("a2", "et"), ("a2 (for cc)", "et (for cc)"), ("b1", "et (for cc)")]);
        let replies: Vec<(&str, &str)> = task.replies.iter().map(|reply| (reply.entry.as_str(), reply.activity.as_str())).collect();
        assert!(replies.contains(&("ea (for cc)", "a4 (for cc)")), "{replies:?}");
        assert!(laid.model.validate().iter().all(|defect| defect.kind.severity() != Severity::Error), "{:?}", laid.model.validate());
        let at = laid.model.tasks.iter().position(|task| task.name == "ss").unwrap();
        assert_eq!(laid.activities[&(at, "a3 (for cc)".to_owned())], "a3");
        // What two entries start stays as it is.
        let shared = apart(&graphs("a2"));
        assert!(shared.is_none_or(|laid| laid.model.tasks.iter().all(|task| task.activities.len() <= 5)));
    }

    #[test]
    fn no_variant_has_the_name_of_another_entry() {
        let mut model = model([2, 30], "");
        model.tasks[1].entries.push(Entry::new("es (for cc)"));
        assert!(wiring(&apart(&model).unwrap().model).contains("es (for* cc) > et (for* cc)"));
    }
}
