//! Usage models: the figures of van Hoorn et al. (SIPEW 2008), and sessions drawn from known behaviours found again.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod customers;

use layerfit::{
    structure::usage::{
        Application, Behaviour, BehaviourError, BelowZero, ClassChoice, CsvError, ROW_TOLERANCE, Request, Rule, SessionOptions, Sessions,
        SpecError, SummaryOptions, ThinkLaw, UsageModel, UsageOptions, UsageSpec, UsageSummary, User, parse_behaviour,
    },
    trace::{Time, diagnostics::Diagnostics},
};
use proptest::prelude::*;

/// Figure 9.
const FIGURE_9: &str = ",S0,S1,S2,$\nS0*,0.00,0.70,0.10,0.20\nS1,0.00,0.50,0.10,0.40\nS2,0.10,0.50,0.00,0.40\n";

/// Users who look around, and users who buy.
const BROWSER: &str = "\
,home,list,item,cart,purchase,$
home*,0,0.8,0,0,0,0.2
list,0.1,0.2,0.5,0,0,0.2
item,0.2,0.4,0,0,0,0.4
cart,0,0,0,0,0,1
purchase,0,0,0,0,0,1
";
const BUYER: &str = "\
,home,list,item,cart,purchase,$
home*,0,0.9,0,0.1,0,0
list,0,0.1,0.9,0,0,0
item,0,0.2,0,0.7,0,0.1
cart,0,0.3,0,0,0.6,0.1
purchase,0.1,0,0,0,0,0.9
";

fn think(mut behaviour: Behaviour, law: ThinkLaw) -> Behaviour {
    behaviour.think = Some(law);
    behaviour
}

fn seconds() -> (SessionOptions, SummaryOptions) {
    let sessions = SessionOptions { seconds_per_tick: 1.0, ..SessionOptions::default() };
    (sessions, SummaryOptions { seconds_per_tick: 1.0, ..SummaryOptions::default() })
}

fn at(seconds: f64) -> Time {
    Time::from_f64(seconds).unwrap()
}

/// User, service, start, end.
type Row = (String, String, f64, f64);

fn spec(mix: Vec<(Behaviour, f64)>, intensity: Vec<(f64, u64)>, n_sessions: u64) -> UsageSpec {
    UsageSpec {
        mix,
        application: Application::default(),
        intensity,
        responses: Default::default(),
        response: ThinkLaw::Exponential { mean_s: 0.2 },
        n_sessions,
    }
}

fn generated(spec: &UsageSpec, seed: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    spec.generate(seed, &mut |r| rows.push((format!("{}-{}", r.behaviour, r.session), r.request.to_owned(), r.start_s, r.end_s))).unwrap();
    rows
}

fn feed(sessions: &mut Sessions, summary: &mut UsageSummary, rows: &[Row]) {
    for (user, service, start, end) in rows {
        let class = user.split('-').next();
        let request = Request { user: User::Session(user), class, service, start: at(*start), end: at(*end) };
        sessions.feed(&request, &mut |names, session| summary.absorb(names, &session));
    }
}

fn summary(rows: &[Row]) -> UsageSummary {
    let (session_options, options) = seconds();
    let (mut sessions, mut summary) = (Sessions::new(session_options), UsageSummary::new(options));
    feed(&mut sessions, &mut summary, rows);
    let noted = sessions.finish(&mut |names, session| summary.absorb(names, &session));
    summary.note(noted);
    summary
}

fn one_class() -> UsageOptions {
    UsageOptions { classes: ClassChoice::One, ..UsageOptions::default() }
}

/// Largest difference of the transition and exit probabilities of two behaviours whose services may be in different order,
/// over services that sessions of both visit.
fn difference(found: &Behaviour, known: &Behaviour) -> f64 {
    let index = |service: &String| found.services.iter().position(|s| s == service);
    let visits = known.visits().unwrap();
    let mut largest: f64 = 0.0;
    for (i, from) in known.services.iter().enumerate().filter(|(i, _)| visits[*i] > 0.0) {
        let row = index(from).unwrap();
        largest = largest.max((found.exit[row] - known.exit[i]).abs());
        for (j, to) in known.services.iter().enumerate() {
            let p = index(to).map_or(0.0, |column| found.transitions[(row, column)]);
            largest = largest.max((p - known.transitions[(i, j)]).abs());
        }
    }
    largest
}

