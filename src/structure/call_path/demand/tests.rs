use proptest::prelude::*;

use super::*;
use crate::trace::diagnostics::Diagnostics;

const EXACT: f64 = 1e-12;

fn check_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1e-3), "{found} is not {expected}");
    }
}

#[test]
fn regression_finds_demands_that_made_the_utilisations() {
    let rows = [vec![10.0, 2.0], vec![5.0, 8.0], vec![1.0, 1.0], vec![20.0, 3.0]];
    let demands = [0.02, 0.05];
    let busy: Vec<f64> = rows.iter().map(|row| row[0] * demands[0] + row[1] * demands[1]).collect();
    let found = nnls(&rows, &busy);
    check_close(&found.solution, &demands);
    assert!(found.converged && found.residual_norm < EXACT && found.rank == 2);
}

#[test]
fn a_demand_that_would_be_negative_is_zero() {
    // By plain least squares the second would be −1.
    let rows = [vec![1.0, 0.0], vec![1.0, 1.0], vec![0.0, 1.0]];
    let found = nnls(&rows, &[2.0, 1.0, -1.0]);
    check_close(&found.solution, &[1.5, 0.0]);
    assert!(found.converged);
}

#[test]
fn throughputs_that_rise_together_share_the_load() {
    let rows = [vec![1.0, 1.0], vec![2.0, 2.0], vec![3.0, 3.0]];
    let found = nnls(&rows, &[0.2, 0.4, 0.6]);
    assert!(found.converged && found.rank <= 2);
    assert!((found.solution[0] + found.solution[1] - 0.2).abs() < 1e-9, "{found:?}");
}

#[test]
fn nothing_gives_nothing() {
    assert_eq!(nnls(&[], &[]).solution, Vec::<f64>::new());
    assert_eq!(nnls(&[vec![0.0, 0.0]], &[1.0]).solution, [0.0, 0.0]);
}

#[test]
fn delays_are_interpolated_and_constant_outside() {
    let delay = ConnectionDelay { samples: vec![(0.8, 0.030), (0.2, 0.010), (0.8, 0.050)] };
    check_close(&[delay.at(0.5), delay.at(0.0), delay.at(0.99), delay.at(0.8)], &[0.025, 0.010, 0.040, 0.040]);
    check_close(&[delay.added_to(0.1, 3.0, 0.5), ConnectionDelay::default().at(0.5)], &[0.175, 0.0]);
}

fn action(name: &str, component: &str, self_time_s: f64, throughput_per_s: f64) -> ObservedAction {
    let [name, component, process] = [name, component, component].map(str::to_owned);
    ObservedAction { name, component, process, server: None, self_time_s, throughput_per_s }
}

/// The action of a component on a server.
fn on(server: &str, action: ObservedAction) -> ObservedAction {
    ObservedAction { process: format!("{server}::{}", action.component), server: Some(server.to_owned()), ..action }
}

fn interval(utilization: f64, throughputs_per_s: &[(&str, f64)]) -> Interval {
    Interval { utilization, throughputs_per_s: throughputs_per_s.iter().map(|(name, x)| ((*name).to_owned(), *x)).collect() }
}

fn demands(estimates: &[DemandEstimate]) -> Vec<f64> {
    estimates.iter().map(|estimate| estimate.demand_s).collect()
}

fn resource(utilizations: &[f64]) -> Resource {
    let intervals = utilizations.iter().map(|u| Interval { utilization: *u, throughputs_per_s: IndexMap::new() }).collect();
    Resource {
        name: "cpu".to_owned(),
        cores: 1.0,
        server: None,
        components: Vec::new(),
        intervals,
        response_times_s: IndexMap::new(),
        overhead: None,
    }
}

