//! Numbers of twice double precision: a value as the unevaluated sum of two doubles.
//!
//! `hi + lo` with `|lo| ≤ ulp(hi) / 2`, about 32 decimal digits. Sums and products are by error-free transformations
//! (D. Knuth; T. Dekker, Numer. Math. 18 (1971)), `exp` by reduction and Taylor series, `ln` by one Newton step, as in Y. Hida,
//! X. Li and D. Bailey, Algorithms for quad-double precision floating point arithmetic (2001). Sums, products, quotients,
//! square roots, whole powers, `exp` and `ln` carry the full precision; the other functions that the trait asks for
//! carry that of a double.

use std::{
    fmt,
    iter::{Product, Sum},
    ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign},
};

use layerfit::model::Scalar;
use num_dual::{DualNum, DualStruct, Mappable};
use num_traits::{FromPrimitive, Inv, Num, One, Signed, Zero};

const LN_2: DoubleDouble = DoubleDouble { hi: std::f64::consts::LN_2, lo: 2.319_046_813_846_299_6e-17 };

/// Halvings of the argument before the series of `exp`.
const HALVINGS: i32 = 9;

/// Terms of the series: the argument is below 2⁻¹⁰, so that the tenth is below 10⁻³⁶.
const TERMS: u32 = 10;

/// `hi + lo`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct DoubleDouble {
    /// Nearest double.
    pub hi: f64,
    /// What it leaves out.
    pub lo: f64,
}

impl DoubleDouble {
    const fn new(hi: f64, lo: f64) -> Self {
        Self { hi, lo }
    }

    /// The double nearest to the value.
    pub fn to_f64(self) -> f64 {
        self.hi + self.lo
    }

    /// Reads `2.5134e+00`; `None` for other texts.
    pub fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.find(['e', 'E', 'D', 'd']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (negative, digits) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa.trim_start_matches('+')),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let mut value = Self::zero();
        for digit in whole.chars().chain(fraction.chars()) {
            value = value * 10.0 + f64::from(digit.to_digit(10)?);
        }
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let power = exponent - i32::try_from(fraction.len()).ok()?;
        let ten = Self::from(10.0).powi(power.abs());
        value = if power < 0 { value / ten } else { value * ten };
        Some(if negative { -value } else { value })
    }

    /// A function and its slope at double precision, carried to first order.
    fn linearised(self, value: f64, slope: f64) -> Self {
        two_sum(value, slope * self.lo)
    }

    fn two_power(self, k: i32) -> Self {
        let factor = 2.0_f64.powi(k);
        Self::new(self.hi * factor, self.lo * factor)
    }
}

fn quick_two_sum(a: f64, b: f64) -> DoubleDouble {
    let sum = a + b;
    DoubleDouble::new(sum, b - (sum - a))
}

fn two_sum(a: f64, b: f64) -> DoubleDouble {
    let sum = a + b;
    let part = sum - a;
    DoubleDouble::new(sum, (a - (sum - part)) + (b - part))
}

fn two_product(a: f64, b: f64) -> DoubleDouble {
    let product = a * b;
    DoubleDouble::new(product, a.mul_add(b, -product))
}

impl Add for DoubleDouble {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (high, low) = (two_sum(self.hi, other.hi), two_sum(self.lo, other.lo));
        let high = quick_two_sum(high.hi, high.lo + low.hi);
        quick_two_sum(high.hi, high.lo + low.lo)
    }
}

impl Neg for DoubleDouble {
    type Output = Self;
    fn neg(self) -> Self {
        Self::new(-self.hi, -self.lo)
    }
}

impl Sub for DoubleDouble {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for DoubleDouble {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let product = two_product(self.hi, other.hi);
        quick_two_sum(product.hi, product.lo + (self.hi * other.lo + self.lo * other.hi))
    }
}

impl Div for DoubleDouble {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let first = self.hi / other.hi;
        let rest = self - other * Self::from(first);
        let second = rest.hi / other.hi;
        let rest = rest - other * Self::from(second);
        quick_two_sum(first, second) + Self::from(rest.hi / other.hi)
    }
}

