//! The library as C programs see it: installed into a prefix by `scripts/install.sh`, with its
//! header, compiled and linked by the compilers that are here.

mod checkers;
mod compilers;
mod drift;
mod installed;
mod programs;
mod released;
