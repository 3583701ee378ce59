package call

// ViolationKind says what a [Violation] is about.
type ViolationKind string

// The kinds of violations.
const (
	ViolationFS      ViolationKind = "fs"      // a path
	ViolationNet     ViolationKind = "net"     // a connection
	ViolationSyscall ViolationKind = "syscall" // a system call
	ViolationLimit   ViolationKind = "limit"   // more of something than a command may have
)

// ViolationSource says how a [Violation] is known.
type ViolationSource string

// The sources of violations.
const (
	SourceExact    ViolationSource = "exact"    // what denied it says so
	SourceInferred ViolationSource = "inferred" // a program complained, and the policy says that it would have been denied
)

// Violation is one thing a command was denied, told so that a model can act on
// it. Nothing is ever decided by one: a command can provoke some, and hide
// others.
type Violation struct {
	Kind   ViolationKind   `json:"kind"`
	Op     string          `json:"op"`     // what was tried: write, read, connect, a system call, what there was too much of
	Target string          `json:"target"` // a path, host:port, a detail of the call; chosen by the command, so escaped and cut
	Rule   string          `json:"rule"`   // what denies it
	Source ViolationSource `json:"source"`
	Count  int             `json:"count"`
	By     string          `json:"by,omitempty"`   // the program that tried, by its own word; of a limit what holds it
	Hint   string          `json:"hint,omitempty"` // what can be done about it
}
