//! One measure against one controlled value: prediction, bands and measured points, as SVG.

use plotters::{coord::types::RangedCoordf64, prelude::*};

use super::bands::{PredictedMeasure, Predictions};
use crate::{
    fit::{Fit, digits::percent},
    model::Measure,
};

/// What to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotOptions {
    /// The measure on the vertical axis.
    pub measure: Measure,
    /// The controlled value on the horizontal axis, without `$`.
    pub against: String,
    /// Title; the model's name where empty.
    pub title: String,
    /// Unit of the model's times, where known, as in `s`.
    pub time_unit: Option<String>,
    /// Width and height in pixels.
    pub size_px: (u32, u32),
    /// Measured points that the fit has not seen, drawn apart from those of its trials.
    pub held_out: Vec<(f64, f64)>,
    /// Relative difference at which a trial still counts as measured at the drawn values of the other controlled parameters.
    pub other_tolerance: f64,
}

impl PlotOptions {
    /// A plot of `measure` against `against` of 840 by 520 pixels.
    pub fn new(measure: Measure, against: impl Into<String>) -> Self {
        Self {
            measure,
            against: against.into(),
            title: String::new(),
            time_unit: None,
            size_px: (840, 520),
            held_out: Vec::new(),
            other_tolerance: 0.0,
        }
    }
}

/// Why there is no plot.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlotError {
    /// Nothing to draw.
    #[error("no predicted value of {measure} against {against}")]
    Nothing {
        /// The measure.
        measure: Measure,
        /// The controlled value.
        against: String,
    },
    /// No curve at all.
    #[error("there is nothing to draw")]
    Empty,
    /// No candidate of a design with that controlled value, or nothing that is determined now to compare with.
    #[error("no candidate has a value of {against} and a half-width to compare with")]
    NoCandidates {
        /// The controlled value.
        against: String,
    },
    /// The drawing library failed.
    #[error("the plot could not be drawn: {0}")]
    Drawing(String),
}

const LINE: RGBColor = RGBColor(31, 90, 166);
const POINT: RGBColor = RGBColor(196, 61, 30);
const HEADROOM: f64 = 0.06;

/// Draws `predictions` of `fit` with the trials' measured values as an SVG document. Only trials that agree with the
/// first row in the controlled values that are not drawn against are shown.
///
/// # Errors
/// [`PlotError`].
pub fn plot(fit: &Fit, predictions: &Predictions, options: &PlotOptions) -> Result<String, PlotError> {
    let nothing = || PlotError::Nothing { measure: options.measure.clone(), against: options.against.clone() };
    let mut curve: Vec<(f64, &PredictedMeasure)> = predictions
        .rows
        .iter()
        .filter_map(|row| Some((row.controlled.get(&options.against)?, row.measures.get(&options.measure)?)))
        .collect();
    if curve.is_empty() {
        return Err(nothing());
    }
    curve.sort_by(|a, b| a.0.total_cmp(&b.0));
    let points = measured_points(fit, predictions, options);
    let mut svg = String::new();
    draw(&mut svg, fit, &curve, &points, predictions.confidence, options).map_err(|e| PlotError::Drawing(e.to_string()))?;
    Ok(svg)
}

fn measured_points(fit: &Fit, predictions: &Predictions, options: &PlotOptions) -> Vec<(f64, f64)> {
    let trials = &fit.problem.trials;
    let Some(column) = trials.measures.iter().position(|m| *m == options.measure) else { return Vec::new() };
    let fixed = predictions.rows.first().map(|row| &row.controlled);
    let agrees = |trial: &crate::fit::Trial| {
        fixed.is_none_or(|c| {
            c.iter()
                .filter(|(name, _)| *name != options.against)
                .all(|(name, value)| trial.controlled.get(name).is_none_or(|v| (v - value).abs() <= options.other_tolerance * value.abs()))
        })
    };
    let shown = trials.trials.iter().filter(|t| agrees(t));
    shown.filter_map(|t| Some((t.controlled.get(&options.against)?, t.measured.get(column)?.as_ref()?.value))).collect()
}

type DrawError = Box<dyn std::error::Error + Send + Sync>;

