package sandbox

import "golang.org/x/sys/unix"

// memoryLimit is what one command's processes may take together: what the
// operator says, and never more than half of the machine's memory.
func (c Config) memoryLimit() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return c.MaxMemory
	}
	half := int64(uint64(info.Totalram) * uint64(info.Unit) / 2) //nolint:unconvert // its size differs between processors
	return min(c.MaxMemory, half)
}
