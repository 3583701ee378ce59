package sandbox

import "errors"

// Refused reports why this configuration cannot be served on a system at all,
// nil where a probe decides. It is asked before anything is built: on Windows
// not even the workspace can be opened the way the file tools need it.
func (c Config) Refused(system string) error {
	if c.Mode == ModeOff || system != "windows" {
		return nil
	}
	return refusal(system)
}

// refusal is why no command can be confined on a system other than Linux, and
// what a person can do.
func refusal(system string) *UnavailableError {
	e := &UnavailableError{
		Step: "look for a sandbox", Cause: errors.New("there is none for " + system),
		Fix: "run the server on Linux, or in a Linux container or virtual machine",
	}
	if system == "windows" {
		e.Cause = errors.New("no walls can be built on windows, and commands are not run without")
		e.Fix = "run the server in WSL 2 (wsl --install), with the workspace inside it; doctor there says whether the walls stand"
	}
	return e
}