impl Rem for DoubleDouble {
    type Output = Self;
    fn rem(self, other: Self) -> Self {
        self - other * Self::from((self / other).hi.trunc())
    }
}

macro_rules! other_operands {
    ($($operation:ident $method:ident $assign:ident $assign_method:ident),*) => {$(
        impl $operation<f64> for DoubleDouble {
            type Output = Self;
            fn $method(self, other: f64) -> Self {
                self.$method(Self::from(other))
            }
        }
        impl $operation<&DoubleDouble> for DoubleDouble {
            type Output = Self;
            fn $method(self, other: &DoubleDouble) -> Self {
                self.$method(*other)
            }
        }
        impl $assign for DoubleDouble {
            fn $assign_method(&mut self, other: Self) {
                *self = self.$method(other);
            }
        }
        impl $assign<f64> for DoubleDouble {
            fn $assign_method(&mut self, other: f64) {
                *self = self.$method(other);
            }
        }
    )*};
}
other_operands!(Add add AddAssign add_assign, Sub sub SubAssign sub_assign, Mul mul MulAssign mul_assign,
    Div div DivAssign div_assign, Rem rem RemAssign rem_assign);

impl From<f64> for DoubleDouble {
    fn from(value: f64) -> Self {
        Self::new(value, 0.0)
    }
}

impl PartialEq<f64> for DoubleDouble {
    fn eq(&self, other: &f64) -> bool {
        *self == Self::from(*other)
    }
}

impl PartialOrd<f64> for DoubleDouble {
    fn partial_cmp(&self, other: &f64) -> Option<std::cmp::Ordering> {
        self.partial_cmp(&Self::from(*other))
    }
}

impl FromPrimitive for DoubleDouble {
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

impl Zero for DoubleDouble {
    fn zero() -> Self {
        Self::from(0.0)
    }
    fn is_zero(&self) -> bool {
        self.hi == 0.0
    }
}

impl One for DoubleDouble {
    fn one() -> Self {
        Self::from(1.0)
    }
}

impl Num for DoubleDouble {
    type FromStrRadixErr = ();
    fn from_str_radix(text: &str, radix: u32) -> Result<Self, ()> {
        Self::parse(text).filter(|_| radix == 10).ok_or(())
    }
}

impl Signed for DoubleDouble {
    fn abs(&self) -> Self {
        if self.is_negative() { -*self } else { *self }
    }
    fn abs_sub(&self, other: &Self) -> Self {
        let difference = *self - *other;
        if difference.is_negative() { Self::zero() } else { difference }
    }
    fn signum(&self) -> Self {
        Self::from(self.hi.signum())
    }
    fn is_positive(&self) -> bool {
        self.hi > 0.0
    }
    fn is_negative(&self) -> bool {
        self.hi < 0.0
    }
}

impl Inv for DoubleDouble {
    type Output = Self;
    fn inv(self) -> Self {
        Self::one() / self
    }
}

impl Sum for DoubleDouble {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::zero(), |a, b| a + b)
    }
}

impl Product for DoubleDouble {
    fn product<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::one(), |a, b| a * b)
    }
}

impl fmt::Display for DoubleDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {}", self.hi, self.lo)
    }
}

impl DualStruct for DoubleDouble {
    type Real = f64;
    type Inner = f64;
    fn re(&self) -> f64 {
        self.to_f64()
    }
    fn from_inner(inner: &f64) -> Self {
        Self::from(*inner)
    }
}

impl Mappable<DoubleDouble> for DoubleDouble {
    type Output<O> = O;
    fn map_dual<M: Fn(DoubleDouble) -> O, O>(self, f: M) -> O {
        f(self)
    }
}

impl Scalar for DoubleDouble {
    fn value(&self) -> f64 {
        self.to_f64()
    }
    fn derivatives(&self) -> &[f64] {
        &[]
    }
}

