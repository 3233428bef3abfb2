//! What the library goes by, and its version.

use std::ffi::{CString, c_char, c_int};
use std::ptr;

use ntcopy::SettingsError;
use once_cell::race::OnceBox;

use crate::boundary::{Errno, answer, write_out};

/// This crate's version, with its NUL.
static VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// Reads the settings, and says whether all of them can be followed.
///
/// # Safety
///
/// `message` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_init(message: *mut *const c_char) -> c_int {
    // SAFETY: the caller guarantees that `message` is NULL or can be written. What a panic leaves
    // is no message.
    unsafe { write_out(message, ptr::null()) };
    answer(|| match ntcopy::init() {
        Ok(_) => Ok(0),
        Err(error) => {
            // SAFETY: as above.
            unsafe { write_out(message, text_of(error)) };
            Err(Errno::INVALID)
        }
    })
}

/// The error as C text that lives as long as the process: every call answers the same.
fn text_of(error: &SettingsError) -> *const c_char {
    static TEXT: OnceBox<CString> = OnceBox::new();
    TEXT.get_or_init(|| {
        // A file name, and so a message, may hold anything but NUL; what came from the
        // environment holds none either.
        let bytes = error.to_string().into_bytes().into_iter().filter(|byte| *byte != 0);
        Box::new(CString::new(bytes.collect::<Vec<u8>>()).unwrap_or_default())
    })
    .as_ptr()
}

/// The library's version as text.
#[unsafe(no_mangle)]
pub extern "C" fn ntcopy_version() -> *const c_char {
    VERSION.as_ptr().cast()
}
