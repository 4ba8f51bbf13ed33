package gpu

// Host is the machine around the cards.
type Host struct {
	OS         string            `json:"os"`     // linux, windows
	Kernel     string            `json:"kernel"` // release, such as 6.12.9-200.fc41.x86_64
	Distro     Distro            `json:"distro"`
	Virtual    string            `json:"virtual,omitempty"` // wsl, container, flatpak, vm; empty: bare metal as far as can be seen
	CPU        CPU               `json:"cpu"`
	Memory     Meminfo           `json:"memory"`
	Cgroup     Cgroup            `json:"cgroup"`
	CommitLeft Reading[int64]    `json:"commit_left"` // Windows: what may still be committed, a hard limit beside the RAM
	Swaps      []Swap            `json:"swaps"`
	Disks      []Disk            `json:"disks"`
	Args       []string          `json:"kernel_args"` // kernel command line: only what concerns cards and memory
	Memlock    Reading[int64]    `json:"memlock"`     // bytes this process may lock; -1: no limit
	User       User              `json:"user"`
	Env        []EnvVar          `json:"env"`            // variables of this process that a driver or engine reads
	Perfmon    Reading[bool]     `json:"perfmon"`        // may see what other processes use of an Intel card (CAP_PERFMON or CAP_SYS_ADMIN)
	Helper     Reading[bool]     `json:"perfmon_helper"` // the sensor helper beside this program may; see HelperName
	Pressure   Reading[Pressure] `json:"pressure"`       // memory, at the moment of detection

	groups map[int64]string // names of /etc/group, to read recorded device files
}

// Distro is what /etc/os-release says.
type Distro struct {
	ID      string   `json:"id"`
	Like    []string `json:"like,omitempty"`
	Version string   `json:"version"`
	Name    string   `json:"name"`
}

// CPU is the processor as /proc/cpuinfo describes it.
type CPU struct {
	Name    string `json:"name"`
	Cores   int    `json:"cores"`   // physical
	Threads int    `json:"threads"` // logical
}

// User is who runs this program, for the permission of device nodes.
type User struct {
	UID    int64   `json:"uid"`    // -1 when unknown
	Groups []int64 `json:"groups"` // effective group and supplementary ones, as the running process has them
	Listed []int64 `json:"listed"` // groups /etc/group lists for the user; may be ahead of the session
}

// EnvVar is one variable of the environment.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Swap is one swap area.
type Swap struct {
	Path string `json:"path"`
	Size int64  `json:"size"` // bytes
	Used int64  `json:"used"`
	Zram bool   `json:"zram"` // lives in RAM: free space there is no extra capacity
}

// Disk is one block device that holds a file system of interest.
type Disk struct {
	Name       string         `json:"name"`
	Mount      string         `json:"mount"`
	FS         string         `json:"fs"`
	Rotational Reading[bool]  `json:"rotational"`
	Free       Reading[int64] `json:"free"`
	Size       Reading[int64] `json:"size"`
}

// Meminfo is /proc/meminfo in bytes.
type Meminfo struct {
	Total     Reading[int64] `json:"total"`
	Available Reading[int64] `json:"available"` // kernels before 3.14 have no such line: estimated then, and the source says so
	Free      Reading[int64] `json:"free"`
	Anon      Reading[int64] `json:"anon"`   // AnonPages
	Cached    Reading[int64] `json:"cached"` // page cache, includes mapped model files
	Shmem     Reading[int64] `json:"shmem"`
	SwapTotal Reading[int64] `json:"swap_total"`
	SwapFree  Reading[int64] `json:"swap_free"`
}

// Pressure is one PSI file (/proc/pressure/memory or a cgroup's memory.pressure).
type Pressure struct {
	SomeAvg10 float64 `json:"some_avg10"` // percent of time at least one task waited, last 10 s
	SomeAvg60 float64 `json:"some_avg60"`
	FullAvg10 float64 `json:"full_avg10"` // percent of time all tasks waited
	FullAvg60 float64 `json:"full_avg60"`
	SomeTotal int64   `json:"some_total_us"` // microseconds since boot
	FullTotal int64   `json:"full_total_us"`
}

// VMStat is what matters of /proc/vmstat: counters since boot.
type VMStat struct {
	MajorFaults int64 `json:"major_faults"`
	SwapIn      int64 `json:"swap_in"`  // pages
	SwapOut     int64 `json:"swap_out"` // pages
	Refault     int64 `json:"refault"`  // workingset_refault_file, pages read back soon after they were dropped
	OOMKills    int64 `json:"oom_kills"`
}

// Cgroup is the memory controller of this process's group, version 2 or, where
// that has none, version 1.
type Cgroup struct {
	Path     string         `json:"path,omitempty"`
	Max      Reading[int64] `json:"max"`  // smallest memory.max on the way to the root; unknown: no limit
	High     Reading[int64] `json:"high"` // smallest memory.high
	Current  Reading[int64] `json:"current"`
	Cache    Reading[int64] `json:"cache"` // part of Current that is clean page cache: a mapped model is here, and the kernel takes it back at need
	Left     Reading[int64] `json:"left"`  // least of what this group and those around it may still take, clean cache counted as free; unknown: no limit
	SwapMax  Reading[int64] `json:"swap_max"`
	OOMKills Reading[int64] `json:"oom_kills"`
}
