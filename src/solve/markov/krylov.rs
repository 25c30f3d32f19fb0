//! Restarted GMRES (Saad & Schultz 1986) for the fixed point of a linear map: Arnoldi's basis, and the least-squares problem kept
//! triangular by rotations.

/// A basis of directions, and what the map `I - G` makes of them.
pub(super) struct Krylov {
    basis: Vec<Vec<f64>>,
    /// Columns of the triangular matrix.
    columns: Vec<Vec<f64>>,
    rotations: Vec<(f64, f64)>,
    /// Rotated right-hand side.
    target: Vec<f64>,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Krylov {
    /// The space that starts with `G x - x`.
    pub(super) fn new(mut start: Vec<f64>) -> Self {
        let length = dot(&start, &start).sqrt();
        if length > 0.0 {
            start.iter_mut().for_each(|v| *v /= length);
        }
        Self { basis: vec![start], columns: Vec::new(), rotations: Vec::new(), target: vec![length] }
    }

    /// Directions whose image is known.
    pub(super) fn size(&self) -> usize {
        self.columns.len()
    }

    /// Adds a direction; false when there is none left.
    pub(super) fn extend(&mut self, apply: impl Fn(&mut Vec<f64>)) -> bool {
        const EXHAUSTED: f64 = 1e-14;
        let k = self.columns.len();
        let mut image = self.basis[k].clone();
        apply(&mut image);
        image.iter_mut().zip(&self.basis[k]).for_each(|(g, v)| *g = v - *g);
        let before = dot(&image, &image).sqrt();
        let mut column = Vec::with_capacity(k + 1);
        for direction in &self.basis {
            let part = dot(&image, direction);
            image.iter_mut().zip(direction).for_each(|(w, v)| *w -= part * v);
            column.push(part);
        }
        let length = dot(&image, &image).sqrt();
        for (i, &(c, s)) in self.rotations.iter().enumerate() {
            (column[i], column[i + 1]) = (c * column[i] + s * column[i + 1], c * column[i + 1] - s * column[i]);
        }
        let radius = column[k].hypot(length);
        if radius <= EXHAUSTED * before || radius == 0.0 {
            return false;
        }
        let (c, s) = (column[k] / radius, length / radius);
        column[k] = radius;
        self.rotations.push((c, s));
        self.target.push(-s * self.target[k]);
        self.target[k] *= c;
        self.columns.push(column);
        if length <= EXHAUSTED * before {
            return false;
        }
        image.iter_mut().for_each(|w| *w /= length);
        self.basis.push(image);
        true
    }

    /// Adds the combination of the directions that leaves least of the right-hand side.
    pub(super) fn add_solution(&self, x: &mut [f64]) {
        let mut weights = self.target[..self.size()].to_vec();
        for k in (0..weights.len()).rev() {
            weights[k] /= self.columns[k][k];
            let weight = weights[k];
            weights[..k].iter_mut().zip(&self.columns[k]).for_each(|(w, c)| *w -= weight * c);
        }
        for (weight, direction) in weights.iter().zip(&self.basis) {
            x.iter_mut().zip(direction).for_each(|(x, v)| *x += weight * v);
        }
    }
}
