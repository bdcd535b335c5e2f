//! `offhours backup`: writes everything that is stored to a file.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, BufWriter, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use jiff::Timestamp;
use local::file::Purpose;
use report::count;
use serde::{Deserialize, Serialize};
use store::{StoredItem, item::FORMAT};
use tempfile::NamedTempFile;

use crate::{Exit, context::Context, exit::UsageError, output};

/// Write everything that is stored to a file.
///
/// The file has one JSON object per line: schedules, accounts, overrides, the record of each
/// resource with the size and the machine that it is owed, and history; no token. It is readable by
/// its owner alone, and replaces an earlier backup once it is complete, but no other file. A local
/// store may be in use meanwhile: the backup shows it at one instant.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours backup offhours.backup
  offhours backup --data /var/lib/offhours/offhours.db /backup/offhours
  grep '\"resource\":\"droplet/42\"' offhours.backup | jq

`offhours restore` reads it. At AWS, it takes the right to scan the four tables.")]
pub struct Args {
    /// File to write.
    file: PathBuf,
}

/// The first line of a backup.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    /// The version of Offhours that has written it.
    offhours: String,
    /// The newest format of its items.
    format: u32,
    pub taken_at: Timestamp,
}

/// The last line of a backup: without it, the file is cut off.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    items: usize,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open_for(Purpose::ReadAtOnce).await?;
    let before = session.store.head().await?;
    let cannot_write = || format!("cannot write {}", args.file.display());
    if let Ok(there) = fs::symlink_metadata(&args.file) {
        // Above all, it may be the store itself.
        if !there.is_file() || there.len() > 0 && header(&args.file).is_err() {
            bail_usage!(
                "{} is not a backup, and stays as it is: name another file",
                args.file.display()
            );
        }
    }
    let folder = args.file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let file =
        NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).with_context(cannot_write)?;
    let mut to = BufWriter::new(file);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let header = Header { offhours: version, format: FORMAT, taken_at: session.now };
    write_line(&mut to, &header)?;
    let mut items = 0;
    let each = session.store.each_item(|item| {
        items += 1;
        write_line(&mut to, &item)
    });
    each.await.context("cannot read the store")?;
    if session.store.head().await? != before {
        anyhow::bail!("a configuration was applied meanwhile: nothing was written; try again");
    }
    write_line(&mut to, &End { items })?;
    let file = to.into_inner().map_err(std::io::IntoInnerError::into_error);
    let file = file.with_context(cannot_write)?;
    file.as_file().sync_all().with_context(cannot_write)?;
    file.persist(&args.file).map_err(|error| error.error).with_context(cannot_write)?;
    let items = count(items, "item");
    output::print(&format!("Wrote {items} to {}\n", args.file.display()))?;
    Ok(Exit::Done)
}

fn write_line(to: &mut BufWriter<NamedTempFile>, line: &impl Serialize) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *to, line).context("cannot write the backup")?;
    to.write_all(b"\n").context("cannot write the backup")
}

/// A backup that is read.
#[derive(Debug)]
pub(super) struct Backup {
    path: PathBuf,
    pub header: Header,
}

impl Backup {
    /// Opens a backup, after checking each of its lines.
    ///
    /// # Errors
    /// A usage error that names the line if the file is no complete backup that this program can
    /// read.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let header = header(path)?;
        if header.format > FORMAT {
            let newer = "a newer version of Offhours has written it; update this one";
            return Err(refusal(path, 1, newer));
        }
        let backup = Self { path: path.to_owned(), header };
        backup.items()?.try_for_each(|item| item.map(drop))?;
        Ok(backup)
    }

    /// Reads its items; an error after the last one if the file is cut off.
    pub(super) fn items(&self) -> anyhow::Result<impl Iterator<Item = anyhow::Result<StoredItem>>> {
        let (path, mut lines) = (self.path.clone(), lines(&self.path)?.enumerate().skip(1));
        let mut line = 1;
        Ok(std::iter::from_fn(move || {
            let Some((before, text)) = lines.next() else {
                return Some(Err(refusal(&path, line, "it is cut off after this line")));
            };
            line = before + 1;
            let item = text.and_then(|text| match serde_json::from_str::<End>(&text) {
                Ok(end) if end.items == before - 1 => Ok(None),
                Ok(_) => Err(refusal(&path, line, "there are items missing before it")),
                Err(_) => serde_json::from_str(&text).map(Some).map_err(|_| {
                    refusal(&path, line, "invalid item: the file is damaged or cut off")
                }),
            });
            item.transpose()
        }))
    }
}

fn header(path: &Path) -> anyhow::Result<Header> {
    let is_none = || refusal(path, 1, "it does not begin as a backup does");
    let header = lines(path)?.next().transpose()?.ok_or_else(is_none)?;
    serde_json::from_str(&header).map_err(|_| is_none())
}

fn lines(path: &Path) -> anyhow::Result<impl Iterator<Item = anyhow::Result<String>> + use<>> {
    let cannot_read = format!("cannot read {}", path.display());
    let file = File::open(path).with_context(|| cannot_read.clone())?;
    let lines = BufReader::new(file).lines();
    Ok(lines.map(move |line| line.with_context(|| cannot_read.clone())))
}

fn refusal(path: &Path, line: usize, why: &str) -> anyhow::Error {
    UsageError(format!("{} line {line}: {why}", path.display())).into()
}