#[test]
fn figure_9_visits() {
    let visits = parse_behaviour("B0", FIGURE_9).unwrap().visits().unwrap();
    assert!(visits.iter().zip([1.0274, 1.7123, 0.2740]).all(|(v, known)| (v - known).abs() < 5e-5), "{visits:?}");
    assert!((visits.iter().sum::<f64>() - 3.0137).abs() < 5e-5);
}

#[test]
fn figure_9_is_written_and_read_back() {
    let behaviour = parse_behaviour("B0", FIGURE_9).unwrap();
    assert_eq!(behaviour.to_csv(), ",S0,S1,S2,$\nS0*,0,0.7,0.1,0.2\nS1,0,0.5,0.1,0.4\nS2,0.1,0.5,0,0.4\n");
    assert_eq!(parse_behaviour("B0", &behaviour.to_csv()).unwrap(), behaviour);
    // Several first services: a start without requests.
    let several = Behaviour { start: vec![0.25, 0.75, 0.0], ..behaviour };
    assert!(several.to_csv().starts_with(",(start),S0,S1,S2,$\n(start)*,0,0.25,0.75,0,0\nS0,0,0,0.7"), "{}", several.to_csv());
    assert_eq!(parse_behaviour("B0", &several.to_csv()).unwrap(), several);
}

#[test]
fn files_that_are_no_behaviour_are_refused_with_their_line() {
    let error = |text: &str| parse_behaviour("b", text).unwrap_err();
    assert!(matches!(error(",S0\nS0*,1\n"), CsvError::Header { .. }));
    assert!(matches!(error(",S0,S0,$\nS0*,0,0,1\n"), CsvError::Header { .. }));
    assert!(matches!(error(",S0,S1,$\nS0*,0,0,1\n"), CsvError::Header { .. }));
    assert!(matches!(error(",S0,$\nS1*,0,1\n"), CsvError::Row { line: 2, .. }));
    assert!(matches!(error(",S0,$\nS0*,0\n"), CsvError::Row { line: 2, .. }));
    assert!(matches!(error(",S0,$\nS0*,0,one\n"), CsvError::Row { line: 2, .. }));
    assert!(matches!(error(",S0,$\nS0,0,1\n"), CsvError::Entry { found: 0, .. }));
    assert!(matches!(error(",S0,S1,$\nS0*,0,0,1\nS1*,0,0,1\n"), CsvError::Entry { found: 2, .. }));
    assert!(matches!(error(",S0,$\nS0*,0.5,0.4\n"), CsvError::Behaviour(BehaviourError::RowSum { .. })));
    assert!(matches!(error(",S0,$\nS0*,-0.5,1.5\n"), CsvError::Behaviour(BehaviourError::NotAProbability { .. })));
    assert!(matches!(error(",S0,$\nS0*,1,0\n"), CsvError::Behaviour(BehaviourError::NoExit { .. })));
    assert!(error(",S0,$\nS1*,0,1\n").to_string().contains("line 2"));
}

#[test]
fn normal_think_times_below_zero() {
    // N(300, 200²) ms of the case study.
    let (m, s) = (0.3, 0.2);
    assert!((ThinkLaw::negative_mass(m, s) - 0.067).abs() < 5e-4);
    for (below_zero, mean) in [(BelowZero::Clamped, 0.3059), (BelowZero::Truncated, 0.3278)] {
        let law = ThinkLaw::Normal { location_s: m, scale_s: s, below_zero };
        assert!((law.mean_s() - mean).abs() < 5e-5, "{}", law.mean_s());
        let mut rng = <rand_chacha::ChaCha8Rng as rand::SeedableRng>::seed_from_u64(1);
        let drawn: Vec<f64> = (0..40_000).map(|_| law.draw(&mut rng)).collect();
        assert!(drawn.iter().all(|t| *t >= 0.0));
        // Five standard errors of a mean of 40 000 with standard deviation below 0.2.
        assert!((drawn.iter().sum::<f64>() / 40_000.0 - law.mean_s()).abs() < 5.0 * 0.2 / 200.0);
    }
}

