package call

import "encoding/json"

// Effect is the strongest thing a tool does. The zero value is refused at
// registration.
type Effect uint8

// The effects.
const (
	EffectUnset    Effect = iota
	ReadsState            // the server's own state only
	ReadsFiles            // content of files
	ReachesNetwork        // outbound connections
	WritesFiles           // changes files
	RunsCommands          // starts processes
)

// String returns the snake_case name used in audit records and docs.
func (e Effect) String() string {
	switch e {
	case ReadsState:
		return "reads_state"
	case ReadsFiles:
		return "reads_files"
	case ReachesNetwork:
		return "reaches_network"
	case WritesFiles:
		return "writes_files"
	case RunsCommands:
		return "runs_commands"
	case EffectUnset:
		return "unset"
	}
	return "unset"
}

// ReadOnly reports whether the effect cannot change anything on this machine.
func (e Effect) ReadOnly() bool {
	return e == ReadsState || e == ReadsFiles || e == ReachesNetwork
}

// Confirm says whether a person is asked. The zero value is refused at
// registration.
type Confirm uint8

// The confirmation modes.
const (
	ConfirmUnset    Confirm = iota
	ConfirmAlways           // every call
	ConfirmByPolicy         // when a gate says so
	ConfirmNever            // the tool cannot do harm; a gate may still deny
)

// Toggle is a yes/no answer that must be given: the zero value is refused at
// registration.
type Toggle uint8

// SkillEnvKey is the `_meta` key of a request, and the member of accepted
// arguments, that holds the variables of the active skill. No input schema has
// it, so nothing in a call's own arguments can set it.
const SkillEnvKey = "zeph/skill_env"

// The answers.
const (
	ToggleUnset Toggle = iota
	No
	Yes
)

// Bool reports whether t is [Yes].
func (t Toggle) Bool() bool { return t == Yes }

// Spec is everything the server tells about a tool and everything gates may
// know of its nature. It is read once at registration and frozen; every enum
// must be set.
type Spec struct {
	Name        string          // ^[a-z][a-z0-9_]{0,63}$
	Title       string          // for people
	Description string          // what the model reads; from the embedded <tool>.md
	Input       json.RawMessage // JSON Schema, closed at every level
	Output      json.RawMessage // JSON Schema, root object, nothing required (error results must fit too)

	Effect  Effect
	Confirm Confirm

	Destructive  Toggle // may destroy what cannot be got back
	Idempotent   Toggle // the same call twice changes nothing more
	OpenWorld    Toggle // reaches things outside this machine
	Cacheable    Toggle // a permitted result may be served again
	Speculatable Toggle // may be run before it is known to be needed
	Retryable    Toggle // a transient failure may be tried again

	// SkillEnv says that the tool starts programs and gives them the variables
	// of the active skill. They reach it as the argument [SkillEnvKey].
	SkillEnv bool
}
