package stage

import "golang.org/x/sys/unix"

func auditArch() uint32 { return unix.AUDIT_ARCH_X86_64 }

// birthsHere are the calls that make a process on this kind of processor alone.
func birthsHere() []uint32 { return []uint32{unix.SYS_FORK, unix.SYS_VFORK} }

func deniedHere() []sysCall {
	return []sysCall{
		{unix.SYS_IOPL, "iopl"},
		{unix.SYS_IOPERM, "ioperm"},
		{unix.SYS_MODIFY_LDT, "modify_ldt"},
		{unix.SYS_USELIB, "uselib"},
		{unix.SYS_USTAT, "ustat"},
		{unix.SYS_SYSFS, "sysfs"},
		{unix.SYS__SYSCTL, "_sysctl"},
	}
}
