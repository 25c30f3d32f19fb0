//! Numbers that carry derivatives in several directions at once, side by side in memory.
//!
//! `(v, d_1 … d_N)` stands for a value and its derivatives; `f(v, d) = (f(v), f'(v) d)`, `fg` and `f/g` by their rules. It is
//! [`num_dual::DualSVec64`] without its option of having no derivatives at all, which keeps a compiler from working on several
//! directions with one instruction.
//! Values are those that the same arithmetic has in plain numbers, to the last bit. The functions' slopes at a value are those of
//! the crate's plain dual number.

use std::{
    cmp::Ordering,
    fmt,
    iter::{Product, Sum},
    ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign},
};

use num_dual::{Dual64, DualNum, DualStruct, Mappable};
use num_traits::{FromPrimitive, Inv, Num, One, Signed, Zero};

use super::Scalar;

/// A value and its derivatives in `N` directions.
#[derive(Clone, Copy, Debug)]
pub struct Tangent<const N: usize> {
    /// The value.
    pub value: f64,
    /// Its derivatives.
    pub derivatives: [f64; N],
}

impl<const N: usize> Tangent<N> {
    /// `value` as the variable whose derivative is the `direction`-th; constant, if there is no such direction.
    #[must_use]
    pub fn variable(value: f64, direction: usize) -> Self {
        let mut derivatives = [0.0; N];
        if let Some(d) = derivatives.get_mut(direction) {
            *d = 1.0;
        }
        Self { value, derivatives }
    }

    /// `f(self)`, by its value and its slope.
    #[inline]
    fn chain(self, value: f64, slope: f64) -> Self {
        Self { value, derivatives: self.derivatives.map(|d| d * slope) }
    }

    /// `f(self)`, which is `value`, by the crate's number of one direction.
    fn apply(self, value: f64, f: impl FnOnce(Dual64) -> Dual64) -> Self {
        self.chain(value, f(Dual64::new(self.value, 1.0)).eps)
    }

    #[inline]
    fn zip(self, other: Self, value: f64, f: impl Fn(f64, f64) -> f64) -> Self {
        let mut derivatives = self.derivatives;
        for (a, b) in derivatives.iter_mut().zip(&other.derivatives) {
            *a = f(*a, *b);
        }
        Self { value, derivatives }
    }
}

impl<const N: usize> Scalar for Tangent<N> {
    #[inline]
    fn value(&self) -> f64 {
        self.value
    }

    #[inline]
    fn derivatives(&self) -> &[f64] {
        &self.derivatives
    }

    #[inline]
    fn derivatives_mut(&mut self) -> &mut [f64] {
        &mut self.derivatives
    }
}

impl<const N: usize> Neg for Tangent<N> {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self { value: -self.value, derivatives: self.derivatives.map(|d| -d) }
    }
}

impl<const N: usize> Add for Tangent<N> {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        self.zip(other, self.value + other.value, |a, b| a + b)
    }
}

impl<const N: usize> Sub for Tangent<N> {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        self.zip(other, self.value - other.value, |a, b| a - b)
    }
}

impl<const N: usize> Mul for Tangent<N> {
    type Output = Self;
    #[inline]
    #[expect(clippy::suspicious_arithmetic_impl, reason = "the product rule")]
    fn mul(self, other: Self) -> Self {
        self.zip(other, self.value * other.value, |a, b| a * other.value + b * self.value)
    }
}

impl<const N: usize> Div for Tangent<N> {
    type Output = Self;
    #[inline]
    #[expect(clippy::suspicious_arithmetic_impl, reason = "the quotient rule")]
    fn div(self, other: Self) -> Self {
        // A number over itself is 1, which it need not be times its inverse.
        let value = self.value / other.value;
        let inverse = other.value.recip();
        self.zip(other, value, |a, b| (a - b * value) * inverse)
    }
}

impl<const N: usize> Rem for Tangent<N> {
    type Output = Self;
    fn rem(self, other: Self) -> Self {
        let whole = (self.value / other.value).trunc();
        self.zip(other, self.value % other.value, |a, b| a - b * whole)
    }
}

impl<const N: usize> Add<f64> for Tangent<N> {
    type Output = Self;
    #[inline]
    fn add(self, other: f64) -> Self {
        Self { value: self.value + other, ..self }
    }
}

impl<const N: usize> Sub<f64> for Tangent<N> {
    type Output = Self;
    #[inline]
    fn sub(self, other: f64) -> Self {
        Self { value: self.value - other, ..self }
    }
}

impl<const N: usize> Mul<f64> for Tangent<N> {
    type Output = Self;
    #[inline]
    fn mul(self, other: f64) -> Self {
        self.chain(self.value * other, other)
    }
}

impl<const N: usize> Div<f64> for Tangent<N> {
    type Output = Self;
    #[inline]
    fn div(self, other: f64) -> Self {
        self.chain(self.value / other, other.recip())
    }
}

impl<const N: usize> Rem<f64> for Tangent<N> {
    type Output = Self;
    fn rem(self, other: f64) -> Self {
        Self { value: self.value % other, ..self }
    }
}