fn draw(
    svg: &mut String,
    fit: &Fit,
    curve: &[(f64, &PredictedMeasure)],
    points: &[(f64, f64)],
    confidence: f64,
    options: &PlotOptions,
) -> Result<(), DrawError> {
    let area = SVGBackend::with_string(svg, options.size_px).into_drawing_area();
    area.fill(&WHITE)?;
    let all_points: Vec<(f64, f64)> = points.iter().chain(&options.held_out).copied().collect();
    let (x_range, y_range) = ranges(curve, &all_points);
    let title = if options.title.is_empty() { fit.problem.model.name.as_str() } else { options.title.as_str() };
    let mut builder = ChartBuilder::on(&area);
    builder.margin(14).x_label_area_size(48).y_label_area_size(76);
    if !title.is_empty() {
        builder.caption(title, ("sans-serif", 20));
    }
    let mut chart = builder.build_cartesian_2d(x_range.0..x_range.1, y_range.0..y_range.1)?;
    chart
        .configure_mesh()
        .x_desc(options.against.as_str())
        .y_desc(axis_label(&options.measure, options.time_unit.as_deref()))
        .light_line_style(WHITE.mix(0.0))
        .bold_line_style(BLACK.mix(0.12))
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 15))
        .x_label_formatter(&|v| tick(*v))
        .y_label_formatter(&|v| tick(*v))
        .draw()?;
    let percent = format!("{} %", percent(confidence));
    draw_band(&mut chart, curve, 0.10, &format!("new measurement, {percent}"), |p| Some((p.new_lower?, p.new_upper?)))?;
    draw_band(&mut chart, curve, 0.28, &format!("mean, {percent}"), |p| Some((p.lower?, p.upper?)))?;
    chart
        .draw_series(LineSeries::new(curve.iter().map(|(x, p)| (*x, p.mean)), LINE.stroke_width(2)))?
        .label("predicted")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], LINE.stroke_width(2)));
    let label = if options.held_out.is_empty() { "measured" } else { "measured, fitted to" };
    draw_points(&mut chart, points, label, POINT.filled())?;
    draw_points(&mut chart, &options.held_out, "measured, held out", POINT.stroke_width(2))?;
    chart
        .configure_series_labels()
        .position(legend_position(&options.measure))
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.25))
        .label_font(("sans-serif", 13))
        .draw()?;
    area.present()?;
    Ok(())
}

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn draw_points(chart: &mut Chart<'_, '_>, points: &[(f64, f64)], label: &str, style: ShapeStyle) -> Result<(), DrawError> {
    if !points.is_empty() {
        chart
            .draw_series(points.iter().map(|p| Circle::new(*p, 4, style)))?
            .label(label)
            .legend(move |(x, y)| Circle::new((x + 9, y), 4, style));
    }
    Ok(())
}

/// Fills between lower and upper ends; a stretch without a band is left open.
fn draw_band(
    chart: &mut Chart<'_, '_>,
    curve: &[(f64, &PredictedMeasure)],
    opacity: f64,
    label: &str,
    ends: impl Fn(&PredictedMeasure) -> Option<(f64, f64)>,
) -> Result<(), DrawError> {
    let banded: Vec<Option<(f64, f64, f64)>> = curve.iter().map(|(x, p)| ends(p).map(|(low, high)| (*x, low, high))).collect();
    let stretches = banded.split(Option::is_none).map(|s| s.iter().flatten().copied().collect::<Vec<_>>());
    for (index, stretch) in stretches.filter(|s: &Vec<_>| !s.is_empty()).enumerate() {
        let upper = stretch.iter().map(|(x, _, high)| (*x, *high));
        let lower = stretch.iter().rev().map(|(x, low, _)| (*x, *low));
        let series = chart.draw_series(std::iter::once(Polygon::new(upper.chain(lower).collect::<Vec<_>>(), LINE.mix(opacity))))?;
        if index == 0 {
            series.label(label).legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 18, y + 5)], LINE.mix(opacity).filled()));
        }
    }
    Ok(())
}

/// Ranges of both axes, with headroom; measures start at zero.
fn ranges(curve: &[(f64, &PredictedMeasure)], points: &[(f64, f64)]) -> ((f64, f64), (f64, f64)) {
    let xs = curve.iter().map(|(x, _)| *x).chain(points.iter().map(|p| p.0));
    let ys = curve.iter().flat_map(|(_, p)| [Some(p.mean), p.upper, p.new_upper]).flatten().chain(points.iter().map(|p| p.1));
    let (x_low, x_high) = extent(xs);
    let (_, y_high) = extent(ys);
    let lowest = curve.iter().map(|(_, p)| p.mean).chain(points.iter().map(|p| p.1)).fold(0.0, f64::min);
    let x_margin = if x_high > x_low { 0.02 * (x_high - x_low) } else { 0.5 * x_low.abs().max(1.0) };
    let height = if y_high > lowest { y_high - lowest } else { 1.0 };
    ((x_low - x_margin, x_high + x_margin), (lowest, lowest + height * (1.0 + HEADROOM)))
}

fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}

fn axis_label(measure: &Measure, time_unit: Option<&str>) -> String {
    let unit = match measure {
        Measure::Throughput(_) => time_unit.map(|u| format!("1/{u}")),
        Measure::Utilization(_) => Some("busy servers".into()),
        _ => time_unit.map(str::to_owned),
    };
    unit.map_or_else(|| measure.to_string(), |u| format!("{measure} [{u}]"))
}

/// The corner that the curve leaves free: throughputs and utilizations saturate, times rise at the end.
fn legend_position(measure: &Measure) -> SeriesLabelPosition {
    match measure {
        Measure::Throughput(_) | Measure::Utilization(_) => SeriesLabelPosition::LowerRight,
        _ => SeriesLabelPosition::UpperLeft,
    }
}

/// A tick's label without trailing zeros.
pub(super) fn tick(value: f64) -> String {
    let text = if value != 0.0 && !(1e-4..1e6).contains(&value.abs()) { format!("{value:.2e}") } else { format!("{value:.5}") };
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
