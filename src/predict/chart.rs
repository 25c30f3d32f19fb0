//! Several curves with their bands and points, one panel above the other, as SVG: a model beside black boxes, parameters over time.

use plotters::{coord::types::RangedCoordf64, prelude::*};

use super::plot::PlotError;
use crate::fit::{
    baseline::{Baselines, report::BaselineMethod},
    tracking::Track,
};

/// A curve with a band, where it has one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Its name in the legend.
    pub label: String,
    /// Abscissa and value, ascending.
    pub line: Vec<(f64, f64)>,
    /// Abscissa, lower and upper end, ascending.
    pub band: Vec<(f64, f64, f64)>,
}

/// Points of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    /// Their name in the legend.
    pub label: String,
    /// Abscissa and value.
    pub at: Vec<(f64, f64)>,
    /// Whether they are drawn filled.
    pub filled: bool,
}

/// Curves and points on common axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// What the vertical axis is.
    pub title: String,
    /// What the horizontal axis is.
    pub x_label: String,
    /// Curves, drawn in this order.
    pub curves: Vec<Curve>,
    /// Points, drawn above the curves.
    pub points: Vec<Points>,
}

/// Width of a chart and height of a panel, pixels.
const PANEL_PX: (u32, u32) = (840, 360);
const POINT: RGBColor = RGBColor(60, 60, 60);
const COLOURS: [RGBColor; 3] = [RGBColor(31, 90, 166), RGBColor(196, 61, 30), RGBColor(46, 125, 50)];
const HEADROOM: f64 = 0.06;

/// Draws `panels` as an SVG document.
///
/// # Errors
/// [`PlotError::Empty`] without anything to draw, [`PlotError::Drawing`].
pub fn chart(panels: &[Panel]) -> Result<String, PlotError> {
    let drawn: Vec<&Panel> = panels.iter().filter(|p| p.curves.iter().any(|c| !c.line.is_empty())).collect();
    if drawn.is_empty() {
        return Err(PlotError::Empty);
    }
    let mut svg = String::new();
    draw(&mut svg, &drawn).map_err(|e| PlotError::Drawing(e.to_string()))?;
    Ok(svg)
}

/// The panels of a comparison with black boxes: one a measure.
pub fn baseline_panels(baselines: &Baselines) -> Vec<Panel> {
    let panel = |(measure, of): (&crate::model::Measure, &crate::fit::baseline::report::MeasureBaselines)| {
        let curve = |(method, points): (&BaselineMethod, &Vec<crate::fit::baseline::report::CurvePoint>)| {
            let is_model = *method == BaselineMethod::Model;
            let ends = |p: &crate::fit::baseline::report::CurvePoint| Some((p.load, p.new_lower?, p.new_upper?)).filter(|_| is_model);
            Curve {
                label: method.name().to_owned(),
                line: points.iter().map(|p| (p.load, p.mean)).collect(),
                band: points.iter().filter_map(ends).collect(),
            }
        };
        let points = |held_out: bool, label: &str| Points {
            label: label.to_owned(),
            at: of.points.iter().filter(|p| p.held_out == held_out).map(|p| (p.load, p.value)).collect(),
            filled: !held_out,
        };
        Panel {
            title: measure.to_string(),
            x_label: baselines.load.clone(),
            curves: of.curves.iter().map(curve).collect(),
            points: vec![points(false, "measured, fitted to"), points(true, "measured, held out")],
        }
    };
    baselines.measures.iter().map(panel).collect()
}

/// The panels of a track: one a parameter, smoothed with its band and filtered.
pub fn track_panels(track: &Track) -> Vec<Panel> {
    let abscissa: Vec<f64> = (1_u32..).map(f64::from).zip(&track.trials).map(|(k, t)| t.time.unwrap_or(k)).collect();
    let panel = |name: &String| {
        let smoothed = || abscissa.iter().zip(&track.trials).filter_map(|(x, t)| Some((*x, t.smoothed.get(name)?)));
        let filtered = abscissa.iter().zip(&track.trials).filter_map(|(x, t)| Some((*x, t.filtered.get(name)?.estimate)));
        Panel {
            title: name.clone(),
            x_label: if track.timed { "time".into() } else { "trial".into() },
            curves: vec![Curve {
                label: "smoothed".into(),
                line: smoothed().map(|(x, e)| (x, e.estimate)).collect(),
                band: smoothed().filter_map(|(x, e)| Some((x, e.lower?, e.upper?))).collect(),
            }],
            points: vec![Points { label: "filtered".into(), at: filtered.collect(), filled: true }],
        }
    };
    track.parameters.keys().map(panel).collect()
}

