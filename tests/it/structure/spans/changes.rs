//! Two extractions compared: what changed beyond chance.

use layerfit::structure::compare::{Changes, Side, Turn, compare};

const LEVEL: f64 = 0.05;

fn side(calls: &[(&str, &str, f64, Option<f64>, u64)]) -> Side {
    let calls: Vec<String> = calls
        .iter()
        .map(|(from, to, mean, variance, n)| {
            let variance = variance.map_or("null".to_owned(), |v| v.to_string());
            format!(
                r#"{{"name": "{from}", "occurrences": {n}, "accepts": "sync", "first": "x",
                    "calls": [{{"to": "{to}", "kind": "sync", "phase": 1, "mean": {mean}, "variance": {variance}, "occurrences": {n}}}]}}"#
            )
        })
        .collect();
    let json = format!(r#"{{"tasks": [{{"name": "web", "threads": 3, "entries": [{}]}}], "model": {{}}, "records": []}}"#, calls.join(","));
    serde_json::from_str(&json).unwrap()
}

fn only(changes: &Changes) -> (f64, f64, bool) {
    assert_eq!(changes.calls.len(), 1, "{changes:?}");
    (changes.calls[0].z, changes.calls[0].p_value, changes.calls[0].beyond_chance)
}

/// Means 2.0 and 2.3 with variance 1 of 100 occurrences each: z = 0.3 / √0.02 = 2.1213, p = 0.0339.
#[test]
fn call_counts_are_compared_by_their_variances() {
    let of = |mean: f64, n: u64| side(&[("web.get", "db.read", mean, Some(1.0), n)]);
    let (z, p, beyond) = only(&compare(&of(2.0, 100), &of(2.3, 100), LEVEL));
    assert!((z - 2.121_320_343_559_642_6).abs() < 1e-12);
    assert!((p - 0.033_894_853_524_689_274).abs() < 1e-9, "{p}");
    assert!(!beyond, "two comparisons share the level: 0.034 is not below 0.025");
    let (_, p, beyond) = only(&compare(&of(2.0, 200), &of(2.3, 200), LEVEL));
    assert!(beyond && p < 0.01, "{p}");
    assert!(compare(&of(2.0, 100), &of(2.0, 7), LEVEL).calls.is_empty());
}

/// Without variances numbers are taken as Poisson: z = 1 / √(4/10 + 5/10).
#[test]
fn without_variances_numbers_are_taken_as_poisson() {
    let of = |mean: f64| side(&[("web.get", "db.read", mean, None, 10)]);
    let (z, _, beyond) = only(&compare(&of(4.0), &of(5.0), LEVEL));
    assert!((z - 1.0 / 0.9_f64.sqrt()).abs() < 1e-12 && !beyond);
}

#[test]
fn constant_numbers_that_differ_have_changed() {
    let of = |mean: f64, n: u64| side(&[("web.get", "db.read", mean, Some(0.0), n)]);
    assert!(only(&compare(&of(1.0, 50), &of(2.0, 50), LEVEL)).2);
    assert!(!only(&compare(&of(1.0, 50), &of(2.0, 1), LEVEL)).2, "one occurrence is no evidence");
    // Of the 20 ways of dealing six occurrences to two sides of three, two keep them apart.
    let (_, p, beyond) = only(&compare(&of(1.0, 3), &of(2.0, 3), LEVEL));
    assert!((p - 0.1).abs() < 1e-9 && !beyond, "{p}");
}

#[test]
fn what_appeared_or_vanished_is_weighed() {
    let old = side(&[("web.get", "db.read", 1.0, Some(0.0), 1000), ("web.rare", "db.read", 1.0, Some(0.0), 1)]);
    let new = side(&[("web.get", "cache.read", 1.0, Some(0.0), 1000)]);
    let changes = compare(&old, &new, LEVEL);
    let of = |turn: Turn, what: &str| -> Vec<(String, bool)> {
        let chosen = changes.one_sided.iter().filter(|c| c.turn == turn && c.what == what);
        chosen.map(|c| (c.name.clone(), c.beyond_chance)).collect()
    };
    assert_eq!(of(Turn::Appeared, "call"), [("web.get sync cache.read".to_owned(), true)]);
    assert_eq!(of(Turn::Vanished, "call"), [("web.get sync db.read".to_owned(), true)]);
    assert_eq!(of(Turn::Vanished, "entry"), [("web.rare".to_owned(), false)], "one in a thousand may well be missed");
    assert!(changes.is_any_beyond_chance());
    let text = changes.text();
    assert!(text.contains("web.rare vanished: seen 1 times") && text.contains("may be chance"), "{text}");
}

/// By Fisher's exact test: one of ten made the call, none of a hundred others: 10/110; 3 of 20 and none of 30: C(20, 3)/C(50, 3).
#[test]
fn what_is_rare_is_not_missed_where_few_were_seen() {
    let p_of = |mean: f64, variance: Option<f64>, n: u64, n_without: u64| {
        let with = side(&[("web.get", "db.read", mean, variance, n)]);
        let mut without = side(&[("web.get", "db.read", mean, variance, n_without)]);
        without.tasks[0].entries[0].calls.clear();
        let changes = compare(&without, &with, LEVEL);
        let change = changes.one_sided.iter().find(|change| change.what == "call").unwrap();
        (change.expected, change.p_value)
    };
    let near = |(expected, p): (f64, f64), with: (f64, f64)| {
        assert!((expected - with.0).abs() < 1e-9 && (p - with.1).abs() < 1e-9 * with.1.max(1e-9), "{expected} {p}");
    };
    near(p_of(0.1, Some(0.09), 10, 100), (10.0, 10.0 / 110.0));
    near(p_of(0.15, Some(0.1275), 20, 30), (4.5, 1140.0 / 19600.0));
    // Ten calls, all by one of a hundred.
    near(p_of(0.1, Some(0.99), 100, 100), (10.0, 0.5));
    near(p_of(1.0, Some(0.0), 10, 10), (10.0, 1.0 / 184_756.0));
    near(p_of(1.0, Some(0.0), 10, 0), (0.0, 1.0));
}

#[test]
fn the_same_extraction_has_not_changed() {
    let one = side(&[("web.get", "db.read", 1.5, Some(0.25), 1000)]);
    let changes = compare(&one, &one, LEVEL);
    assert!(!changes.is_any_beyond_chance() && changes.text().contains("Nothing changed"));
    let json = serde_json::to_string(&changes).unwrap();
    assert_eq!(serde_json::from_str::<Changes>(&json).unwrap(), changes);
}
