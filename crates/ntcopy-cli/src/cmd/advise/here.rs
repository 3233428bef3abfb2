//! The machine that advice is for, and what is set on it now.

use std::path::Path;

use ntcopy::policy::NEVER;
use ntcopy::profile::{self, Profile};
use ntcopy_bench::machine;
use ntcopy_judge::advice::{ProfileFacts, Target};

/// This machine. The library's profile is left out, with a note, if it is not usable.
pub fn this() -> Target {
    let profile = match profile::find(|name| std::env::var_os(name)) {
        Ok(found) => found.map(|found| facts(&found.path, &found.profile)),
        Err(error) => {
            eprintln!("note: {error}");
            None
        }
    };
    Target { machine: machine::describe(), profile }
}

fn facts(path: &Path, profile: &Profile) -> ProfileFacts {
    let from = |bytes: u64| (bytes != NEVER).then_some(bytes);
    ProfileFacts {
        place: path.display().to_string(),
        date: profile.date.clone(),
        copy_from_bytes: from(profile.policy.copy_nontemporal_from_bytes),
        fill_from_bytes: from(profile.policy.fill_nontemporal_from_bytes),
    }
}
