//! Files that belong together: the folder gets all of them, or stays as it was.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::write_file;

/// Files by their place below one folder, all made before the first is written.
#[derive(Debug, Default)]
pub(crate) struct FileSet {
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Files of an earlier set that this one has not.
    outdated: Vec<PathBuf>,
}

/// What to do to one place in a folder that exists.
struct Step {
    /// The finished file; `None` for one that goes.
    new: Option<PathBuf>,
    target: PathBuf,
    /// What stood there, kept until everything is in place.
    kept: Option<PathBuf>,
}

impl FileSet {
    /// Adds a file.
    pub(crate) fn add(&mut self, name: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) {
        self.files.push((name.into(), bytes.into()));
    }

    /// Names a file that an earlier set may have left and that would not belong to this one.
    pub(crate) fn outdate(&mut self, name: impl Into<PathBuf>) {
        self.outdated.push(name.into());
    }

    /// Writes the set into `folder`.
    ///
    /// A new folder appears complete, by one rename. In one that exists, files are replaced by renames after all of the
    /// set has been written, and put back when one of these fails; files that are no part of the set are left alone.
    ///
    /// # Errors
    /// When the folder or a file cannot be written, or something else than a file stands at the place of one.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let failed = || format!("cannot write {}", folder.display());
        let place = Place::new(folder)?;
        let new = place.temporary.path().join("new");
        for (name, bytes) in &self.files {
            let path = new.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).with_context(failed)?;
            }
            fs::write(&path, bytes).with_context(failed)?;
        }
        if !place.exists {
            return fs::rename(&new, &place.folder).with_context(failed);
        }
        for (name, _) in &self.files {
            super::refuse_given(&place.folder.join(name))?;
            check_below(&place.folder, name.parent().unwrap_or(Path::new("")))?;
        }
        let steps = self.steps(&place, &new)?;
        for (done, step) in steps.iter().enumerate() {
            if let Err(error) = step.take() {
                for step in steps[..=done].iter().rev() {
                    // Best effort: the first error is the one to report.
                    let _ = step.undo();
                }
                return Err(error)
                    .with_context(|| format!("cannot write {}", step.target.display()));
            }
        }
        Ok(())
    }

    fn steps(&self, place: &Place, new: &Path) -> Result<Vec<Step>> {
        let old = place.temporary.path().join("old");
        fs::create_dir(&old).with_context(|| format!("cannot write {}", place.folder.display()))?;
        let files = self.files.iter().map(|(name, _)| (name, true));
        let outdated = self.outdated.iter().map(|name| (name, false));
        let mut steps = Vec::new();
        for (name, stays) in files.chain(outdated) {
            let named = place.folder.join(name);
            let failed = || format!("cannot write {}", named.display());
            // A link is followed to what it stands for; one that goes, goes itself.
            let target = if stays {
                fs::canonicalize(&named).unwrap_or_else(|_| named.clone())
            } else {
                named.clone()
            };
            let found = fs::metadata(&target).ok();
            if found.as_ref().is_some_and(|found| !found.is_file()) {
                if !stays {
                    continue;
                }
                bail!("cannot write {}: it is not a file", named.display());
            }
            if !stays && found.is_none() {
                continue;
            }
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).with_context(failed)?;
            }
            let kept = found.map(|_| old.join(steps.len().to_string()));
            if let Some(kept) = &kept {
                // Not every filesystem has hard links.
                if fs::hard_link(&target, kept).is_err() {
                    fs::copy(&target, kept).with_context(failed)?;
                }
            }
            steps.push(Step {
                new: stays.then(|| new.join(name)),
                target,
                kept,
            });
        }
        Ok(steps)
    }
}

/// Whether a set with these folders below its own can be written into `folder`, told before the work.
///
/// # Errors
/// When it is no folder, cannot be written into, or something else stands at the place of one below.
pub(crate) fn check_folder(folder: &Path, below: &[&str]) -> Result<()> {
    for name in below {
        check_below(folder, Path::new(name))?;
    }
    Place::new(folder).map(drop)
}