#[test]
fn think_laws_are_found_again() {
    use layerfit::structure::profile::Sample;
    let mut rng = <rand_chacha::ChaCha8Rng as rand::SeedableRng>::seed_from_u64(7);
    let laws = [
        ThinkLaw::Constant { mean_s: 2.0 },
        ThinkLaw::Exponential { mean_s: 3.0 },
        ThinkLaw::Gamma { shape: 4.0, scale_s: 0.5 },
        ThinkLaw::LogNormal { mu: 0.5, sigma: 0.8 },
    ];
    for law in laws {
        let mut sample = Sample::default();
        (0..50_000).for_each(|_| assert!(sample.add(law.draw(&mut rng), 1.0)));
        let (found, distance) = ThinkLaw::fit(&sample).unwrap();
        assert_eq!(std::mem::discriminant(&found), std::mem::discriminant(&law), "{found:?}");
        assert!((found.mean_s() / law.mean_s() - 1.0).abs() < 0.03, "{found:?}");
        assert!(distance < 0.015, "{distance}");
    }
    assert_eq!(ThinkLaw::fit(&Sample::default()), None);
}

#[test]
fn figure_9_sessions_are_found_again() {
    let known = think(parse_behaviour("B0", FIGURE_9).unwrap(), ThinkLaw::Exponential { mean_s: 5.0 });
    let rows = generated(&spec(vec![(known.clone(), 1.0)], vec![(0.0, 50)], 10_000), 42);
    let model = UsageModel::of(&summary(&rows), &UsageOptions::default()).unwrap();
    assert_eq!((model.n_sessions, model.classes.len()), (10_000, 1), "{:?}", model.bic);
    let class = &model.classes[0];
    class.behaviour.check().unwrap();
    assert!(difference(&class.behaviour, &known) < 0.02);
    let entry = class.behaviour.entry().unwrap();
    assert_eq!(class.behaviour.services[entry], "S0");
    assert!(class.order.holds, "{:?}", class.order);
    assert!((class.mean_length - 3.0137).abs() < 0.1);
    assert!((class.think.unwrap().mean_s - 5.0).abs() < 0.2);
    assert!(matches!(class.behaviour.think, Some(ThinkLaw::Exponential { .. })));
    // And through the file.
    let again = parse_behaviour("B0", &class.behaviour.to_csv()).unwrap();
    assert!(difference(&again, &class.behaviour) < 1e-12);
}

#[test]
fn a_mix_of_two_behaviours_is_found_again() {
    let law = ThinkLaw::Gamma { shape: 2.0, scale_s: 1.0 };
    let [browser, buyer] = [("browser", BROWSER), ("buyer", BUYER)].map(|(name, text)| think(parse_behaviour(name, text).unwrap(), law));
    let rows = generated(&spec(vec![(browser.clone(), 0.7), (buyer.clone(), 0.3)], vec![(0.0, 100)], 10_000), 3);
    let summary = summary(&rows);
    for classes in [ClassChoice::Clustered { most: 8 }, ClassChoice::Given] {
        let model = UsageModel::of(&summary, &UsageOptions { classes, ..UsageOptions::default() }).unwrap();
        assert_eq!(model.classes.len(), 2, "{:?}", model.bic);
        for (class, known, share) in [(&model.classes[0], &browser, 0.7), (&model.classes[1], &buyer, 0.3)] {
            assert!((class.share - share).abs() < 0.02, "{classes:?} {}", class.share);
            assert!(difference(&class.behaviour, known) < 0.02, "{classes:?} {}", difference(&class.behaviour, known));
            class.behaviour.check().unwrap();
            assert!(class.order.holds, "{:?}", class.order);
        }
        assert!((model.classes.iter().map(|class| class.share).sum::<f64>() - 1.0).abs() < ROW_TOLERANCE);
    }
    // Taken for one class, what a user did before tells which kind of user it is.
    let one = UsageModel::of(&summary, &one_class()).unwrap();
    assert!(!one.classes[0].order.holds, "{:?}", one.classes[0].order);
    assert!(one.to_text().contains("warning: the next service depends on more"));
}

