//! What the modes of a record are.

use serde::{Deserialize, Serialize};

use super::Header;

/// What a mode's sends do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sends {
    Plain,
    Hinted,
    /// By a rule in the kernel, which was withdrawn: shown, and never advised on.
    ByRule,
    /// By reference: no byte is copied.
    CopiesNothing,
    /// Nothing is sent. Nobody can choose it: it is what the others have above them.
    Idle,
    /// It sends nothing that a hint is about, or its name says all there is: a way to copy, a call.
    Other,
}

impl Sends {
    /// What sends of this name do: a mode's name, without what it is added where a record has
    /// several kernels or stacks.
    fn named(word: &str) -> Sends {
        match word {
            "plain" => Sends::Plain,
            "hinted" => Sends::Hinted,
            "adaptive" => Sends::ByRule,
            "sendfile" | "vmsplice" => Sends::CopiesNothing,
            "idle" => Sends::Idle,
            _ => Sends::Other,
        }
    }
}

/// The kernel that a mode is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    /// That of the machine, whatever it has.
    Host,
    /// Without patches and without the module.
    Stock,
    Patched,
    /// Without patches, with the module.
    Module,
    /// With another series of patches.
    OtherPatches,
}

impl Kernel {
    /// That of a machine by its name in `ntcopy kernel`.
    fn of_kind(kind: &str) -> Kernel {
        match kind {
            "host" => Kernel::Host,
            kind if kind.ends_with("+module") => Kernel::Module,
            _ => Kernel::Patched,
        }
    }

    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Kernel::Host => "machine's kernel",
            Kernel::Stock => "stock kernel",
            Kernel::Patched => "patched kernel",
            Kernel::Module => "kernel with the module",
            Kernel::OtherPatches => "kernel with the other patches",
        }
    }

    /// What follows the name of a mode in a record of several kernels; that of the series that is
    /// measured needs nothing.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Kernel::Host | Kernel::Patched => "",
            Kernel::Stock => "-stock",
            Kernel::Module => "-module",
            Kernel::OtherPatches => "-old",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mode {
    /// Its name in the record's lines.
    pub mode: String,
    pub sends: Sends,
    /// None of what is of no kernel, such as copies in user space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Kernel>,
    /// The servers that it is of, where a record has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

impl Mode {
    /// A mode whose name says what it sends, in whatever kernel measures it.
    pub fn named(name: impl Into<String>) -> Mode {
        let mode = name.into();
        Mode { sends: Sends::named(&mode), mode, kernel: None, stack: None }
    }

    /// The same of one of several stacks of servers.
    #[must_use]
    pub fn of_stack(self, stack: &str) -> Mode {
        let mode = format!("{stack}:{}", self.mode);
        Mode { mode, stack: Some(stack.to_owned()), ..self }
    }

    /// The same of one of several kernels.
    #[must_use]
    pub fn on(self, kernel: Kernel) -> Mode {
        Mode { mode: format!("{}{}", self.mode, kernel.suffix()), kernel: Some(kernel), ..self }
    }

    /// Of the kernel that measured, where nothing else was said.
    #[must_use]
    pub fn measured_in(self, kernel_kind: &str) -> Mode {
        let is_of_none = self.sends == Sends::Other;
        let here = (!is_of_none).then(|| Kernel::of_kind(kernel_kind));
        Mode { kernel: self.kernel.or(here), ..self }
    }
}

impl Header {
    /// What a mode is, by its name.
    #[must_use]
    pub fn mode(&self, name: &str) -> Option<&Mode> {
        self.modes.iter().find(|mode| mode.mode == name)
    }

    /// What a mode sends, by its name.
    #[must_use]
    pub fn sends(&self, name: &str) -> Sends {
        self.mode(name).map_or(Sends::Other, |mode| mode.sends)
    }

    /// The mode that is like another one but for what it sends: its kernel, its stack.
    #[must_use]
    pub fn beside(&self, mode: &Mode, sends: Sends) -> Option<&Mode> {
        self.modes.iter().find(|other| {
            other.sends == sends && (other.kernel, &other.stack) == (mode.kernel, &mode.stack)
        })
    }

    /// The mode that is like another one but for its kernel.
    #[must_use]
    pub fn elsewhere(&self, mode: &Mode, kernel: Kernel) -> Option<&Mode> {
        self.modes.iter().find(|other| {
            other.kernel == Some(kernel)
                && (other.sends, &other.stack) == (mode.sends, &mode.stack)
                && mode.sends != Sends::Other
        })
    }
}
