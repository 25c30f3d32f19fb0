//! A real PostgreSQL: trials at the lower loads fit a model, which predicts the higher ones.

use std::{fmt::Write, fs, path::Path};

use serde_json::json;

use super::{
    super::Failure,
    client::{Client, text},
};
use crate::{
    fit::{Fit, trials::Trials},
    model::Measure,
    predict::{
        Predictions,
        plot::{PlotOptions, plot},
    },
};

const MODEL: &str = include_str!("../../../examples/pgbench/model.lqnx");
const TRIALS: &str = include_str!("../../../examples/pgbench/trials.csv");
/// Controlled values of the trials: the number of clients, and the mean think time that they really had.
const LOAD: &str = "clients";
const THINK: &str = "think";
/// Points of a plotted curve.
const CURVE_POINTS: f64 = 48.0;
/// How far a trial's think time may be from the mean for its point to be drawn with the curve at the mean.
const THINK_TOLERANCE: f64 = 0.5;

/// Fits the lower half of the loads, predicts the upper half, and says how far off that was.
pub(super) async fn show(client: &Client, out: &Path) -> Result<(), Failure> {
    let all = Trials::from_csv(TRIALS.as_bytes()).map_err(|e| Failure::internal(&e))?;
    let (lower, upper, limit) = split(&all);
    tell!("\nPostgreSQL under pgbench: {} trials; fitted to those of up to {limit} clients, the rest is held out", all.trials.len());
    let system = client.post("/v1/systems", "application/json", json!({"name": "pgbench"}).to_string().as_bytes()).await?;
    let system = text(&system, "id")?.to_owned();
    let model = client.post(&format!("/v1/systems/{system}/models"), "application/xml", MODEL.as_bytes()).await?;
    let trials = client.post(&format!("/v1/systems/{system}/trials"), "text/csv", lower.to_csv().as_bytes()).await?;
    let request = json!({
        "trials": text(&trials, "id")?,
        "estimate": {"cpu_s": {"start": 0.01, "min": 0}, "log_s": {"start": 0.001, "min": 0}},
        "weighting": "residual",
        "confidence": 0.95
    });
    let accepted =
        client.post(&format!("/v1/models/{}/fits", text(&model, "id")?), "application/json", request.to_string().as_bytes()).await?;
    client.wait(&accepted).await?;
    let id = text(&accepted, "id")?.to_owned();
    let found = client.get(&format!("/v1/fits/{id}")).await?;
    let fit = Fit::from_json(found["report"].to_string().as_bytes()).map_err(|e| Failure::internal(&e))?;
    tell!("\n{}", fit.to_text());
    let compared = compare(client, &id, &upper).await?;
    tell!("{}", compared.table);
    for (measure, errors) in &compared.errors {
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let worst = errors.iter().copied().fold(0.0, f64::max);
        tell!("held-out prediction error of {measure}: mean {:.1} %, worst {:.1} %", 100.0 * mean, 100.0 * worst);
    }
    tell!("held-out measurements inside the 95 % band of a new measurement: {} of {}", compared.inside, compared.n);
    draw(client, &id, &fit, &all, &upper, out).await
}

/// Trials of the lower half of the loads, of the upper half, and the largest load of the lower half.
fn split(all: &Trials) -> (Trials, Trials, f64) {
    let load = |t: &crate::fit::trials::Trial| t.controlled.get(LOAD).unwrap_or(0.0);
    let mut loads: Vec<f64> = all.trials.iter().map(load).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let limit = loads.get(loads.len().saturating_sub(1) / 2).copied().unwrap_or(0.0);
    let (low, high) = all.trials.iter().cloned().partition(|t| load(t) <= limit);
    (Trials { measures: all.measures.clone(), trials: low }, Trials { measures: all.measures.clone(), trials: high }, limit)
}

struct Compared {
    table: String,
    /// Relative errors by measure.
    errors: Vec<(Measure, Vec<f64>)>,
    inside: usize,
    n: usize,
}

