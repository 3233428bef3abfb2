//! ntcopy: copies and sends that know whether their bytes belong in the cache.

pub mod uapi;
