//! Writing a record, a line at a time.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ntcopy_record::{End, FILE_NAME, Line};

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{} is already there: name another directory with --out, or remove it", .0.display())]
    Exists(PathBuf),
    #[error("neither XDG_DATA_HOME nor HOME names a directory: say with --out where to write")]
    NoHome,
    #[error("cannot write the record {}: {cause}", file.display())]
    Io { file: PathBuf, cause: std::io::Error },
}

#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    samples: u64,
}

impl Writer {
    pub fn create(place: &Path) -> Result<Writer, WriteError> {
        let path = place.join(FILE_NAME);
        let failed = |cause| WriteError::Io { file: path.clone(), cause };
        fs::create_dir_all(place).map_err(failed)?;
        match OpenOptions::new().append(true).create_new(true).open(&path) {
            Ok(file) => Ok(Writer { path, file, samples: 0 }),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(WriteError::Exists(path))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Writes one line through to the disk: neither a crash of the program nor
    /// one of a kernel under test takes it back.
    pub fn line(&mut self, line: &Line) -> Result<(), WriteError> {
        let mut bytes = serde_json::to_vec(line).map_err(|error| self.failed(error.into()))?;
        bytes.push(b'\n');
        self.file
            .write_all(&bytes)
            .and_then(|()| self.file.sync_data())
            .map_err(|cause| self.failed(cause))?;
        self.samples += u64::from(matches!(line, Line::Sample(_)));
        Ok(())
    }

    pub fn samples(&self) -> u64 {
        self.samples
    }

    fn failed(&self, cause: std::io::Error) -> WriteError {
        WriteError::Io { file: self.path.clone(), cause }
    }
}

/// Adds to a whole record's last line who measured at the same time.
pub fn note_beside(place: &Path, beside: BTreeSet<u32>) -> Result<(), WriteError> {
    let file = place.join(FILE_NAME);
    let failed = |cause| WriteError::Io { file: file.clone(), cause };
    let mut bytes = ntcopy_record::file::read(&file).map_err(failed)?;
    let lines = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let at = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if let Ok(Line::End(end)) = serde_json::from_slice(&bytes[at..]) {
        bytes.truncate(at);
        let end = Line::End(End { beside, ..end });
        serde_json::to_writer(&mut bytes, &end).map_err(|error| failed(error.into()))?;
        bytes.push(b'\n');
        let new = file.with_extension("new");
        fs::write(&new, bytes).and_then(|()| fs::rename(&new, &file)).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ntcopy_record::{Record, Unavailable};

    #[test]
    fn lines_are_in_the_file_as_soon_as_written() {
        let place = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(place.path()).unwrap();
        let line = Line::Unavailable(Unavailable {
            mode: "hinted".into(),
            why: "a\nb".into(),
            cell: None,
        });
        writer.line(&line).unwrap();
        let text = fs::read_to_string(place.path().join(FILE_NAME)).unwrap();
        assert_eq!(text.matches('\n').count(), 1);
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
        // Without a header it is no record yet.
        assert!(Record::read(place.path()).is_err());
    }

    #[test]
    fn a_place_that_cannot_be_is_named() {
        let error = Writer::create(Path::new("/dev/null/record")).unwrap_err();
        assert!(error.to_string().contains("/dev/null/record"), "{error}");
    }
}
