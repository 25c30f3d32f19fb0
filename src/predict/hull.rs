//! Whether a point lies in the convex hull of others.
//!
//! ```text
//! q_t = p_t - u          x = Σ λ_t q_t,  λ ≥ 0,  Σ λ = 1          0 ∈ hull(q)  ⇔  min ‖x‖ = 0
//! ```
//!
//! | symbol | is |
//! |---|---|
//! | `p_t` | the points, each coordinate divided by its range |
//! | `u` | the point asked for |
//! | `x` | a point of the hull of the `q_t`, which approaches the one nearest to 0 |
//!
//! By steps towards the vertex that is furthest along `-x`, or away from the one in use that is furthest along `x` (P. Wolfe, "Convergence
//! theory in nonlinear programming", 1970). Where `x·q_t > 0` for every `t`, a plane lies between, and the point is outside for certain.

/// Distance, in ranges, at which a point counts as reached.
const REACHED: f64 = 1e-7;
/// Steps after which a point that no plane has cut off counts as inside: it is on the border as far as can be told.
const MOST_STEPS: usize = 2_000;

/// Whether `at`, shape `(n,)`, is outside the convex hull of `points`, each of shape `(n,)`. Nothing is outside of no points.
pub(super) fn is_outside(points: &[Vec<f64>], at: &[f64]) -> bool {
    let ranges: Vec<f64> = (0..at.len())
        .map(|i| {
            let values = || points.iter().map(|p| p[i]);
            values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min)
        })
        .collect();
    let scaled =
        |p: &Vec<f64>| -> Vec<f64> { (0..at.len()).map(|i| (p[i] - at[i]) / if ranges[i] > 0.0 { ranges[i] } else { 1.0 }).collect() };
    let vertices: Vec<Vec<f64>> = points.iter().map(scaled).collect();
    let Some(first) = (0..vertices.len()).min_by(|&a, &b| dot(&vertices[a], &vertices[a]).total_cmp(&dot(&vertices[b], &vertices[b])))
    else {
        return false;
    };
    let mut shares = vec![0.0; vertices.len()];
    shares[first] = 1.0;
    let mut x = vertices[first].clone();
    for _ in 0..MOST_STEPS {
        if dot(&x, &x) <= REACHED * REACHED {
            return false;
        }
        let along: Vec<f64> = vertices.iter().map(|q| dot(&x, q)).collect();
        let by_value = |a: &usize, b: &usize| along[*a].total_cmp(&along[*b]);
        let Some(towards) = (0..along.len()).min_by(by_value) else { return false };
        if along[towards] > 0.0 {
            return true;
        }
        let Some(away) = (0..along.len()).filter(|&t| shares[t] > 0.0).max_by(by_value) else { return false };
        let here = dot(&x, &x);
        step(&vertices, &mut shares, &mut x, if here - along[towards] >= along[away] - here { Way::To(towards) } else { Way::From(away) });
    }
    false
}

/// Where a step leads.
enum Way {
    To(usize),
    From(usize),
}

/// Goes along the way as far as `x` becomes shorter and the shares stay at least 0.
fn step(vertices: &[Vec<f64>], shares: &mut [f64], x: &mut [f64], way: Way) {
    let (vertex, sign, longest) = match way {
        Way::To(t) => (t, 1.0, 1.0),
        Way::From(t) => (t, -1.0, if shares[t] < 1.0 { shares[t] / (1.0 - shares[t]) } else { f64::INFINITY }),
    };
    let direction: Vec<f64> = vertices[vertex].iter().zip(&*x).map(|(q, x)| sign * (q - x)).collect();
    let square = dot(&direction, &direction);
    if square <= 0.0 {
        return;
    }
    let length = (-dot(x, &direction) / square).clamp(0.0, longest);
    x.iter_mut().zip(&direction).for_each(|(x, d)| *x += length * d);
    shares.iter_mut().for_each(|share| *share *= 1.0 - sign * length);
    shares[vertex] = (shares[vertex] + sign * length).max(0.0);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_borders_and_the_inside_are_not_outside() {
        let points = [vec![1.0, 100.0], vec![5.0, 100.0], vec![5.0, 300.0]];
        for at in [[1.0, 100.0], [5.0, 300.0], [3.0, 100.0], [3.0, 200.0], [4.0, 150.0], [4.999, 101.0]] {
            assert!(!is_outside(&points, &at), "{at:?}");
        }
        for at in [[1.0, 300.0], [3.0, 201.0], [2.0, 160.0], [5.01, 200.0], [3.0, 99.0]] {
            assert!(is_outside(&points, &at), "{at:?}");
        }
    }

    #[test]
    fn points_on_a_line_have_a_hull_without_inside() {
        let points = [vec![1.0, 10.0], vec![4.0, 40.0], vec![9.0, 90.0]];
        assert!(!is_outside(&points, &[2.0, 20.0]));
        assert!(is_outside(&points, &[2.0, 21.0]));
    }

    /// Of a cube's corners, each point within is a mean.
    #[test]
    fn means_of_corners_are_inside_in_several_dimensions() {
        let corners: Vec<Vec<f64>> = (0..32).map(|c| (0..5).map(|i| f64::from(c >> i & 1)).collect()).collect();
        for k in 0..40 {
            let at: Vec<f64> = (0..5).map(|i| f64::from((k * (i + 3) + i * 7) % 11) / 10.0).collect();
            assert!(!is_outside(&corners, &at), "{at:?}");
            let beyond: Vec<f64> = at.iter().enumerate().map(|(i, v)| if i == 2 { 1.001 } else { *v }).collect();
            assert!(is_outside(&corners, &beyond), "{beyond:?}");
        }
    }
}
