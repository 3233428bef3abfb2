//! The constructor.

use core::ffi::{c_char, c_int};

use crate::settings::{self, Bad};
use crate::{active, enable, filter, memory, original, sockets, sys};

/// What the loader calls when this library has been loaded. Named, for link.sh to ask for it.
#[cfg(not(test))]
#[used]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".init_array")]
#[allow(non_upper_case_globals)]
static ntcopy_preload_start: unsafe extern "C" fn(
    c_int,
    *const *const c_char,
    *const *const c_char,
) = start;

/// Looks up the originals, then reads the settings and becomes active.
///
/// # Safety
///
/// - `environment` is the process's, as glibc's loader gives it to every constructor.
#[cfg_attr(test, allow(dead_code))]
unsafe extern "C" fn start(
    _count: c_int,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) {
    original::resolve();
    memory::first_stack_ends(arguments.cast());
    // SAFETY: a question to the loader about this process.
    let has_more_rights_than_its_user = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if has_more_rights_than_its_user {
        return;
    }
    // SAFETY: the loader's promise; no thread changes the environment before `main`.
    let settings = settings::parse(|name| unsafe { settings::variable(environment, name) });
    match settings {
        Ok(settings) if filter::allows(settings.allowing_filters) => apply(settings),
        Ok(_) => {}
        Err(bad) => complain(&bad),
    }
}

fn apply(settings: settings::Settings) {
    sockets::own();
    // A child has a copy of the table and of the descriptors. One of vfork shares the table with
    // its parent and runs no handler.
    // SAFETY: the handler stores a number, and this library is never unloaded.
    unsafe { libc::pthread_atfork(None, None, Some(sockets::own)) };
    sockets::choose(settings.families);
    enable::choose(settings.mode);
    if settings.assume_kernel {
        enable::assume_kernel();
    }
    active::activate(settings.min_bytes);
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
