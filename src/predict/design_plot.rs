//! What one trial would bring, against where it is run, as SVG.

use plotters::prelude::*;

use super::plot::{PlotError, tick};
use crate::fit::design::{Design, RankedPoint};

/// Width and height, pixels.
const SIZE_PX: (u32, u32) = (840, 520);

/// Colours of the parameters' lines, in order, then again.
const COLOURS: [RGBColor; 6] = [
    RGBColor(31, 90, 166),
    RGBColor(196, 61, 30),
    RGBColor(46, 125, 50),
    RGBColor(123, 63, 152),
    RGBColor(150, 110, 10),
    RGBColor(0, 121, 135),
];

const CHOSEN: RGBColor = RGBColor(90, 90, 90);

type DrawError = Box<dyn std::error::Error + Send + Sync>;

/// One line: what it is of, and its points.
struct Line {
    label: String,
    points: Vec<(f64, f64)>,
}

/// Draws the half-width that one trial alone would leave of each parameter, and of the prediction designed for, relative to what it is
/// now, against the controlled value `against`; chosen operating points are vertical lines. Of several candidates at one value the best
/// is drawn.
///
/// # Errors
/// [`PlotError`].
pub fn plot_design(design: &Design, against: &str) -> Result<String, PlotError> {
    let lines = lines(design, against);
    if lines.iter().all(|l| l.points.is_empty()) {
        return Err(PlotError::NoCandidates { against: against.to_owned() });
    }
    let mut svg = String::new();
    draw(&mut svg, design, against, &lines).map_err(|e| PlotError::Drawing(e.to_string()))?;
    Ok(svg)
}

fn lines(design: &Design, against: &str) -> Vec<Line> {
    let line = |label: String, now: Option<f64>, after: &dyn Fn(&RankedPoint) -> Option<f64>| {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for candidate in &design.candidates {
            let found = candidate.candidate.controlled.get(against).zip(after(candidate).zip(now));
            let Some((x, (after, now))) = found else { continue };
            match points.iter_mut().find(|p| p.0 == x) {
                Some(known) => known.1 = known.1.min(after / now),
                None => points.push((x, after / now)),
            }
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Line { label, points }
    };
    let parameters = design
        .parameters
        .iter()
        .map(|(name, w)| line(name.clone(), w.half_width_now, &|p: &RankedPoint| p.half_widths.get(name).copied().flatten()));
    let target = design.target.iter().map(|t| line(t.measure.to_string(), t.half_width_now, &|p: &RankedPoint| p.target_half_width));
    parameters.chain(target).collect()
}

fn draw(svg: &mut String, design: &Design, against: &str, lines: &[Line]) -> Result<(), DrawError> {
    let all = || lines.iter().flat_map(|l| &l.points);
    let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), p| (low.min(p.0), high.max(p.0)));
    let margin = if high > low { 0.02 * (high - low) } else { 0.5 * low.abs().max(1.0) };
    let top = all().map(|p| p.1).fold(1.0, f64::max) * 1.06;
    let area = SVGBackend::with_string(svg, SIZE_PX).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(14)
        .x_label_area_size(48)
        .y_label_area_size(76)
        .caption("one more trial", ("sans-serif", 20))
        .build_cartesian_2d(low - margin..high + margin, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc(against)
        .y_desc("half-width, relative to now")
        .light_line_style(WHITE.mix(0.0))
        .bold_line_style(BLACK.mix(0.12))
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 15))
        .x_label_formatter(&|v| tick(*v))
        .y_label_formatter(&|v| tick(*v))
        .draw()?;
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()).filter(|(l, _)| !l.points.is_empty()) {
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), style))?
            .label(line.label.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        chart.draw_series(line.points.iter().map(|p| Circle::new(*p, 3, colour.filled())))?;
    }
    for at in design.chosen.iter().filter_map(|c| c.candidate.controlled.get(against)) {
        chart.draw_series(LineSeries::new([(at, 0.0), (at, top)], CHOSEN.mix(0.6)))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.25))
        .label_font(("sans-serif", 13))
        .draw()?;
    area.present()?;
    Ok(())
}
