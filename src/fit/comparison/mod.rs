//! Structures against each other on the same trials: [`f_test`] the statistic, [`compare`] two fits.

pub mod compare;
pub mod f_test;
