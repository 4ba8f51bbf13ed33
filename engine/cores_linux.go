package engine

import (
	"os"

	"golang.org/x/sys/unix"
)

func systemCores() int {
	if cpus := allowedCPUs(); len(cpus) > 0 {
		return physicalCores(os.ReadFile, cpus)
	}
	return 0
}

// allowedCPUs lists the CPUs of this process's affinity mask, which cpusets of
// control groups narrow too.
func allowedCPUs() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var cpus []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus
}
