//! What few or mixed data do not say.

use layerfit::{
    fit::{
        Estimated, Fit, Measured, Method, ParameterEstimate, Problem, Trial, Trials, Weighting, compare,
        f_test::Preferred,
        problem::{ErrorScale, Intervals, Starts},
    },
    predict::{Scenarios, predict},
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::three_queue::{TRUE_DEMANDS, fitted, problem, starting_at, truth};

/// Of the three queues at think time 10: `values` by trial and column, with relative standard errors where there are any.
fn trials(columns: &[(&str, Option<f64>)], users: &[f64], values: &[&[f64]]) -> Trials {
    let trial = |(k, (users, row)): (usize, (&f64, &&[f64]))| {
        let cell = |(v, (_, error)): (&f64, &(&str, Option<f64>))| {
            Some(Measured { value: *v, std_error: error.map(|share| share * v), weight: None })
        };
        Trial {
            id: (k + 1).to_string(),
            controlled: [("users", *users), ("think", 10.0)].into_iter().collect(),
            measured: row.iter().zip(columns).map(cell).collect(),
            ..Trial::default()
        }
    };
    let measures = columns.iter().map(|(m, _)| m.parse().unwrap()).collect();
    Trials { measures, trials: users.iter().zip(values).enumerate().map(trial).collect() }
}

fn said(fit: &Fit, what: &str) -> bool {
    fit.notes.iter().any(|note| note.contains(what))
}

const ALL: [&str; 4] = ["residence_time(q1)", "residence_time(q2)", "residence_time(q3)", "throughput(Users)"];

/// Throughputs alone are the same with two demands exchanged. The least has two alike, `E` = .0477; between two others that are alike is a
/// saddle of .179, which a search from there takes for a minimum.
#[test]
fn more_starts_do_not_lead_up() {
    let values =
        [0.052_741_532_464_727_806, 0.134_456_280_820_462_35, 0.184_382_536_253_739_1, 0.212_819_201_412_085_88, 0.230_303_468_158_360_97];
    let errors = [
        0.001_578_947_368_421_052_4,
        0.004_029_850_746_268_657,
        0.005_591_332_310_473_107,
        0.006_480_605_833_804_59,
        0.006_955_908_449_233_801,
    ];
    let rows: Vec<&[f64]> = values.iter().map(std::slice::from_ref).collect();
    let mut asked = problem(trials(&[("throughput(Users)", None)], &[1.0, 3.0, 5.0, 7.0, 9.0], &rows));
    for (trial, error) in asked.trials.trials.iter_mut().zip(errors) {
        trial.measured[0].as_mut().unwrap().std_error = Some(error);
    }
    let asked = starting_at(asked, &[2.0, 3.0, 4.0]);
    let once = fitted(&asked).unwrap();
    let mut more = asked.clone();
    more.method.starts = Some(Starts { n: 20, seed: 1 });
    let more = fitted(&more).unwrap();
    assert!(
        once.sum_of_squares < 0.048 && more.sum_of_squares <= once.sum_of_squares * 1.000_01,
        "{} {}",
        once.sum_of_squares,
        more.sum_of_squares
    );
    assert!(said(&once, "to first order"), "{:?}", once.notes);
}

/// Times of the first two with errors that are stated ten times too small, and others without any: each keeps its own size.
#[test]
fn measures_with_and_without_errors_share_one_scale() {
    let columns: Vec<(&str, Option<f64>)> =
        ALL.iter().map(|m| (*m, (m.ends_with("(q1)") || m.ends_with("(q2)")).then_some(0.003))).collect();
    let values: [&[f64]; 5] = [
        &[2.122_46, 2.769_99, 4.050_17, 0.051_74],
        &[2.397_76, 3.989_41, 5.530_42, 0.133_39],
        &[2.794_16, 5.793_18, 8.749_47, 0.184_41],
        &[3.221_38, 6.495_70, 12.130_50, 0.213_49],
        &[3.584_08, 7.872_27, 17.852_53, 0.230_47],
    ];
    let asked = starting_at(problem(trials(&columns, &[1.0, 3.0, 5.0, 7.0, 9.0], &values)), &[2.0, 3.0, 4.0]);
    let fit = fitted(&asked).unwrap();
    let q3 = fit.weighting.measures.values().nth(2).unwrap();
    assert!(q3.deviation.unwrap() < 2.0 * q3.rms_residual, "{q3:?}");
    assert!(said(&fit, "the errors given for others are taken to be"), "{:?}", fit.notes);
    // Errors that are given for all need no factor.
    let given = columns.iter().map(|(m, _)| (*m, Some(0.003))).collect::<Vec<_>>();
    let alone = fitted(&starting_at(problem(trials(&given, &[1.0, 3.0, 5.0, 7.0, 9.0], &values)), &[2.0, 3.0, 4.0])).unwrap();
    assert!(!said(&alone, "the errors given for others"), "{:?}", alone.notes);
}

/// One trial of four values with known errors: that the first demand is not 2 is told with one value more than parameters, p = .0007.
#[test]
fn known_errors_are_compared_by_chi_square() {
    let columns: Vec<(&str, Option<f64>)> = ALL.iter().map(|m| (*m, None)).collect();
    let mut with = starting_at(problem(trials(&columns, &[1.0], &[&[2.2, 2.97, 4.04, 0.051_578_947_368]])), &[2.0, 3.0, 4.0]);
    for (cell, error) in with.trials.trials[0].measured.iter_mut().zip([0.06, 0.09, 0.12, 0.001_578_947_368_4]) {
        cell.as_mut().unwrap().std_error = Some(error);
    }
    with.method.error_scale = ErrorScale::Known;
    let mut without = with.clone();
    without.estimate.remove(0);
    without.assumed.set("d1", 2.0);
    let found = compare(&fitted(&without).unwrap(), &fitted(&with).unwrap()).unwrap();
    assert!(found.test.errors_known && (found.test.p_value - 0.0007).abs() < 1e-4, "{:?}", found.test);
    assert_eq!(found.test.preferred, Preferred::Larger);
    assert!(found.to_text().contains("chi-square(1)"), "{}", found.to_text());
}

/// Three queues, nine trials at three loads, errors of 3 % as they came from a generator.
fn replicated() -> Problem {
    let columns: Vec<(&str, Option<f64>)> = ALL.iter().map(|m| (*m, None)).collect();
    let values: [&[f64]; 9] = [
        &[1.9342, 3.085_327, 3.972_888, 0.045_69],
        &[2.790_153, 5.583_447, 8.816_039, 0.188_682],
        &[3.613_828, 8.392_211, 20.410_607, 0.236_115],
        &[1.932_697, 2.976_053, 3.679_415, 0.053_683],
        &[2.968_742, 5.118_744, 9.196_305, 0.182_683],
        &[3.651_949, 8.366_026, 20.016_289, 0.236_956],
        &[1.961_46, 2.874_51, 3.760_028, 0.048_087],
        &[2.729_419, 5.221_066, 8.832_609, 0.191_406],
        &[3.695_72, 8.954_07, 20.207_774, 0.234_168],
    ];
    let users: Vec<f64> = [1.0, 5.0, 10.0].into_iter().cycle().take(9).collect();
    starting_at(problem(trials(&columns, &users, &values)), &[2.0, 3.0, 4.0])
}

/// Around the covariance that is pooled from them, replicates scatter as it says whatever they are.
#[test]
fn misfit_is_not_tested_against_the_weights_own_replicates() {
    let mut asked = replicated();
    asked.weighting = Weighting::Replicates;
    let fit = fitted(&asked).unwrap();
    assert_eq!(fit.diagnosis.lack_of_fit, None);
    assert!(said(&fit, "are estimated from 9 trials: intervals, bands and tests allow for that"), "{:?}", fit.notes);
    let known = Problem { method: Method { error_scale: ErrorScale::Known, ..Method::default() }, ..asked.clone() };
    let (by_replicates, known) = (fitted(&asked).unwrap(), fitted(&known).unwrap());
    assert!(known.identifiability.estimated_variances.is_none() && said(&known, "intervals and tests are too sharp"), "{:?}", known.notes);
    let variances = by_replicates.identifiability.estimated_variances.as_ref().unwrap();
    let of: Vec<(usize, usize)> = variances.groups.iter().map(|g| (g.measures.len(), g.n)).collect();
    assert_eq!((of[..4].to_vec(), of[4..].to_vec()), (vec![(1, 9); 4], vec![(2, 9); 6]));
    for (k, p) in by_replicates.parameters.values().enumerate() {
        // Six degrees of freedom for each element of the covariance of four measures.
        assert!((6.0..33.0).contains(&p.degrees_of_freedom.unwrap()), "{p:?}");
        assert!(p.std_error.unwrap() > 1.1 * variances.covariance[k][k].sqrt(), "{p:?}");
    }
    assert!(fitted(&replicated()).unwrap().diagnosis.lack_of_fit.is_some());
}

/// Normal errors, four trials, no standard errors: the throughput is fitted closely, and nothing is an outlier for that.
#[test]
fn values_that_the_fit_is_bent_to_make_no_outliers() {
    let columns: Vec<(&str, Option<f64>)> = ALL.iter().map(|m| (*m, None)).collect();
    let values: [&[f64]; 4] = [
        &[2.0526, 3.1591, 4.1136, 0.0481],
        &[2.7179, 4.5286, 7.4745, 0.1578],
        &[3.3299, 6.625, 12.085, 0.2143],
        &[3.6431, 8.5641, 19.7473, 0.2306],
    ];
    let fit = fitted(&starting_at(problem(trials(&columns, &[1.0, 4.0, 7.0, 10.0], &values)), &[2.0, 3.0, 4.0])).unwrap();
    assert!(fit.diagnosis.outliers.is_empty(), "{:?}", fit.diagnosis.outliers);
    assert!(said(&fit, "estimated from the residuals of 4 trials"), "{:?}", fit.notes);
}

/// Values of the model itself leave nothing to be tested, and copies are told.
#[test]
fn exact_and_copied_data_are_told_and_not_tested() {
    let measures: Vec<_> = ALL.iter().map(|m| m.parse().unwrap()).collect();
    let columns: Vec<(&str, Option<f64>)> = ALL.iter().map(|m| (*m, Some(0.01))).collect();
    let users = [1.0, 4.0, 7.0, 10.0, 10.0];
    let exact: Vec<Vec<f64>> = users.iter().map(|n| truth(*n, 10.0, &measures)).collect();
    let rows: Vec<&[f64]> = exact.iter().map(Vec::as_slice).collect();
    let mut asked = starting_at(problem(trials(&columns, &users, &rows)), &[2.5, 2.5, 4.5]);
    asked.method.error_scale = ErrorScale::Known;
    let fit = fitted(&asked).unwrap();
    let d = &fit.diagnosis;
    assert!(d.outliers.is_empty() && d.normality.is_none() && d.trials.is_empty(), "{d:?}");
    assert!(said(&fit, "zero to rounding") && !said(&fit, "say nothing about the error"), "{:?}", fit.notes);
    assert!(said(&fit, "trials \"5\" are the same as earlier ones"), "{:?}", fit.notes);
    assert!(fit.to_text().contains("errors are known: it scales no interval"), "{}", fit.to_text());
}

/// The demand's profile ends at .20 below and nowhere above; what Wald's interval said is not said of it.
#[test]
fn one_end_of_a_profile_is_printed() {
    let values = [0.047_87, 0.1188, 0.134_39, 0.192_08];
    let rows: Vec<&[f64]> = values.iter().map(std::slice::from_ref).collect();
    let mut asked = problem(trials(&[("throughput(Users)", None)], &[1.0, 2.0, 3.0, 5.0], &rows));
    for (trial, error) in asked.trials.trials.iter_mut().zip([0.005_78, 0.010_67, 0.014_61, 0.019_85]) {
        trial.measured[0].as_mut().unwrap().std_error = Some(error);
    }
    asked.estimate = vec![Estimated::new("d1").starting_at(1.0)];
    asked.assumed.set("d2", 3.0);
    asked.assumed.set("d3", 4.0);
    asked.method.intervals = Intervals::Profile;
    let fit = fitted(&asked).unwrap();
    let p = &fit.parameters["d1"];
    assert!(p.explanation.as_ref().is_none_or(|why| !why.contains("half-width")), "{p:?}");
    let text = fit.to_text();
    assert_eq!(p.lower.is_some() != p.upper.is_some(), text.contains("no end"), "{text}");
}

/// The repair shop with three servers as well as with two: a sum of squares of 18.58 and of 18.63.
#[test]
fn a_neighbour_that_explains_as_much_is_not_excluded() {
    let text = "G \"repair\" 1e-9 100 1 0.9 -1 P 0 p desk i p p1 f m $servers p p2 f -1 \
        T 0 t Users r cycle -1 desk z $think m $users t q1 i e1 -1 p1 t q2 f e2 -1 p2 -1 \
        E 0 s cycle 0 -1 y cycle e1 1 -1 y cycle e2 1 -1 s e1 $d1 -1 s e2 $d2 -1 -1";
    let csv = "$users,$think,residence_time(q1),stderr(residence_time(q1)),residence_time(q2),stderr(residence_time(q2)),throughput(Users),\
        stderr(throughput(Users))\n\
        1,5,0.9329401305,0.12,0.2815993746,0.036,0.1883640283,0.01904761905\n\
        2,5,0.8824348451,0.12,0.2789052475,0.03771428571,0.3254470302,0.03800904978\n\
        4,5,0.5754393388,0.120158855,0.3574959457,0.04162813639,0.5667333755,0.07561168759\n\
        6,5,0.8990202447,0.1214106758,0.3955080896,0.04632931022,0.7854600803,0.1125381089\n\
        8,5,0.9555345530,0.1244756549,0.4639009408,0.05201202297,1.3092071563,0.1483603710\n\
        10,5,0.9736334444,0.1299276445,0.4810560758,0.05890373981,1.5139000279,0.1825485178\n\
        14,5,1.3401757438,0.1501515722,0.6061139894,0.07733677245,1.9756143200,0.2435699395\n\
        18,5,1.4325258588,0.1879165125,0.7978957023,0.1034056320,2.4137878224,0.2908039496\n";
    let mut asked = problem(Trials::from_csv(csv.as_bytes()).unwrap());
    asked.model = layerfit::model::lqn_text::parse(text).unwrap();
    asked.estimate = [("d1", 1.0), ("d2", 0.3), ("servers", 2.0)].map(|(name, start)| Estimated::new(name).starting_at(start)).to_vec();
    let fit = fitted(&asked).unwrap();
    let servers = &fit.parameters["servers"];
    assert_eq!((servers.estimate, servers.lower), (3.0, Some(2.0)), "{servers:?}");
    assert!(servers.explanation.as_ref().unwrap().ends_with("; 2 is not excluded"), "{servers:?}");
}

/// Errors of 2 to 5 % of the mean, of five measures at five loads, whose sizes only the residuals tell. With the variances taken for known, 95 %
/// intervals of such fits held the demands in 88 % of 400 data sets, the band of the throughput its mean in 83, the ellipsoid all three in 77.
#[test]
fn intervals_cover_where_few_residuals_tell_the_variances() {
    let columns = ["response_time(Users)", "throughput(Users)", "utilization(q1)", "utilization(q2)", "utilization(q3)"];
    let shares = [0.05, 0.02, 0.03, 0.03, 0.03];
    let users = [1.0, 3.0, 6.0, 8.0, 10.0];
    let measures: Vec<_> = columns.iter().map(|m| m.parse().unwrap()).collect();
    let exact: Vec<Vec<f64>> = users.iter().map(|n| truth(*n, 10.0, &measures)).collect();
    let sizes: Vec<f64> = (0..5).map(|k| shares[k] * exact.iter().map(|row| row[k]).sum::<f64>() / 5.0).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    const SETS: u32 = 200;
    let (mut each, mut all, mut means, mut sharper) = (0_u32, 0_u32, 0_u32, 0_u32);
    let at_15 = truth(15.0, 10.0, &measures[1..2])[0];
    for _ in 0..SETS {
        let mut noisy = |row: &Vec<f64>| -> Vec<f64> {
            row.iter()
                .zip(&sizes)
                .map(|(v, s)| {
                    let e: f64 = StandardNormal.sample(&mut rng);
                    v + s * e
                })
                .collect()
        };
        let rows: Vec<Vec<f64>> = exact.iter().map(&mut noisy).collect();
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let fit = fitted(&starting_at(problem(trials(&columns.map(|m| (m, None)), &users, &rows)), &[2.5; 3])).unwrap();
        let holds = |p: &ParameterEstimate, truth: f64| p.lower.unwrap() <= truth && truth <= p.upper.unwrap();
        each += fit.parameters.values().zip(TRUE_DEMANDS).map(|(p, d)| u32::from(holds(p, d))).sum::<u32>();
        let joint = fit.joint.as_ref().unwrap();
        all += u32::from(
            fit.parameters
                .iter()
                .zip(TRUE_DEMANDS)
                .all(|((name, _), d)| joint.bonferroni[name].lower <= d && d <= joint.bonferroni[name].upper),
        );
        let found = predict(&fit, &Scenarios::parse(&["users=15".to_owned()]).unwrap(), &measures[1..2], 0.95).unwrap();
        let throughput = &found.rows[0].measures[0];
        means += u32::from(throughput.lower.unwrap() <= at_15 && at_15 <= throughput.upper.unwrap());
        let dof = fit.parameters["d1"].degrees_of_freedom.unwrap();
        sharper += u32::from(dof < fit.degrees_of_freedom as f64);
        let variances = fit.identifiability.estimated_variances.as_ref().unwrap();
        assert_eq!((variances.groups.len(), variances.most_degrees_of_freedom), (5, 22));
    }
    let share = |n: u32, of: u32| f64::from(n) / f64::from(of);
    let found = [share(each, 3 * SETS), share(all, SETS), share(means, SETS)];
    assert!(found[0] > 0.925 && found[1] > 0.91 && found[2] > 0.89, "{found:?}");
    assert_eq!(sharper, SETS);
}

/// With one variance, or with errors that are given, nothing of that is there.
#[test]
fn one_scale_of_all_errors_leaves_students_t_as_it_is() {
    let fit = fitted(&problem(trials_of_one_measure())).unwrap();
    assert!(fit.identifiability.estimated_variances.is_none() && fit.parameters.values().all(|p| p.degrees_of_freedom.is_none()));
}

fn trials_of_one_measure() -> Trials {
    let mut few = super::three_queue::trials(10.0, 0.02, 5);
    few.trials.iter_mut().flat_map(|t| &mut t.measured).flatten().for_each(|m| m.std_error = Some(0.02 * m.value));
    few
}

/// The customers' own processor does nothing: its zeros say nothing, not even that errors are estimated.
#[test]
fn what_is_left_out_decides_nothing() {
    let mut without = problem(trials_of_one_measure());
    without.method.error_scale = ErrorScale::Known;
    let mut with = without.clone();
    let (mut waits, idle) = (with.clone(), Measured { value: 0.0, std_error: None, weight: None });
    with.trials.measures.push("utilization(desk)".parse().unwrap());
    with.trials.trials.iter_mut().for_each(|t| t.measured.push(Some(idle)));
    let (without, with) = (fitted(&without).unwrap(), fitted(&with).unwrap());
    assert_eq!((with.error_scale, with.parameters, with.information), (ErrorScale::Known, without.parameters.clone(), without.information));
    assert!(said_by(&with.notes, "its 10 zeros tell nothing"));
    // Nobody waits for a task with threads for all.
    waits.model.tasks[1].scheduling = layerfit::model::TaskScheduling::Inf;
    let alone = fitted(&waits).unwrap();
    waits.trials.measures.push("waiting(cycle->e1)".parse().unwrap());
    waits.trials.trials.iter_mut().for_each(|t| t.measured.push(Some(idle)));
    let found = fitted(&waits).unwrap();
    assert_eq!((found.degrees_of_freedom, found.parameters), (alone.degrees_of_freedom, alone.parameters));
    assert!(said_by(&found.notes, "nothing waits there"), "{:?}", found.notes);
}

fn said_by(notes: &[String], what: &str) -> bool {
    notes.iter().any(|note| note.contains(what))
}

/// Covariances are asked for of what counts only.
#[test]
fn covariances_need_not_be_given_of_what_is_left_out() {
    let csv = "$users,$think,throughput(Users),stderr(throughput(Users)),residence_time(q1),stderr(residence_time(q1)),\
               covariance(throughput(Users);residence_time(q1)),utilization(desk)\n\
               1,10,0.053,0.001,2.0,0.05,0.00001,0\n4,10,0.165,0.002,2.7,0.06,0.00003,0\n8,10,0.223,0.002,3.4,0.07,0.00004,0\n";
    let mut asked = problem(Trials::from_csv(csv.as_bytes()).unwrap());
    asked.estimate.truncate(1);
    asked.assumed = [("d2", 3.0), ("d3", 4.0)].into_iter().collect();
    let fit = fitted(&asked).unwrap();
    assert_eq!((fit.n_observations, fit.degrees_of_freedom), (6, 5));
}
