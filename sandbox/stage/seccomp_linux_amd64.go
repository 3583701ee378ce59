package stage

import "golang.org/x/sys/unix"

func auditArch() uint32 { return unix.AUDIT_ARCH_X86_64 }

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