/// The table has the shares of the steps below it, not those of the smoothed chain.
#[test]
fn exits_are_shown_as_seen() {
    let request = |user: &str, service: &str, start: f64| (user.to_owned(), service.to_owned(), start, start + 1.0);
    let rows = [request("u-1", "A", 0.0), request("u-2", "A", 10.0), request("u-2", "B", 20.0)];
    let text = UsageModel::of(&summary(&rows), &one_class()).unwrap().to_text();
    for line in
        ["A        66.67 %     1.0000   1.0000   0.5000", "B        33.33 %     0.5000   0.0000   1.0000", "A → (exit): 0.5000 (1 times)"]
    {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn active_sessions_never_exceed_the_intensity() {
    let known = think(parse_behaviour("B0", FIGURE_9).unwrap(), ThinkLaw::Exponential { mean_s: 2.0 });
    let spec = spec(vec![(known, 1.0)], vec![(0.0, 2), (30.0, 20), (60.0, 0), (90.0, 5)], 800);
    let mut n = 0;
    let passages = spec.generate(11, &mut |_| n += 1).unwrap();
    let (mut active, mut last_s, mut reached) = (0, 0.0, Vec::new());
    for passage in &passages {
        assert!(passage.time_s >= last_s);
        (last_s, active) = (passage.time_s, if passage.enters { active + 1 } else { active - 1 });
        assert_eq!(passage.active, active);
        if passage.enters {
            assert!(active <= spec.allowed(passage.time_s), "{passage:?}");
            reached.push((passage.time_s, active));
        }
    }
    assert_eq!((passages.len(), active), (1600, 0));
    // The bound is reached in every phase that has one, and nothing starts at 0.
    for (from_s, to_s, most) in [(0.0, 30.0, Some(2)), (30.0, 60.0, Some(20)), (60.0, 90.0, None), (90.0, 1e9, Some(5))] {
        assert_eq!(reached.iter().filter(|(t, _)| *t >= from_s && *t < to_s).map(|(_, n)| *n).max(), most);
    }
    assert!(n > 800);
    // The series seen in the requests is that of the specification: a constant n is the mean number active.
    let constant = UsageSpec { intensity: vec![(0.0, 30)], n_sessions: 5000, ..spec };
    let model = UsageModel::of(&summary(&generated(&constant, 5)), &one_class()).unwrap();
    assert!((model.mean_active - 30.0).abs() < 1.0, "{}", model.mean_active);
    let inner = &model.intensity[1..model.intensity.len() - 2];
    assert!(inner.iter().all(|window| (window.active - 30.0).abs() < 0.5), "{inner:?}");
}

#[test]
fn guards_hold_and_are_found_as_candidates() {
    let text = "\
,home,signon,cart,purchase,$
home*,0.1,0.3,0.3,0.2,0.1
signon,0.4,0,0.3,0.2,0.1
cart,0.3,0.3,0,0.3,0.1
purchase,0.2,0,0.2,0,0.6
";
    let assigns = |to: &str, name: &str| Rule { to: to.to_owned(), assigns: [(name.to_owned(), true)].into(), ..Rule::default() };
    let requires = [("signedOn".to_owned(), true), ("itemInCart".to_owned(), true)].into();
    let purchase = Rule { to: "purchase".to_owned(), requires, ..Rule::default() };
    let not_twice = Rule { to: "signon".to_owned(), requires: [("signedOn".to_owned(), false)].into(), ..Rule::default() };
    let rules = vec![assigns("signon", "signedOn"), assigns("cart", "itemInCart"), purchase, not_twice];
    let requests = [("signon".to_owned(), vec!["signonForm".to_owned(), "signon".to_owned()])].into();
    let mut spec = spec(vec![(parse_behaviour("B", text).unwrap(), 1.0)], vec![(0.0, 10)], 3000);
    spec.application = Application { rules, requests };
    let summary = summary(&generated(&spec, 9));
    let services: Vec<&str> = summary.services().iter().collect();
    let mut purchases = 0;
    for session in summary.kept() {
        let names: Vec<&str> = session.services.iter().map(|s| services[*s as usize]).collect();
        if let Some(first) = names.iter().position(|name| *name == "purchase") {
            purchases += 1;
            assert!(["signon", "cart"].iter().all(|needed| names[..first].contains(needed)), "{names:?}");
        }
        assert!(names.iter().filter(|name| **name == "signon").count() <= 1);
        // The form comes right before.
        assert!(names.windows(2).all(|pair| pair[1] != "signon" || pair[0] == "signonForm"));
    }
    assert!(purchases > 100);
    let model = UsageModel::of(&summary, &one_class()).unwrap();
    let mut found: Vec<_> = model.guard_candidates.iter().map(|g| (g.service.as_str(), g.requires.as_str())).collect();
    found.sort_unstable();
    assert_eq!(found, [("purchase", "cart"), ("purchase", "signon"), ("purchase", "signonForm"), ("signon", "signonForm")]);
}

#[test]
fn specifications_that_cannot_be_generated_are_refused() {
    let known = parse_behaviour("B0", FIGURE_9).unwrap();
    let error = |spec: UsageSpec| spec.generate(1, &mut |_| {}).unwrap_err();
    assert!(matches!(error(spec(vec![(known.clone(), 0.9)], vec![(0.0, 1)], 1)), SpecError::Mix { .. }));
    assert!(matches!(error(spec(vec![(known.clone(), 1.0)], vec![], 1)), SpecError::Intensity { step: 0 }));
    assert!(matches!(error(spec(vec![(known.clone(), 1.0)], vec![(0.0, 1), (0.0, 2)], 1)), SpecError::Intensity { step: 1 }));
    assert!(matches!(error(spec(vec![(known.clone(), 1.0)], vec![(0.0, 1), (5.0, 0)], 1)), SpecError::Intensity { step: 1 }));
    let broken = Behaviour { exit: vec![0.0; 3], ..known };
    assert!(matches!(error(spec(vec![(broken, 1.0)], vec![(0.0, 1)], 1)), SpecError::Behaviour(_)));
}

/// Lengths of the sessions that requests of one user at the given times (each taking 1 s) are cut into.
fn lengths(user: User<'_>, starts: &[f64], options: SessionOptions) -> (Vec<usize>, Diagnostics) {
    let mut sessions = Sessions::new(options);
    let mut found = Vec::new();
    for start in starts {
        let request = Request { user, class: None, service: "s", start: at(*start), end: at(start + 1.0) };
        sessions.feed(&request, &mut |_, session| found.push(session.visits.len()));
    }
    let noted = sessions.finish(&mut |_, session| found.push(session.visits.len()));
    (found, noted)
}

#[test]
fn clients_are_cut_after_thirty_idle_minutes() {
    let (options, _) = seconds();
    // 1800 s after the end of the one before is the same session, a second more another.
    let starts = [0.0, 1801.0, 3603.1, 3700.0];
    assert_eq!(lengths(User::Client("c"), &starts, options).0, [2, 2]);
    assert_eq!(lengths(User::Session("c"), &starts, options).0, [4]);
    assert_eq!(lengths(User::Session("c"), &[0.0, 43_202.0], options).0, [1, 1]);
    // Requests that come late are put in their place.
    assert_eq!(lengths(User::Client("c"), &[0.0, 3600.0, 1800.0], options).0, [3]);
}

#[test]
fn sessions_are_bounded() {
    let (options, _) = seconds();
    let starts: Vec<f64> = (0..10).map(|i| f64::from(i) * 10.0).collect();
    let (found, noted) = lengths(User::Client("c"), &starts, SessionOptions { max_requests: 4, ..options });
    assert_eq!((found, noted.count("long_session")), (vec![4, 4, 2], 2));
    let mut sessions = Sessions::new(SessionOptions { max_open: 10, ..options });
    let mut n = 0;
    for i in 0..100 {
        let user = format!("u{i}");
        let request = Request { user: User::Client(&user), class: None, service: "s", start: at(f64::from(i)), end: at(f64::from(i)) };
        sessions.feed(&request, &mut |_, _| n += 1);
    }
    assert!(n >= 89);
    assert!(sessions.finish(&mut |_, _| n += 1).count("many_open_sessions") >= 89);
    assert_eq!(n, 100);
}

#[test]
fn odd_requests_are_counted() {
    let row = |service: &str, start, end| ("u".to_owned(), service.to_owned(), start, end);
    let found = summary(&[row("a", 0.0, 10.0), row("b", 5.0, 6.0), row("c", 20.0, 19.0)]);
    let model = UsageModel::of(&found, &one_class()).unwrap();
    let codes: Vec<_> = model.diagnostics.iter().map(|d| (d.code.as_str(), d.count)).collect();
    assert_eq!(codes, [("overlapping_requests", 1), ("negative_request", 1)]);
    // From the last end there was: 0 to b, 10 to c.
    assert_eq!(model.think.unwrap().mean_s, 5.0);
    assert_eq!(model.durations.mean_s, 20.0);
    assert!(UsageModel::of(&summary(&[]), &one_class()).is_err());
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (0..12_u32, 0..4_usize, 0..20_000_u32, 0..50_u32);
    prop::collection::vec(row, 1..120).prop_map(|rows| {
        let mut rows: Vec<Row> = rows
            .into_iter()
            .map(|(user, service, start, took)| {
                let start = f64::from(start);
                (format!("x-{user}"), ["a", "b", "c", "d"][service].to_owned(), start, start + f64::from(took))
            })
            .collect();
        rows.sort_by(|a, b| a.2.total_cmp(&b.2).then_with(|| a.0.cmp(&b.0)));
        rows.dedup_by(|a, b| (&a.0, a.2) == (&b.0, b.2));
        rows
    })
}

fn same(a: &UsageSummary, b: &UsageSummary) -> Result<(), TestCaseError> {
    let [a, b] = [a, b].map(|summary| UsageModel::of(summary, &UsageOptions { smoothing: 0.0, ..one_class() }).unwrap());
    prop_assert_eq!((a.n_sessions, a.n_requests, a.intensity.len()), (b.n_sessions, b.n_requests, b.intensity.len()));
    prop_assert!((a.mean_active - b.mean_active).abs() < 1e-9);
    let position = |service: &String| b.services.iter().position(|s| s == service).unwrap();
    let order: Vec<usize> = a.services.iter().map(position).collect();
    let (x, y) = (&a.classes[0], &b.classes[0]);
    for (i, p) in order.iter().enumerate() {
        prop_assert!((x.visits[i] - y.visits[*p]).abs() < 1e-9);
        prop_assert!((x.behaviour.exit[i] - y.behaviour.exit[*p]).abs() < 1e-9);
        for (j, q) in order.iter().enumerate() {
            prop_assert!((x.behaviour.transitions[(i, j)] - y.behaviour.transitions[(*p, *q)]).abs() < 1e-9);
        }
    }
    prop_assert_eq!(a.think.map(|t| (t.n, t.median_s)), b.think.map(|t| (t.n, t.median_s)));
    prop_assert!((a.durations.mean_s - b.durations.mean_s).abs() < 1e-9);
    prop_assert_eq!(a.intensity.iter().map(|w| w.starts).collect::<Vec<_>>(), b.intensity.iter().map(|w| w.starts).collect::<Vec<_>>());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Two parts of the sessions, and two parts of the requests whatever their sessions, merge to the whole.
    #[test]
    fn merged_halves_are_the_whole(rows in rows(), parts in prop::collection::vec(any::<bool>(), 120)) {
        let whole = summary(&rows);
        let user = |row: &Row| row.0[2..].parse::<usize>().unwrap() % 2 == 0;
        let (even, odd): (Vec<Row>, Vec<Row>) = rows.iter().cloned().partition(user);
        let mut by_session = summary(&odd);
        by_session.merge(summary(&even));
        same(&by_session, &whole)?;
        // The sample of kept sessions does not depend on the order.
        let kept = |s: &UsageSummary| s.kept().map(|k| (k.thinks_s.clone(), k.duration_s)).collect::<Vec<_>>();
        prop_assert_eq!(kept(&by_session), kept(&whole));

        let (session_options, options) = seconds();
        let mut halves: Vec<(Sessions, UsageSummary)> = (0..2).map(|_| (Sessions::new(session_options), UsageSummary::new(options))).collect();
        for (row, part) in rows.iter().zip(&parts) {
            let (sessions, summary) = &mut halves[usize::from(*part)];
            feed(sessions, summary, std::slice::from_ref(row));
        }
        let (other, other_summary) = halves.pop().unwrap();
        let (mut sessions, mut merged) = halves.pop().unwrap();
        sessions.merge(other);
        merged.merge(other_summary);
        sessions.finish(&mut |names, session| merged.absorb(names, &session));
        same(&merged, &whole)?;
    }

    /// Without smoothing, the chain's visits are the mean visits that were seen; smoothed or not, it is a behaviour.
    #[test]
    fn visits_of_the_chain_are_those_seen(rows in rows(), smoothing in 0.0..2.0_f64) {
        let summary = summary(&rows);
        let plain = UsageModel::of(&summary, &UsageOptions { smoothing: 0.0, ..one_class() }).unwrap();
        let class = &plain.classes[0];
        let visits = class.behaviour.visits().unwrap();
        prop_assert!(visits.iter().zip(&class.visits).all(|(a, b)| (a - b).abs() < 1e-6 * (1.0 + b)), "{visits:?} {:?}", class.visits);
        prop_assert!((class.visits.iter().sum::<f64>() - class.mean_length).abs() < 1e-9 * class.mean_length);
        let smooth = UsageModel::of(&summary, &UsageOptions { smoothing, ..one_class() }).unwrap();
        prop_assert!(smooth.classes[0].behaviour.check().is_ok());
        prop_assert_eq!(&smooth.classes[0].visits, &class.visits);
        prop_assert!((smooth.usage_profile().values().sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