/// What stands where a set wants folders below its own: nothing, or folders. A link there leads out of the folder that
/// was named, to files that nobody offered to be replaced.
fn check_below(folder: &Path, below: &Path) -> Result<()> {
    let mut at = folder.to_owned();
    for part in below.components() {
        at.push(part);
        let Ok(found) = at.symlink_metadata() else {
            return Ok(());
        };
        if found.is_symlink() {
            bail!(
                "cannot write {}: it is a link, which is not followed; expected a folder or nothing",
                at.display()
            );
        }
        if !found.is_dir() {
            bail!(
                "cannot write {}: it is a file; expected a folder or nothing",
                at.display()
            );
        }
    }
    Ok(())
}

/// A folder, and a temporary one on its filesystem.
struct Place {
    folder: PathBuf,
    exists: bool,
    temporary: TempDir,
}

impl Place {
    fn new(folder: &Path) -> Result<Self> {
        let failed = || format!("cannot write into {}", folder.display());
        let exists = folder.symlink_metadata().is_ok();
        if exists && !folder.is_dir() {
            bail!("{} is not a directory", folder.display());
        }
        // Inside a folder that exists: its parent may be another filesystem, or nobody's to write into.
        let inside = if exists {
            folder.to_owned()
        } else {
            let parent = folder.parent().filter(|of| !of.as_os_str().is_empty());
            let parent = parent.unwrap_or_else(|| Path::new("."));
            fs::create_dir_all(parent).with_context(failed)?;
            parent.to_owned()
        };
        let mut builder = tempfile::Builder::new();
        let temporary = builder.prefix(".policysim-").tempdir_in(inside);
        Ok(Self {
            folder: folder.to_owned(),
            exists,
            temporary: temporary.with_context(failed)?,
        })
    }
}

impl Step {
    fn take(&self) -> Result<()> {
        match &self.new {
            Some(new) => moved(new, &self.target),
            None => Ok(fs::remove_file(&self.target)?),
        }
    }

    fn undo(&self) -> Result<()> {
        match &self.kept {
            Some(kept) => moved(kept, &self.target),
            None => match fs::remove_file(&self.target) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
                _ => Ok(()),
            },
        }
    }
}