macro_rules! at_double_precision {
    ($($name:ident $slope:expr),* $(,)?) => {$(
        fn $name(&self) -> Self {
            let slope: fn(f64) -> f64 = $slope;
            self.linearised(self.hi.$name(), slope(self.hi))
        }
    )*};
}

impl DualNum for DoubleDouble {
    type Primitive = f64;
    const NDERIV: usize = 0;
    type InnerDual = f64;

    fn from_re(re: f64) -> Self {
        Self::from(re)
    }
    fn scale(self, factor: &f64) -> Self {
        self * *factor
    }
    fn recip(&self) -> Self {
        self.inv()
    }
    fn powi(&self, n: i32) -> Self {
        let (mut power, mut square, mut left) = (Self::one(), *self, n.unsigned_abs());
        while left > 0 {
            if left & 1 == 1 {
                power *= square;
            }
            square *= square;
            left >>= 1;
        }
        if n < 0 { power.inv() } else { power }
    }
    fn powf(&self, n: f64) -> Self {
        (self.ln() * n).exp()
    }
    fn sqrt(&self) -> Self {
        if self.hi <= 0.0 {
            return Self::from(self.hi.sqrt());
        }
        let root = self.hi.sqrt();
        let rest = *self - two_product(root, root);
        quick_two_sum(root, rest.hi / (2.0 * root))
    }
    fn exp(&self) -> Self {
        if !self.hi.is_finite() || self.hi.abs() > 700.0 {
            return Self::from(self.hi.exp());
        }
        #[expect(clippy::cast_possible_truncation, reason = "the quotient is at most 1010")]
        let k = (self.hi / LN_2.hi).round() as i32;
        let reduced = (*self - LN_2 * f64::from(k)).two_power(-HALVINGS);
        let (mut term, mut less_one) = (reduced, reduced);
        for n in 2..=TERMS {
            term = term * reduced / f64::from(n);
            less_one += term;
        }
        for _ in 0..HALVINGS {
            less_one = less_one.two_power(1) + less_one * less_one;
        }
        (less_one + 1.0).two_power(k)
    }
    fn ln(&self) -> Self {
        if !(self.hi > 0.0 && self.hi.is_finite()) {
            return Self::from(self.hi.ln());
        }
        let estimate = Self::from(self.hi.ln());
        estimate + *self * (-estimate).exp() - 1.0
    }
    fn log(&self, base: f64) -> Self {
        self.ln() / Self::from(base).ln()
    }
    fn log10(&self) -> Self {
        self.log(10.0)
    }
    fn log2(&self) -> Self {
        self.ln() / LN_2
    }
    fn exp2(&self) -> Self {
        (*self * LN_2).exp()
    }
    at_double_precision! {
        cbrt |x| x.cbrt() / (3.0 * x), exp_m1 |x| x.exp(), ln_1p |x| 1.0 / (1.0 + x),
        sin |x| x.cos(), cos |x| -x.sin(), tan |x| x.cos().powi(-2),
        asin |x| 1.0 / (1.0 - x * x).sqrt(), acos |x| -1.0 / (1.0 - x * x).sqrt(), atan |x| 1.0 / (1.0 + x * x),
        sinh |x| x.cosh(), cosh |x| x.sinh(), tanh |x| x.cosh().powi(-2),
        asinh |x| 1.0 / (x * x + 1.0).sqrt(), acosh |x| 1.0 / (x * x - 1.0).sqrt(), atanh |x| 1.0 / (1.0 - x * x),
    }
    fn sin_cos(&self) -> (Self, Self) {
        (self.sin(), self.cos())
    }
    fn atan2(&self, other: Self) -> Self {
        Self::from(self.hi.atan2(other.hi))
    }
    fn sph_j0(&self) -> Self {
        Self::from(self.hi.sph_j0())
    }
    fn sph_j1(&self) -> Self {
        Self::from(self.hi.sph_j1())
    }
    fn sph_j2(&self) -> Self {
        Self::from(self.hi.sph_j2())
    }
}
