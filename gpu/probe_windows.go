package gpu

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// displayClass is the registry key of display drivers.
const displayClass = `{4d36e968-e325-11ce-bfc1-08002be10318}`

// probeWindows asks DXGI, the registry and the performance counters.
func probeWindows() WindowsAnswers {
	w := WindowsAnswers{System: winSystem(), Env: os.Environ()}
	w.Adapters = dxgiAdapters()
	w.Registry = displayKeys()
	used := map[string]bool{}
	for i := range w.Adapters {
		for _, k := range w.Registry {
			id := fmt.Sprintf("VEN_%04X&DEV_%04X", w.Adapters[i].Vendor, w.Adapters[i].Device)
			if !used[k.Key] && strings.Contains(strings.ToUpper(k.Matching), id) {
				w.Adapters[i].Bus = k.Bus
				used[k.Key] = true
				break
			}
		}
	}
	if q, err := openPDH(); err == nil {
		defer q.close()
		w.Counters = q.read()
	}
	return w
}

type memoryStatusEx struct {
	length, load                                                                   uint32
	totalPhys, availPhys, totalPage, availPage, totalVirt, availVirt, availExtVirt uint64
}

var (
	kernel32             = windows.NewLazySystemDLL("kernel32.dll")
	globalMemoryStatusEx = kernel32.NewProc("GlobalMemoryStatusEx")
	dxgi                 = windows.NewLazySystemDLL("dxgi.dll")
	createDXGIFactory1   = dxgi.NewProc("CreateDXGIFactory1")
	pdh                  = windows.NewLazySystemDLL("pdh.dll")
	pdhOpenQuery         = pdh.NewProc("PdhOpenQueryW")
	pdhCloseQuery        = pdh.NewProc("PdhCloseQuery")
	pdhAddEnglishCounter = pdh.NewProc("PdhAddEnglishCounterW")
	pdhCollectQueryData  = pdh.NewProc("PdhCollectQueryData")
	pdhGetArray          = pdh.NewProc("PdhGetFormattedCounterArrayW")
)

func winSystem() WinSystem {
	s := WinSystem{Threads: runtime.NumCPU(), Cores: runtime.NumCPU()}
	v := windows.RtlGetVersion()
	s.Version = fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
	m := memoryStatusEx{length: uint32(unsafe.Sizeof(memoryStatusEx{}))}
	if r, _, _ := globalMemoryStatusEx.Call(uintptr(unsafe.Pointer(&m))); r != 0 {
		s.RAM, s.Available = int64(m.totalPhys), int64(m.availPhys)
		s.CommitLimit, s.CommitUsed = int64(m.totalPage), int64(m.totalPage-m.availPage)
	}
	if k, err := registry.OpenKey(registry.LOCAL_MACHINE, `HARDWARE\DESCRIPTION\System\CentralProcessor\0`, registry.QUERY_VALUE); err == nil {
		s.CPU, _, _ = k.GetStringValue("ProcessorNameString")
		s.CPU = strings.TrimSpace(s.CPU)
		k.Close()
	}
	return s
}

// comObject is a COM object: a pointer to its table of methods.
type comObject struct{ vtbl *[32]uintptr }

// call calls method i.
func (o *comObject) call(i int, args ...uintptr) uintptr {
	r, _, _ := syscall.SyscallN(o.vtbl[i], append([]uintptr{uintptr(unsafe.Pointer(o))}, args...)...)
	return r
}

// Methods of the COM interfaces used, by their place in the table.
const (
	comRelease   = 2
	enumAdapters = 12 // IDXGIFactory1::EnumAdapters1
	getDesc1     = 10 // IDXGIAdapter1::GetDesc1
)

type dxgiDesc1 struct {
	description                   [128]uint16
	vendor, device, sub, revision uint32
	dedicated, system, shared     uintptr
	luidLow                       uint32
	luidHigh                      int32
	flags                         uint32
}

func dxgiAdapters() []WinAdapter {
	if dxgi.Load() != nil || createDXGIFactory1.Find() != nil {
		return nil
	}
	iid := windows.GUID{Data1: 0x770aae78, Data2: 0xf26f, Data3: 0x4dba, Data4: [8]byte{0xa8, 0x29, 0x25, 0x3c, 0x83, 0xd1, 0xb3, 0x87}}
	var factory *comObject
	if r, _, _ := createDXGIFactory1.Call(uintptr(unsafe.Pointer(&iid)), uintptr(unsafe.Pointer(&factory))); r != 0 || factory == nil {
		return nil
	}
	defer factory.call(comRelease)
	var out []WinAdapter
	for i := uintptr(0); i < 64; i++ {
		var a *comObject
		if factory.call(enumAdapters, i, uintptr(unsafe.Pointer(&a))) != 0 || a == nil {
			break
		}
		var d dxgiDesc1
		if a.call(getDesc1, uintptr(unsafe.Pointer(&d))) == 0 {
			out = append(out, WinAdapter{
				Description: windows.UTF16ToString(d.description[:]), Vendor: uint16(d.vendor), Device: uint16(d.device),
				Dedicated: int64(d.dedicated), Shared: int64(d.shared), LUID: fmt.Sprintf("0x%08x_0x%08x", uint32(d.luidHigh), d.luidLow),
			})
		}
		a.call(comRelease)
	}
	return out
}

