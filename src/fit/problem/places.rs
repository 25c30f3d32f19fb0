//! Interpolation of what is known at some operating points: linearly along one controlled value, constant beyond its ends; by inverse
//! squared distance over several, each in units of its range.

use crate::model::Bindings;

/// Shares of `points` in what is interpolated at `values`, as positions with weights that sum to 1; empty without points. Controlled
/// values that `values` lacks count as the least of the points.
pub(crate) fn shares(points: &[&Bindings], values: &Bindings) -> Vec<(usize, f64)> {
    let varied = varied(points);
    let place =
        |of: &Bindings| -> Vec<f64> { varied.iter().map(|(n, low, high)| (of.get(n).unwrap_or(*low) - low) / (high - low)).collect() };
    let here = place(values);
    let places: Vec<Vec<f64>> = points.iter().map(|p| place(p)).collect();
    if let Some(exact) = places.iter().position(|p| *p == here) {
        return vec![(exact, 1.0)];
    }
    if let [at] = here[..] {
        return between(&places, at);
    }
    let weights: Vec<f64> = places.iter().map(|p| p.iter().zip(&here).map(|(a, b)| (a - b).powi(2)).sum::<f64>().recip()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / total).enumerate().collect()
}

/// Controlled values that differ between points, with their ranges.
fn varied<'a>(points: &[&'a Bindings]) -> Vec<(&'a str, f64, f64)> {
    let Some(first) = points.first() else { return Vec::new() };
    let range = |name: &str| {
        let values = points.iter().filter_map(|p| p.get(name));
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
    };
    let all = first.iter().map(|(name, _)| (name, range(name)));
    all.filter(|(_, (low, high))| low < high).map(|(name, (low, high))| (name, low, high)).collect()
}

/// The neighbours of `at` along one controlled value.
fn between(places: &[Vec<f64>], at: f64) -> Vec<(usize, f64)> {
    let nearest = |side: &dyn Fn(f64) -> bool| {
        let on_side = (0..places.len()).filter(|&i| side(places[i][0]));
        on_side.min_by(|&a, &b| (places[a][0] - at).abs().total_cmp(&(places[b][0] - at).abs()))
    };
    match (nearest(&|x| x < at), nearest(&|x| x > at)) {
        (Some(a), Some(b)) => {
            let share = (at - places[a][0]) / (places[b][0] - places[a][0]);
            vec![(a, 1.0 - share), (b, share)]
        }
        (Some(only), None) | (None, Some(only)) => vec![(only, 1.0)],
        (None, None) => Vec::new(),
    }
}