/// Predictions at every held-out trial beside what was measured there.
async fn compare(client: &Client, fit: &str, upper: &Trials) -> Result<Compared, Failure> {
    let mut compared =
        Compared { table: String::new(), errors: upper.measures.iter().map(|m| (m.clone(), Vec::new())).collect(), inside: 0, n: 0 };
    let _ = writeln!(
        compared.table,
        "{:>8} {:>9}  {:<24} {:>10} {:>10} {:>8}  95 % band of a new measurement",
        "clients", "think", "measure", "measured", "predicted", "error"
    );
    tell!("Predicting the {} held-out trials: GET /v1/fits/{fit}/predictions?at={LOAD}=..&at={THINK}=..", upper.trials.len());
    for trial in &upper.trials {
        let (load, think) = (trial.controlled.get(LOAD).unwrap_or(0.0), trial.controlled.get(THINK).unwrap_or(0.0));
        let predictions = predict(client, fit, &format!("at={LOAD}={load}&at={THINK}={think}")).await?;
        let Some(row) = predictions.rows.first() else { continue };
        for ((measure, errors), measured) in compared.errors.iter_mut().zip(&trial.measured) {
            let (Some(measured), Some(predicted)) = (measured, row.measures.get(measure)) else { continue };
            let error = (predicted.mean - measured.value) / measured.value;
            errors.push(error.abs());
            let band = match (predicted.new_lower, predicted.new_upper) {
                (Some(low), Some(high)) => {
                    compared.n += 1;
                    compared.inside += usize::from((low..=high).contains(&measured.value));
                    format!("{low:.4} .. {high:.4}")
                }
                _ => predicted.no_new_band.clone().unwrap_or_default(),
            };
            let name = measure.to_string();
            let _ = writeln!(
                compared.table,
                "{load:>8} {think:>9.4}  {name:<24} {:>10.4} {:>10.4} {:>7.1}%  {band}",
                measured.value,
                predicted.mean,
                100.0 * error
            );
        }
    }
    Ok(compared)
}

async fn predict(client: &Client, fit: &str, query: &str) -> Result<Predictions, Failure> {
    let answer = client.get_quietly(&format!("/v1/fits/{fit}/predictions?{query}")).await?;
    serde_json::from_value(answer).map_err(|e| Failure::internal(&e))
}

/// Plots throughput and response time against the load, with bands, fitted and held-out points.
async fn draw(client: &Client, id: &str, fit: &Fit, all: &Trials, upper: &Trials, out: &Path) -> Result<(), Failure> {
    let highest = all.trials.iter().filter_map(|t| t.controlled.get(LOAD)).fold(1.0, f64::max);
    let thinks: Vec<f64> = all.trials.iter().filter_map(|t| t.controlled.get(THINK)).collect();
    let think = thinks.iter().sum::<f64>() / thinks.len().max(1) as f64;
    let step = (highest / CURVE_POINTS).ceil().max(1.0);
    let curve = predict(client, id, &format!("at={LOAD}=1..{highest}:{step}&at={THINK}={think}")).await?;
    for (file, measure) in [
        ("layerfit-demo-response-time.svg", Measure::ResponseTime("Clients".into())),
        ("layerfit-demo-throughput.svg", Measure::Throughput("Clients".into())),
    ] {
        let Some(column) = all.measures.iter().position(|m| *m == measure) else { continue };
        let mut options = PlotOptions::new(measure, LOAD);
        options.title = "PostgreSQL: fitted to the lower loads, predicted for all".into();
        options.time_unit = Some("s".into());
        options.other_tolerance = THINK_TOLERANCE;
        options.held_out =
            upper.trials.iter().filter_map(|t| Some((t.controlled.get(LOAD)?, t.measured.get(column)?.as_ref()?.value))).collect();
        let svg = plot(fit, &curve, &options).map_err(|e| Failure::internal(&e))?;
        let path = out.join(file);
        fs::write(&path, svg).map_err(|e| Failure::input_text(format!("{}: {e}", path.display())))?;
        tell!("plot written: {}", path.display());
    }
    Ok(())
}
