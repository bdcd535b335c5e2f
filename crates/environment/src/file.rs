//! Files of limited length: a wrong path, such as a device without an end, is an error.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// The longest private key, in bytes.
pub(crate) const LONGEST_KEY: u64 = 64 * 1024;

/// The longest file that a person writes, such as a configuration, in bytes.
pub const LONGEST_TEXT: u64 = 4 * 1024 * 1024;

/// Reads a text file of at most `longest` bytes.
pub fn read_text(path: &Path, longest: u64) -> io::Result<String> {
    text(read(path, longest)?)
}

/// Reads a file of at most `longest` bytes.
pub fn read(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    read_to_end(File::open(path)?, longest)
}

/// Reads at most `longest` bytes to the end.
pub fn read_to_end(input: impl Read, longest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        let message = format!("longer than {} KiB: is this the right file?", longest / 1024);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Reads a private key. `None` if others can read it, too.
pub(crate) fn read_key(path: &Path) -> io::Result<Option<String>> {
    let file = File::open(path)?;
    if is_shared(&file)? {
        return Ok(None);
    }
    text(read_to_end(file, LONGEST_KEY)?).map(Some)
}

/// Container platforms mount secrets as root's, for a group to read.
#[cfg(unix)]
fn is_shared(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = file.metadata()?;
    let for_others = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    Ok(metadata.mode() & for_others != 0)
}

#[cfg(not(unix))]
fn is_shared(_: &File) -> io::Result<bool> {
    Ok(false)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8 text");
    String::from_utf8(bytes).map_err(not_text)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn an_endless_file_is_an_error() {
        for read in [read, |path: &Path, longest| read_text(path, longest).map(String::into_bytes)]
        {
            let error = read(Path::new("/dev/zero"), LONGEST_TEXT).unwrap_err();
            let said = error.to_string();
            assert_eq!(said, "longer than 4096 KiB: is this the right file?");
        }
    }

    #[test]
    fn the_longest_key_is_read_and_a_longer_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        for (length, is_read) in [(LONGEST_KEY, true), (LONGEST_KEY + 1, false)] {
            fs::write(&path, "k".repeat(usize::try_from(length).unwrap())).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert_eq!(read_key(&path).is_ok(), is_read, "{length}");
        }
    }

    #[test]
    fn a_key_that_others_can_read_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "key").unwrap();
        for (mode, is_read) in [
            (0o600, true),
            (0o400, true),
            (0o644, false),
            (0o604, false),
            (0o660, false),
            (0o601, false),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_key(&path).unwrap().is_some(), is_read, "{mode:o}");
        }
    }
}