#[test]
fn the_rule_that_fits_is_used_and_said() {
    let actions = [action("A.x", "A", 0.030, 20.0), action("B.y", "B", 0.060, 10.0)];
    let mut diagnostics = Diagnostics::default();
    let ratios = estimate(&resource(&[0.6]), &actions, &mut diagnostics);
    check_close(&ratios.iter().map(|e| e.demand_s).collect::<Vec<_>>(), &[0.015, 0.030]);
    assert_eq!((ratios[0].rule, diagnostics.count("wrr_used"), diagnostics.count("overhead_unknown")), (Rule::ResponseTimeRatios, 1, 1));
    let low = estimate(&resource(&[0.1]), &actions, &mut diagnostics);
    assert_eq!((low[0].rule, low[0].demand_s, diagnostics.count("low_load_rule_used")), (Rule::LowLoad, 0.030, 1));
    let only_a = Resource { components: vec!["A".to_owned()], overhead: Some([(0.54, 36.0), (0.60, 35.0)]), ..resource(&[0.6]) };
    let law = estimate(&only_a, &actions, &mut diagnostics);
    assert_eq!((law.len(), law[0].rule), (1, Rule::ServiceDemandLaw));
    check_close(&[law[0].demand_s], &[0.030 * 0.875]);
    assert!(estimate(&resource(&[1.2]), &actions, &mut diagnostics).is_empty());
    assert_eq!(diagnostics.count("utilisation_out_of_range"), 1);
    let beyond = estimate(&resource(&[1.0]), &[action("A.x", "A", 0.001, 20.0)], &mut diagnostics);
    assert_eq!((beyond.len(), diagnostics.count("D>R")), (1, 1));
}

#[test]
fn two_resources_have_their_own_response_times() {
    let actions = [action("A.x", "A", 0.030, 20.0), action("A.y", "A", 0.060, 10.0)];
    let mut database = resource(&[0.4]);
    database.response_times_s.extend([("A.x".to_owned(), 0.010), ("A.y".to_owned(), 0.060)]);
    let found = estimate(&database, &actions, &mut Diagnostics::default());
    check_close(&found.iter().map(|e| e.demand_s).collect::<Vec<_>>(), &[0.005, 0.030]);
}

proptest! {
    /// Karush-Kuhn-Tucker: nothing is negative, and no column could still lessen the residual.
    #[test]
    fn regression_meets_the_conditions_of_a_minimum(
        rows in prop::collection::vec(prop::collection::vec(0.0..10.0_f64, 3), 1..8),
        b in prop::collection::vec(-5.0..5.0_f64, 8),
    ) {
        let found = nnls(&rows, &b);
        prop_assert!(found.converged);
        let residual: Vec<f64> = rows.iter().zip(&b).map(|(row, b)| b - row.iter().zip(&found.solution).map(|(a, x)| a * x).sum::<f64>()).collect();
        for column in 0..3 {
            let gradient: f64 = rows.iter().zip(&residual).map(|(row, r)| row[column] * r).sum();
            prop_assert!(found.solution[column] >= 0.0);
            prop_assert!(gradient <= 1e-6, "column {column} could grow: {gradient}");
            prop_assert!(found.solution[column] == 0.0 || gradient.abs() <= 1e-6, "{column}: {gradient}");
        }
    }

    /// Σ X D = m U.
    #[test]
    fn ratios_keep_the_utilisation_law(
        actions in prop::collection::vec((0.1..100.0_f64, 0.001..1.0_f64), 1..10), u in 0.0..1.0_f64, m in 1.0..16.0_f64,
    ) {
        let (x, r): (Vec<f64>, Vec<f64>) = actions.into_iter().unzip();
        let demands = weighted_response_times(u, m, &x, &r).unwrap();
        let busy: f64 = x.iter().zip(&demands).map(|(x, d)| x * d).sum();
        prop_assert!((busy - m * u).abs() < 1e-9);
    }
}

/// A slip of a name would leave the throughput of the records in place of the one measured.
#[test]
fn measurements_of_what_is_not_there_are_told() {
    let mut measured = resource(&[0.6]);
    measured.intervals[0].throughputs_per_s = [("App.bye", 20.0), ("App.browse", 5.0)].map(|(name, x)| (name.to_owned(), x)).into();
    measured.components = vec!["App".to_owned(), "Ap".to_owned()];
    let actions = [action("App.buy", "App", 0.02, 10.0), action("App.browse", "App", 0.01, 10.0)];
    let mut diagnostics = Diagnostics::default();
    assert_eq!(estimate(&measured, &actions, &mut diagnostics).len(), 2);
    assert_eq!(diagnostics.count("resource_of_nothing"), 2);
}

