package launch

import (
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/windows"
)

// start runs cmd in a job object that dies with this process: the handle is
// never closed, so Windows closes it at our end and kills what is in the job.
func start(cmd *exec.Cmd) error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return os.NewSyscallError("CreateJobObject", err)
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		windows.CloseHandle(job)
		return os.NewSyscallError("SetInformationJobObject", err)
	}
	cmd.SysProcAttr = &windows.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW}
	if err := cmd.Start(); err != nil {
		windows.CloseHandle(job)
		return err
	}
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(cmd.Process.Pid))
	if err == nil {
		err = windows.AssignProcessToJobObject(job, h)
		windows.CloseHandle(h)
	}
	if err != nil {
		// The pipe on standard input still ends the child with us.
		windows.CloseHandle(job)
	}
	return nil
}

func raiseOOMScore(pid, score int) {}

func status(ps *os.ProcessState) (code int, signal string) {
	if ps == nil {
		return -1, ""
	}
	return ps.ExitCode(), ""
}

// terminate has no gentle form here; Stop closed standard input before.
func terminate(p *os.Process) { p.Kill() }
