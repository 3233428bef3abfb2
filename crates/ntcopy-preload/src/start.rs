//! The constructor.

use core::ffi::c_char;

use crate::settings::{self, Bad};
use crate::{enable, filter, original, sys};

// Not the constructor's argument: musl's loader gives it none.
unsafe extern "C" {
    static environ: *const *const c_char;
}

/// What the loader calls when this library has been loaded. Named, for link.sh to ask for it.
#[cfg(not(test))]
#[used]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".init_array")]
#[allow(non_upper_case_globals)]
static ntcopy_preload_start: extern "C" fn() = start;

/// Looks up the originals, then reads the settings and becomes active.
#[cfg_attr(test, allow(dead_code))]
extern "C" fn start() {
    original::resolve();
    // SAFETY: a question to the loader about this process.
    let has_more_rights_than_its_user = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if has_more_rights_than_its_user {
        return;
    }
    // SAFETY: the C library has set it before it calls any constructor; no thread changes the
    // environment before `main`.
    let settings = settings::parse(|name| unsafe { settings::variable(environ, name) });
    match settings {
        Ok(settings) if filter::allows(settings.allowing_filters) => enable::activate(&settings),
        Ok(_) => {}
        Err(bad) => complain(&bad),
    }
}

fn complain(bad: &Bad) {
    sys::complain(&[
        b"ntcopy-preload: ",
        bad.variable.to_bytes(),
        b" is '",
        bad.value,
        b"', not ",
        bad.wanted.as_bytes(),
        b": nothing is hinted\n",
    ]);
}