/// Two replicas make 10 requests a second each; the CPU of one is half busy with its ten, not with all twenty.
#[test]
fn a_resource_of_one_server_is_used_by_what_runs_there() {
    let replicas = ["S0", "S1"].map(|server| on(server, action("A.x", "A", 0.08, 10.0)));
    let mut diagnostics = Diagnostics::default();
    let mut estimated = |resource: Resource| estimate(&resource, &replicas, &mut diagnostics);
    let of_server = estimated(Resource { server: Some("S0".to_owned()), ..resource(&[0.5]) });
    let of_process = estimated(Resource { components: vec!["S0::A".to_owned()], ..resource(&[0.5]) });
    for found in [&of_server, &of_process] {
        check_close(&demands(found), &[0.05]);
        assert_eq!((found[0].rule, found[0].processes.as_slice()), (Rule::ServiceDemandLaw, ["S0::A".to_owned()].as_slice()));
    }
    let shared = estimated(resource(&[0.5]));
    check_close(&demands(&shared), &[0.025]);
    assert_eq!(shared[0].processes, ["S0::A", "S1::A"]);
    assert!(estimated(Resource { server: Some("S2".to_owned()), ..resource(&[0.5]) }).is_empty());
    assert_eq!(["resource_of_replicas", "resource_of_nothing", "resource_not_used"].map(|code| diagnostics.count(code)), [1, 1, 1]);
}

/// Ten and forty milliseconds make .6 and .2 of 20 and 10, and of 20 and 0 a second: as many intervals as actions.
#[test]
fn as_many_intervals_as_actions_tell_demands_apart_in_any_order() {
    let actions = [action("A.a", "A", 0.03, 20.0), action("A.b", "A", 0.03, 10.0)];
    let mut intervals = vec![interval(0.6, &[("A.a", 20.0), ("A.b", 10.0)]), interval(0.2, &[("A.a", 20.0), ("A.b", 0.0)])];
    for _ in 0..2 {
        let mut diagnostics = Diagnostics::default();
        let found = estimate(&Resource { intervals: intervals.clone(), ..resource(&[]) }, &actions, &mut diagnostics);
        check_close(&demands(&found), &[0.01, 0.04]);
        assert_eq!((found[0].rule, diagnostics.count("intervals_averaged")), (Rule::Regression, 0));
        intervals.reverse();
    }
}

/// Throughputs that rise together, and fewer intervals than actions: the means are those of one interval.
#[test]
fn intervals_that_do_not_tell_demands_apart_are_averaged() {
    let two = [action("A.a", "A", 0.01, 1.0), action("A.b", "A", 0.04, 1.0)];
    let rising = vec![interval(0.2, &[("A.a", 10.0), ("A.b", 5.0)]), interval(0.6, &[("A.a", 30.0), ("A.b", 15.0)])];
    let three = [two[0].clone(), two[1].clone(), action("A.c", "A", 0.1, 0.0)];
    for (actions, expected) in [(two.as_slice(), vec![0.4 / 60.0, 1.6 / 60.0]), (&three, vec![0.4 / 60.0, 1.6 / 60.0, 4.0 / 60.0])] {
        let mut backwards = rising.clone();
        backwards.reverse();
        let mut diagnostics = Diagnostics::default();
        let [found, again] =
            [rising.clone(), backwards].map(|intervals| estimate(&Resource { intervals, ..resource(&[]) }, actions, &mut diagnostics));
        check_close(&demands(&found), &expected);
        assert_eq!((&found, found[0].rule), (&again, Rule::ResponseTimeRatios));
        assert_eq!((diagnostics.count("intervals_averaged"), diagnostics.count("wrr_used")), (2, 2));
    }
}

#[test]
fn a_rule_that_yields_nothing_is_not_said_to_be_used() {
    let idle = [action("A.a", "A", 0.0, 1.0), action("A.b", "A", 0.0, 1.0)];
    let mut diagnostics = Diagnostics::default();
    assert!(estimate(&resource(&[0.5]), &idle, &mut diagnostics).is_empty());
    assert_eq!((diagnostics.count("wrr_used"), diagnostics.count("demands_not_known")), (0, 1));
}

/// 30 ms, of which 10 in the database: 20 ms are left for the application's CPU, 10 for the database's.
#[test]
fn a_resource_has_the_self_time_without_what_others_say_is_theirs() {
    let actions = [action("A.x", "A", 0.030, 20.0), action("A.y", "A", 0.001, 20.0)];
    let mut database = resource(&[0.1]);
    database.response_times_s.extend([("A.x".to_owned(), 0.010), ("A.y".to_owned(), 0.002)]);
    let both = [resource(&[0.1]), database];
    let found = [0, 1].map(|at| demands(&estimate(&both[at], &without_others(at, &both, &actions), &mut Diagnostics::default())));
    check_close(&found[0], &[0.020, 0.0]);
    check_close(&found[1], &[0.010, 0.002]);
}