macro_rules! other_operands {
    ($($operation:ident $method:ident $assign:ident $assign_method:ident),*) => {$(
        impl<const N: usize> $operation<&Tangent<N>> for Tangent<N> {
            type Output = Self;
            #[inline]
            fn $method(self, other: &Tangent<N>) -> Self {
                self.$method(*other)
            }
        }
        impl<const N: usize> $assign for Tangent<N> {
            #[inline]
            fn $assign_method(&mut self, other: Self) {
                *self = self.$method(other);
            }
        }
        impl<const N: usize> $assign<f64> for Tangent<N> {
            #[inline]
            fn $assign_method(&mut self, other: f64) {
                *self = self.$method(other);
            }
        }
    )*};
}
other_operands!(Add add AddAssign add_assign, Sub sub SubAssign sub_assign, Mul mul MulAssign mul_assign,
    Div div DivAssign div_assign, Rem rem RemAssign rem_assign);

impl<const N: usize> From<f64> for Tangent<N> {
    #[inline]
    fn from(value: f64) -> Self {
        Self { value, derivatives: [0.0; N] }
    }
}

/// By the values alone, as all comparisons.
impl<const N: usize> PartialEq for Tangent<N> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<const N: usize> PartialOrd for Tangent<N> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.value.partial_cmp(&other.value)
    }
    #[inline]
    fn lt(&self, other: &Self) -> bool {
        self.value < other.value
    }
    #[inline]
    fn le(&self, other: &Self) -> bool {
        self.value <= other.value
    }
    #[inline]
    fn gt(&self, other: &Self) -> bool {
        self.value > other.value
    }
    #[inline]
    fn ge(&self, other: &Self) -> bool {
        self.value >= other.value
    }
}

impl<const N: usize> PartialEq<f64> for Tangent<N> {
    #[inline]
    fn eq(&self, other: &f64) -> bool {
        self.value == *other
    }
}

impl<const N: usize> PartialOrd<f64> for Tangent<N> {
    #[inline]
    fn partial_cmp(&self, other: &f64) -> Option<Ordering> {
        self.value.partial_cmp(other)
    }
    #[inline]
    fn lt(&self, other: &f64) -> bool {
        self.value < *other
    }
    #[inline]
    fn le(&self, other: &f64) -> bool {
        self.value <= *other
    }
    #[inline]
    fn gt(&self, other: &f64) -> bool {
        self.value > *other
    }
    #[inline]
    fn ge(&self, other: &f64) -> bool {
        self.value >= *other
    }
}

impl<const N: usize> FromPrimitive for Tangent<N> {
    fn from_i64(n: i64) -> Option<Self> {
        f64::from_i64(n).map(Self::from)
    }
    fn from_u64(n: u64) -> Option<Self> {
        f64::from_u64(n).map(Self::from)
    }
    fn from_f64(n: f64) -> Option<Self> {
        Some(Self::from(n))
    }
}

impl<const N: usize> Zero for Tangent<N> {
    fn zero() -> Self {
        Self::from(0.0)
    }
    fn is_zero(&self) -> bool {
        self.value == 0.0
    }
}

impl<const N: usize> One for Tangent<N> {
    fn one() -> Self {
        Self::from(1.0)
    }
}

impl<const N: usize> Num for Tangent<N> {
    type FromStrRadixErr = <f64 as Num>::FromStrRadixErr;
    fn from_str_radix(text: &str, radix: u32) -> Result<Self, Self::FromStrRadixErr> {
        f64::from_str_radix(text, radix).map(Self::from)
    }
}

impl<const N: usize> Signed for Tangent<N> {
    fn abs(&self) -> Self {
        if self.is_negative() { -*self } else { *self }
    }
    fn abs_sub(&self, other: &Self) -> Self {
        if self.value > other.value { *self - *other } else { Self::zero() }
    }
    fn signum(&self) -> Self {
        Self::from(self.value.signum())
    }
    fn is_positive(&self) -> bool {
        self.value.is_sign_positive()
    }
    fn is_negative(&self) -> bool {
        self.value.is_sign_negative()
    }
}

impl<const N: usize> Inv for Tangent<N> {
    type Output = Self;
    #[inline]
    fn inv(self) -> Self {
        let inverse = self.value.recip();
        self.chain(inverse, -inverse * inverse)
    }
}

impl<const N: usize> Sum for Tangent<N> {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::zero(), |a, b| a + b)
    }
}

impl<const N: usize> Product for Tangent<N> {
    fn product<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::one(), |a, b| a * b)
    }
}

impl<const N: usize> fmt::Display for Tangent<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {:?}ε", self.value, self.derivatives)
    }
}

impl<const N: usize> DualStruct for Tangent<N> {
    type Real = f64;
    type Inner = f64;
    fn re(&self) -> f64 {
        self.value
    }
    fn from_inner(inner: &f64) -> Self {
        Self::from(*inner)
    }
}