type DrawError = Box<dyn std::error::Error + Send + Sync>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn draw(svg: &mut String, panels: &[&Panel]) -> Result<(), DrawError> {
    let count = u32::try_from(panels.len())?;
    let area = SVGBackend::with_string(svg, (PANEL_PX.0, PANEL_PX.1 * count)).into_drawing_area();
    area.fill(&WHITE)?;
    for (panel, part) in panels.iter().zip(area.split_evenly((panels.len(), 1))) {
        let (x, y) = ranges(panel);
        let mut builder = ChartBuilder::on(&part);
        builder.margin(14).x_label_area_size(44).y_label_area_size(80);
        let mut chart = builder.build_cartesian_2d(x.0..x.1, y.0..y.1)?;
        chart
            .configure_mesh()
            .x_desc(panel.x_label.as_str())
            .y_desc(panel.title.as_str())
            .light_line_style(WHITE.mix(0.0))
            .bold_line_style(BLACK.mix(0.12))
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 15))
            .draw()?;
        draw_series(&mut chart, panel, y)?;
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.25))
            .label_font(("sans-serif", 13))
            .draw()?;
    }
    area.present()?;
    Ok(())
}

fn draw_series(chart: &mut Chart<'_, '_>, panel: &Panel, range: (f64, f64)) -> Result<(), DrawError> {
    for (curve, colour) in panel.curves.iter().zip(COLOURS.into_iter().cycle()) {
        if !curve.band.is_empty() {
            let side = |of: fn(&(f64, f64, f64)) -> f64| {
                let line: Vec<(f64, f64)> = curve.band.iter().map(|end| (end.0, of(end))).collect();
                with_crossings(&line, range).into_iter().map(|(x, y)| (x, y.clamp(range.0, range.1)))
            };
            let lower: Vec<(f64, f64)> = side(|end| end.1).collect();
            let outline: Vec<(f64, f64)> = side(|end| end.2).chain(lower.into_iter().rev()).collect();
            chart.draw_series(std::iter::once(Polygon::new(outline, colour.mix(0.15))))?;
        }
        let pieces = within(&curve.line, range);
        chart
            .draw_series(pieces.into_iter().map(|piece| PathElement::new(piece, colour.stroke_width(2))))?
            .label(curve.label.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    for points in panel.points.iter().filter(|p| !p.at.is_empty()) {
        let style = if points.filled { POINT.filled() } else { POINT.stroke_width(2) };
        chart
            .draw_series(points.at.iter().map(|p| Circle::new(*p, 3, style)))?
            .label(points.label.as_str())
            .legend(move |(x, y)| Circle::new((x + 9, y), 3, style));
    }
    Ok(())
}

/// A line with points added where it crosses an end of the `range` of its values.
fn with_crossings(line: &[(f64, f64)], range: (f64, f64)) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> = line.first().copied().into_iter().collect();
    for pair in line.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let at = |end: f64| Some((end - y0) / (y1 - y0)).filter(|share| *share > 0.0 && *share < 1.0).map(|share| (share, end));
        let mut crossings: Vec<(f64, f64)> = [at(range.0), at(range.1)].into_iter().flatten().collect();
        crossings.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.extend(crossings.into_iter().map(|(share, end)| (x0 + share * (x1 - x0), end)));
        all.push((x1, y1));
    }
    all
}

/// The pieces of a line that are within the `range` of its values.
fn within(line: &[(f64, f64)], range: (f64, f64)) -> Vec<Vec<(f64, f64)>> {
    let mut pieces: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
    for (x, y) in with_crossings(line, range) {
        match pieces.last_mut() {
            Some(piece) if y >= range.0 && y <= range.1 => piece.push((x, y)),
            Some(piece) if !piece.is_empty() => pieces.push(Vec::new()),
            _ => {}
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Ranges of the axes. Lines and points set them; bands and curves that run far off are cut.
fn ranges(panel: &Panel) -> ((f64, f64), (f64, f64)) {
    let measured = || panel.points.iter().flat_map(|p| &p.at);
    let lines = || panel.curves.iter().flat_map(|c| &c.line);
    let (x_low, x_high) = extent(lines().chain(measured()).map(|p| p.0));
    // The first curve and the points decide; others may leave the panel.
    let first = panel.curves.first().map(|c| c.line.as_slice()).unwrap_or_default();
    let ends = panel.curves.iter().take(1).flat_map(|c| &c.band).flat_map(|(_, low, high)| [*low, *high]);
    let (y_low, y_high) = extent(first.iter().chain(measured()).map(|p| p.1).chain(ends));
    let margin = |low: f64, high: f64, share: f64| if high > low { share * (high - low) } else { 0.5 * low.abs().max(1.0) };
    let (dx, dy) = (margin(x_low, x_high, 0.02), margin(y_low, y_high, HEADROOM));
    ((x_low - dx, x_high + dx), (y_low - dy, y_high + dy))
}

fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.filter(|v| v.is_finite()).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_that_leaves_the_panel_ends_at_its_edge() {
        let line = [(0.0, 0.0), (2.0, 4.0), (4.0, -4.0), (5.0, 1.0)];
        let pieces = within(&line, (-2.0, 2.0));
        let expected = [vec![(0.0, 0.0), (1.0, 2.0)], vec![(2.5, 2.0), (3.5, -2.0)], vec![(4.4, -2.0), (5.0, 1.0)]];
        assert_eq!(pieces.len(), expected.len());
        for (found, wanted) in pieces.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found.0 - wanted.0).abs() < 1e-12 && (found.1 - wanted.1).abs() < 1e-12, "{pieces:?}");
        }
        assert!(within(&[(0.0, 5.0), (1.0, 6.0)], (0.0, 1.0)).is_empty());
    }
}