// displayKeys reads the display class, and where each device of it is on the
// bus from the PCI enumeration.
func displayKeys() []WinKey {
	base := `SYSTEM\CurrentControlSet\Control\Class\` + displayClass
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, base, registry.ENUMERATE_SUB_KEYS)
	if err != nil {
		return nil
	}
	defer k.Close()
	subs, _ := k.ReadSubKeyNames(-1)
	bus := pciBuses()
	var out []WinKey
	for _, s := range subs {
		if _, err := strconv.Atoi(s); err != nil {
			continue
		}
		d, err := registry.OpenKey(registry.LOCAL_MACHINE, base+`\`+s, registry.QUERY_VALUE)
		if err != nil {
			continue
		}
		w := WinKey{Key: s}
		w.Description, _, _ = d.GetStringValue("DriverDesc")
		w.Matching, _, _ = d.GetStringValue("MatchingDeviceId")
		w.Version, _, _ = d.GetStringValue("DriverVersion")
		if v, _, err := d.GetIntegerValue("HardwareInformation.qwMemorySize"); err == nil && v < 1<<50 {
			w.Memory = int64(v)
		}
		d.Close()
		b, ok := bus[strings.ToLower(displayClass+`\`+s)]
		if !ok {
			continue // a driver left behind by a device that is gone
		}
		w.Bus = b
		out = append(out, w)
	}
	return out
}

// pciBuses maps "class\number" of devices that are present to their PCI bus. The
// location text ends in "(bus,device,function)".
func pciBuses() map[string]int {
	out := map[string]int{}
	const base = `SYSTEM\CurrentControlSet\Enum\PCI`
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, base, registry.ENUMERATE_SUB_KEYS)
	if err != nil {
		return out
	}
	defer k.Close()
	devs, _ := k.ReadSubKeyNames(-1)
	for _, d := range devs {
		dk, err := registry.OpenKey(registry.LOCAL_MACHINE, base+`\`+d, registry.ENUMERATE_SUB_KEYS)
		if err != nil {
			continue
		}
		insts, _ := dk.ReadSubKeyNames(-1)
		dk.Close()
		for _, i := range insts {
			ik, err := registry.OpenKey(registry.LOCAL_MACHINE, base+`\`+d+`\`+i, registry.QUERY_VALUE)
			if err != nil {
				continue
			}
			drv, _, e1 := ik.GetStringValue("Driver")
			loc, _, e2 := ik.GetStringValue("LocationInformation")
			ik.Close()
			if e1 != nil || e2 != nil {
				continue
			}
			if b, ok := busOf(loc); ok {
				out[strings.ToLower(drv)] = b
			}
		}
	}
	return out
}

// pdhQuery is a set of counters that is collected together.
type pdhQuery struct {
	q        uintptr
	counters []uintptr
	paths    []string
}

// pdhPaths are the counters read, for every adapter, process and engine.
var pdhPaths = []string{
	`\GPU Adapter Memory(*)\Dedicated Usage`, `\GPU Adapter Memory(*)\Shared Usage`,
	`\GPU Process Memory(*)\Dedicated Usage`, `\GPU Process Memory(*)\Shared Usage`,
	`\GPU Engine(*)\Utilization Percentage`,
}

func openPDH() (*pdhQuery, error) {
	if err := pdh.Load(); err != nil {
		return nil, err
	}
	p := &pdhQuery{}
	if r, _, _ := pdhOpenQuery.Call(0, 0, uintptr(unsafe.Pointer(&p.q))); r != 0 {
		return nil, fmt.Errorf("PdhOpenQuery gives 0x%x", r)
	}
	for _, path := range pdhPaths {
		s, err := windows.UTF16PtrFromString(path)
		if err != nil {
			continue
		}
		var c uintptr
		if r, _, _ := pdhAddEnglishCounter.Call(p.q, uintptr(unsafe.Pointer(s)), 0, uintptr(unsafe.Pointer(&c))); r == 0 {
			p.counters, p.paths = append(p.counters, c), append(p.paths, path)
		}
	}
	pdhCollectQueryData.Call(p.q) // rates need a first look
	return p, nil
}

func (p *pdhQuery) close() { pdhCloseQuery.Call(p.q) }

// read collects and gives every instance of every counter.
func (p *pdhQuery) read() []WinCounter {
	const formatDouble, moreData = 0x200, 0x800007d2
	if r, _, _ := pdhCollectQueryData.Call(p.q); r != 0 {
		return nil
	}
	type item struct {
		name   *uint16
		status uint32
		_      uint32
		value  float64
	}
	var out []WinCounter
	for i, c := range p.counters {
		var size, n uint32
		if r, _, _ := pdhGetArray.Call(c, formatDouble, uintptr(unsafe.Pointer(&size)), uintptr(unsafe.Pointer(&n)), 0); r != moreData || size == 0 || size > 16<<20 {
			continue
		}
		buf := make([]uint64, (size+7)/8)
		if r, _, _ := pdhGetArray.Call(c, formatDouble, uintptr(unsafe.Pointer(&size)), uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&buf[0]))); r != 0 {
			continue
		}
		for _, it := range unsafe.Slice((*item)(unsafe.Pointer(&buf[0])), n) {
			if it.status > 1 || it.name == nil {
				continue
			}
			out = append(out, WinCounter{strings.Replace(p.paths[i], "*", windows.UTF16PtrToString(it.name), 1), it.value})
		}
		runtime.KeepAlive(buf)
	}
	return out
}