impl<const N: usize> Mappable<Tangent<N>> for Tangent<N> {
    type Output<O> = O;
    fn map_dual<M: Fn(Tangent<N>) -> O, O>(self, f: M) -> O {
        f(self)
    }
}

macro_rules! by_one_direction {
    ($($name:ident),* $(,)?) => {$(
        fn $name(&self) -> Self {
            self.apply(DualNum::$name(&self.value), |x| x.$name())
        }
    )*};
}

impl<const N: usize> DualNum for Tangent<N> {
    type Primitive = f64;
    const NDERIV: usize = 1;
    type InnerDual = f64;

    fn from_re(re: f64) -> Self {
        Self::from(re)
    }
    fn scale(self, factor: &f64) -> Self {
        self * *factor
    }
    #[inline]
    fn recip(&self) -> Self {
        self.inv()
    }
    fn powi(&self, n: i32) -> Self {
        self.apply(self.value.powi(n), |x| x.powi(n))
    }
    fn powf(&self, n: f64) -> Self {
        self.apply(self.value.powf(n), |x| x.powf(n))
    }
    fn powd(&self, exponent: Self) -> Self {
        let value = self.value.powf(exponent.value);
        self.zip(exponent, value, |base, exponent_slope| {
            let of_base = if base == 0.0 { 0.0 } else { base * exponent.value * self.value.powf(exponent.value - 1.0) };
            let of_exponent = if exponent_slope == 0.0 { 0.0 } else { exponent_slope * value * self.value.ln() };
            of_base + of_exponent
        })
    }
    fn log(&self, base: f64) -> Self {
        self.apply(self.value.log(base), |x| x.log(base))
    }
    fn sin_cos(&self) -> (Self, Self) {
        (self.sin(), self.cos())
    }
    fn atan2(&self, other: Self) -> Self {
        let square = self.value * self.value + other.value * other.value;
        self.zip(other, self.value.atan2(other.value), |a, b| (a * other.value - b * self.value) / square)
    }
    by_one_direction! {
        sqrt, cbrt, exp, exp2, exp_m1, ln, log2, log10, ln_1p, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh,
        atanh, sph_j0, sph_j1, sph_j2,
    }
}

#[cfg(test)]
mod tests {
    use num_dual::DualSVec64;

    use super::*;

    /// A function of everything that the solvers and expressions use.
    fn tangle<S: Scalar>(x: S, y: S) -> S {
        let mut z = (x * y + 2.0 - y / x * 0.5).sqrt() + (-(x * 0.1)).exp() - y.powf(1.7) / 3.0;
        z += x.recip() * y.powi(3);
        z -= (x - y).abs().ln();
        z *= x.sin_cos().0 + y.atan2(x) + 1.0;
        z / (y + x.ln() * 0.2) + x.powd(y)
    }

    #[test]
    fn derivatives_are_those_of_the_crate() {
        for (x, y) in [(0.7, 1.9), (3.0, 0.25), (12.0, 5.5)] {
            let ours = tangle(Tangent::<2>::variable(x, 0), Tangent::variable(y, 1));
            let theirs = tangle(DualSVec64::<2>::from_re(x).derivative(0), DualSVec64::from_re(y).derivative(1));
            assert!((ours.value - theirs.re).abs() <= 1e-14 * theirs.re.abs(), "{ours} {theirs}");
            for (a, b) in ours.derivatives.iter().zip(theirs.derivatives()) {
                assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{ours} {theirs}");
            }
        }
    }

    #[test]
    fn a_remainder_falls_by_the_whole_quotient() {
        let rest = Tangent::<2>::variable(7.5, 0) % Tangent::variable(2.0, 1);
        assert!(rest.value == 1.5 && rest.derivatives == [1.0, -3.0], "{rest}");
        assert!((Tangent::<1>::variable(7.5, 0) % 2.0).derivatives == [1.0]);
        let (dividend, divisor) = (0.7, 0.1);
        let rest = Tangent::<2>::variable(dividend, 0) % Tangent::variable(divisor, 1);
        assert!(rest.value == dividend % divisor, "{rest}");
    }

    #[test]
    fn a_power_of_nothing_has_the_slopes_that_it_has() {
        let none = Tangent::<2>::variable(0.0, 0).powd(Tangent::from(2.0));
        assert!(none.value == 0.0 && none.derivatives == [0.0, 0.0], "{none}");
        let cube = Tangent::<2>::from(-2.0).powd(Tangent::from(3.0));
        assert!(cube.value == -8.0 && cube.derivatives == [0.0, 0.0], "{cube}");
        let (base, exponent) = (1.3_f64, 0.7);
        let power = Tangent::<2>::variable(base, 0).powd(Tangent::variable(exponent, 1));
        assert!(power.value == base.powf(exponent), "{power}");
    }

    #[test]
    fn a_constant_has_no_slope() {
        let c = Tangent::<3>::from(4.0);
        assert!((c * c).derivatives.iter().all(|d| *d == 0.0));
        assert!(Tangent::<3>::variable(4.0, 7).derivatives.iter().all(|d| *d == 0.0));
    }
}