/// Renames; where the place is on another filesystem, behind a link, the bytes are written beside it and renamed there.
fn moved(from: &Path, to: &Path) -> Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            let bytes: io::Result<Vec<u8>> = fs::read(from);
            write_file(to, &bytes?)
        }
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn set(files: &[(&str, &str)]) -> FileSet {
        let mut set = FileSet::default();
        for (name, text) in files {
            set.add(*name, *text);
        }
        set
    }

    /// Every file below a folder with its text.
    fn holds(folder: &Path) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(at) = folders.pop() {
            for entry in fs::read_dir(at).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(folder).unwrap();
                    let text = fs::read_to_string(&path).unwrap();
                    found.push((name.display().to_string(), text));
                }
            }
        }
        found.sort();
        found
    }

    fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        of.iter().map(own).collect()
    }

    #[test]
    fn a_set_replaces_the_one_before_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b");
        let first = [("charts/x.svg", "1"), ("charts/y.svg", "1"), ("r.md", "1")];
        set(&first).write(&folder).unwrap();
        assert_eq!(holds(&folder), pairs(&first));
        fs::write(folder.join("charts/mine.txt"), "mine").unwrap();
        let mut second = set(&[("charts/x.svg", "2"), ("r.md", "2"), ("new.md", "2")]);
        second.outdate("charts/y.svg");
        second.outdate("charts/z.svg");
        second.write(&folder).unwrap();
        assert_eq!(
            holds(place.path()),
            pairs(&[
                ("a/b/charts/mine.txt", "mine"),
                ("a/b/charts/x.svg", "2"),
                ("a/b/new.md", "2"),
                ("a/b/r.md", "2"),
            ])
        );
    }

    #[test]
    fn a_set_that_cannot_be_written_leaves_the_one_before() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("out");
        let first = [("a.md", "1"), ("b/c.md", "1")];
        set(&first).write(&folder).unwrap();
        // A name too long for any filesystem: the set is not complete.
        let long = "x".repeat(300);
        let error = set(&[("a.md", "2"), (&long, "2")]).write(&folder);
        assert!(error.is_err());
        assert_eq!(
            holds(place.path()),
            pairs(&[("out/a.md", "1"), ("out/b/c.md", "1")])
        );
        // A folder at the place of a file is seen before anything is replaced.
        let error = set(&[("a.md", "2"), ("b", "2")])
            .write(&folder)
            .unwrap_err();
        assert!(
            error.to_string().ends_with("b: it is not a file"),
            "{error}"
        );
        assert_eq!(
            holds(place.path()),
            pairs(&[("out/a.md", "1"), ("out/b/c.md", "1")])
        );
        let error = set(&first).write(&folder.join("a.md")).unwrap_err();
        assert!(
            error.to_string().ends_with("a.md is not a directory"),
            "{error}"
        );
        // And so is it for the first set of a folder.
        assert!(
            set(&[("a.md", "2"), (&long, "2")])
                .write(&place.path().join("other"))
                .is_err()
        );
        assert_eq!(
            holds(place.path()),
            pairs(&[("out/a.md", "1"), ("out/b/c.md", "1")])
        );
    }

    /// The last file of the set cannot be replaced: those before it are put back.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_was_replaced_is_put_back_when_a_later_file_fails() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("out");
        set(&[("a.md", "1"), ("old.md", "1")])
            .write(&folder)
            .unwrap();
        std::os::unix::fs::symlink("/proc/version", folder.join("z.md")).unwrap();
        let mut second = set(&[("a.md", "2"), ("b.md", "2"), ("z.md", "2")]);
        second.outdate("old.md");
        assert!(second.write(&folder).is_err());
        fs::remove_file(folder.join("z.md")).unwrap();
        assert_eq!(holds(&folder), pairs(&[("a.md", "1"), ("old.md", "1")]));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    /// What stands where a folder of the set belongs is told before anything is replaced.
    #[cfg(unix)]
    #[test]
    fn a_folder_below_is_neither_a_link_nor_a_file() {
        let place = tempfile::tempdir().unwrap();
        let (folder, far) = (place.path().join("out"), place.path().join("far"));
        set(&[("a.md", "1")]).write(&folder).unwrap();
        set(&[("x.svg", "mine")]).write(&far).unwrap();
        std::os::unix::fs::symlink(&far, folder.join("charts")).unwrap();
        let both = set(&[("a.md", "2"), ("charts/x.svg", "2")]);
        let link = "charts: it is a link, which is not followed; expected a folder or nothing";
        let file = "charts: it is a file; expected a folder or nothing";
        for expected in [link, file] {
            for error in [both.write(&folder), check_folder(&folder, &["charts"])] {
                let error = error.unwrap_err().to_string();
                assert!(error.ends_with(expected), "{error}");
            }
            assert_eq!(fs::read_to_string(folder.join("a.md")).unwrap(), "1");
            assert_eq!(holds(&far), pairs(&[("x.svg", "mine")]));
            fs::remove_file(folder.join("charts")).unwrap();
            fs::write(folder.join("charts"), "mine").unwrap();
        }
        fs::remove_file(folder.join("charts")).unwrap();
        both.write(&folder).unwrap();
        assert_eq!(
            holds(&folder),
            pairs(&[("a.md", "2"), ("charts/x.svg", "2")])
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_of_the_set_before_stay_links() {
        let place = tempfile::tempdir().unwrap();
        let (folder, far) = (place.path().join("out"), place.path().join("far.md"));
        set(&[("a.md", "1")]).write(&folder).unwrap();
        fs::rename(folder.join("a.md"), &far).unwrap();
        std::os::unix::fs::symlink(&far, folder.join("a.md")).unwrap();
        set(&[("a.md", "2")]).write(&folder).unwrap();
        assert!(folder.join("a.md").is_symlink());
        assert_eq!(fs::read_to_string(far).unwrap(), "2");
    }
}
