//! The comparison of `generate` with other programs: inputs, calls, measurements and checks.

mod contender;
mod corpus;
mod measure;
mod objects;
mod same_work;
mod table;

pub(crate) use contender::{Baseline, contenders};
pub(crate) use corpus::Corpus;
pub(crate) use measure::{MEASURE, in_turn, measure};
pub(crate) use same_work::check;
pub(crate) use table::table;
