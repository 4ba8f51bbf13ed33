//go:build linux

package gpu

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRegions reads recorded answers of both drivers' memory queries: an A770's
// 16288 MiB beside system memory.
func TestRegions(t *testing.T) {
	le := binary.LittleEndian
	const vram = 17079205888
	var xe bytes.Buffer
	binary.Write(&xe, le, []uint32{2, 0})
	for _, r := range []struct {
		class  uint16
		totals []uint64
	}{{0, []uint64{32 << 30, 5 << 30, 0, 0}}, {1, []uint64{vram, 3 << 30, vram, 3 << 30}}} {
		binary.Write(&xe, le, []uint16{r.class, 0})
		binary.Write(&xe, le, uint32(65536))
		binary.Write(&xe, le, r.totals)
		xe.Write(make([]byte, 48))
	}
	rs, err := parseXeRegions(xe.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if total, used, vis := sumRegions(rs); total != vram || used != 3<<30 || vis != vram {
		t.Errorf("%d %d %d", total, used, vis)
	}
	var i9 bytes.Buffer
	binary.Write(&i9, le, []uint32{2, 0, 0, 0})
	for _, r := range []struct {
		class  uint16
		totals []uint64
	}{{0, []uint64{32 << 30, 32 << 30, 0}}, {1, []uint64{vram, vram - 1<<30, 256 << 20}}} {
		binary.Write(&i9, le, []uint16{r.class, 0})
		binary.Write(&i9, le, uint32(0))
		binary.Write(&i9, le, r.totals)
		i9.Write(make([]byte, 56))
	}
	if rs, err = parseI915Regions(i9.Bytes()); err != nil {
		t.Fatal(err)
	}
	if total, used, vis := sumRegions(rs); total != vram || used != 1<<30 || vis != 256<<20 {
		t.Errorf("%d %d %d", total, used, vis)
	}
	// A media unit first, then the graphics unit with its IP version.
	units := make([]byte, 8+2*96)
	le.PutUint32(units, 2)
	le.PutUint16(units[8:], 1)
	le.PutUint16(units[8+32:], 13)
	le.PutUint16(units[8+96+32:], 20)
	le.PutUint16(units[8+96+34:], 1)
	if v, err := parseXeVersion(units); err != nil || v != "20.1" {
		t.Errorf("%q %v", v, err)
	}
	if _, err := parseXeRegions(xe.Bytes()[:100]); err == nil {
		t.Error("a short answer was taken")
	}
}

// TestHelperLoop serves two questions and ends with its input.
func TestHelperLoop(t *testing.T) {
	var out bytes.Buffer
	n := 0
	helperLoop(strings.NewReader("\n\n"), &out, func() HelperAnswer {
		n++
		return HelperAnswer{Perfmon: true, Cards: []HelperCard{{PCI: "0000:03:00.0", Total: 16}}}
	}, time.Minute)
	if n != 2 || strings.Count(out.String(), "\n") != 2 || !strings.Contains(out.String(), `"pci":"0000:03:00.0"`) {
		t.Errorf("%d questions: %s", n, out.String())
	}
	helperLoop(blocked{}, &out, nil, time.Nanosecond) // nobody asks: it ends
}

type blocked struct{}

func (blocked) Read([]byte) (int, error) { select {} }

// TestHelperProcess starts this test binary as the sensor helper, as the real
// program starts itself, and asks it twice.
func TestHelperProcess(t *testing.T) {
	h := &helper{}
	defer h.close()
	for range 2 {
		a, err := h.exchange()
		if err != nil {
			t.Fatal(err)
		}
		if a.Cards == nil {
			t.Errorf("%+v", a)
		}
		t.Logf("%+v", a)
	}
	h.close()
	if _, err := h.exchange(); err == nil {
		t.Error("a closed helper answered")
	}
}

// TestHelperWithoutCards: a machine without cards starts no helper at all.
func TestHelperWithoutCards(t *testing.T) {
	l := newLive(Machine{})
	defer l.close()
	if l.helper != nil || l.nvml != nil {
		t.Error("doors were opened for no card")
	}
}

// standIn builds a shared library from C, or skips where there is no compiler.
func standIn(t *testing.T, src, soname string) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler to build a stand-in for the driver's library")
	}
	dir := t.TempDir()
	so := filepath.Join(dir, soname)
	c := exec.Command(gcc, "-O1", "-shared", "-fPIC", "-Wl,-soname,"+soname, "-o", so, "-x", "c", "-")
	c.Stdin = strings.NewReader(src)
	if out, err := c.CombinedOutput(); err != nil {
		t.Skipf("the C compiler does not work here: %v %s", err, out)
	}
	return dir
}

// TestNVML walks the whole call sequence against a stand-in library that answers
// as a driver of the 2020s does: version 2 of the memory call, a card found by
// its address only, one call the card does not support.
func TestNVML(t *testing.T) {
	dir := standIn(t, `
#include <string.h>
typedef unsigned int u; typedef unsigned long long ull; typedef void* dev;
static int card;
int nvmlInit_v2(void){return 0;} int nvmlShutdown(void){return 0;}
int nvmlSystemGetDriverVersion(char*b,u n){strncpy(b,"580.95.05",n);return 0;}
int nvmlDeviceGetHandleByPciBusId_v2(const char*s,dev*d){if(strcmp(s,"0000:01:00.0"))return 6;*d=&card;return 0;}
typedef struct{u version;ull total,reserved,free,used;}m2;
int nvmlDeviceGetMemoryInfo_v2(dev d,m2*m){if(d!=&card||m->version!=(sizeof(m2)|2<<24))return 2;m->total=24ull<<30;m->reserved=500ull<<20;m->used=2ull<<30;m->free=m->total-m->used-m->reserved;return 0;}
int nvmlDeviceGetName(dev d,char*b,u n){strncpy(b,"NVIDIA GeForce RTX 4090",n);return 0;}
int nvmlDeviceGetUUID(dev d,char*b,u n){strncpy(b,"GPU-01234567-89ab-cdef-0123-456789abcdef",n);return 0;}
int nvmlDeviceGetTemperature(dev d,int s,u*t){*t=41;return s!=0;}
int nvmlDeviceGetPowerUsage(dev d,u*p){*p=22500;return 0;}
int nvmlDeviceGetEnforcedPowerLimit(dev d,u*p){*p=450000;return 0;}
int nvmlDeviceGetFanSpeed(dev d,u*p){return 3;}
int nvmlDeviceGetClockInfo(dev d,int k,u*p){*p=k==1?210:405;return 0;}
typedef struct{u gpu,mem;}ut;
int nvmlDeviceGetUtilizationRates(dev d,ut*x){x->gpu=7;x->mem=1;return 0;}
int nvmlDeviceGetCurrentClocksThrottleReasons(dev d,ull*r){*r=0x1|0x4|0x40;return 0;}
int nvmlDeviceGetCudaComputeCapability(dev d,int*a,int*b){*a=8;*b=9;return 0;}
int nvmlDeviceGetCurrPcieLinkGeneration(dev d,u*v){*v=4;return 0;} int nvmlDeviceGetCurrPcieLinkWidth(dev d,u*v){*v=16;return 0;}
typedef struct{ull t,f,u_;}b1; int nvmlDeviceGetBAR1MemoryInfo(dev d,b1*b){b->t=32ull<<30;return 0;}
typedef struct{u pid;ull used;u gi,ci;}pr;
int nvmlDeviceGetComputeRunningProcesses_v3(dev d,u*n,pr*p){if(*n<3)return 7;*n=3;memset(p,0,3*sizeof*p);p[0].pid=100;p[0].used=1ull<<30;p[1].pid=200;p[1].used=~0ull;p[2].pid=400;p[2].used=25ull<<30;p[2].gi=p[2].ci=~0u;return 0;}
/* The driver of before 2022: the list of what draws has the first version only, with shorter entries. */
typedef struct{u pid;ull used;}p1;
int nvmlDeviceGetGraphicsRunningProcesses(dev d,u*n,p1*p){*n=2;p[0].pid=300;p[0].used=64<<20;p[1].pid=100;p[1].used=1<<20;return 0;}
`, "libnvidia-ml.so.1")
	// The library is found by its path here; in life by its name.
	if os.Getenv("OUTCROP_TEST_NVML") == "" {
		c := exec.Command(os.Args[0], "-test.run", "^TestNVML$", "-test.v")
		c.Env = append(os.Environ(), "OUTCROP_TEST_NVML=1", "LD_LIBRARY_PATH="+dir)
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestNVML") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	n, err := openNVML()
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	card := Card{PCI: "0000:01:00.0", Vendor: NVIDIA, Driver: "nvidia", Discrete: true}
	a := n.memory(card.PCI)
	if a.Total != 24*gib || a.Used != 2*gib+500<<20 || !a.HaveUsed {
		t.Errorf("memory %+v: what is reserved is not free", a)
	}
	var r CardReadings
	n.fill(card.PCI, &r)
	if r.Temp.Value != 41 || r.Power.Value != 22.5 || r.PowerMax.Value != 450 || r.Clock.Value != 210 || r.ClockMem.Value != 405 || r.Busy.Value != 7 || r.Throttle.Value != "power limit, thermal, hardware" || r.Link.Speed.Value != 16 || r.Link.Width.Value != 16 {
		t.Errorf("%+v", r)
	}
	if r.Fan.Known || !strings.Contains(r.Fan.Why, "not supported") {
		t.Errorf("fan %+v", r.Fan)
	}
	p, listed := n.processes(card.PCI)
	want := []ProcVRAM{{PID: 100, VRAM: gib, Claim: gib}, {PID: 300, VRAM: 64 << 20, Claim: 64 << 20}, {PID: 200, Unknown: "the driver does not tell how much"}, {PID: 400, Unknown: "the driver's number is above what the card has"}}
	if !slices.Equal(p, want) || listed != Known(4, nvmlSource) {
		t.Errorf("got  %+v %+v\nwant %+v", p, listed, want)
	}
	ans := Answers{}
	n.answers([]Card{card, {PCI: "0000:02:00.0", Vendor: NVIDIA}}, ans)
	if ans["name 0000:01:00.0"].Value != "NVIDIA GeForce RTX 4090" || ans["cc 0000:01:00.0"].Value != "8.9" || ans["nvidia"].Value != "580.95.05" || ans["vram.visible 0000:01:00.0"].Value != "34359738368" {
		t.Errorf("%+v", ans)
	}
	if a := n.memory("0000:02:00.0"); a.HaveUsed || !strings.Contains(a.Source, "not found") {
		t.Errorf("%+v", a)
	}
}

// TestSysman walks the Sysman calls against a stand-in loader: two devices, one
// with system memory only, and temperatures of chip and memory.
func TestSysman(t *testing.T) {
	dir := standIn(t, `
typedef unsigned int u; typedef unsigned long long ull; typedef void* h;
static int drv, dev[2], mem[3], tmp[2];
u zesInit(u f){return f;}
u zesDriverGet(u*n,h*d){if(d)d[0]=&drv;*n=1;return 0;}
u zesDeviceGet(h dr,u*n,h*d){if(dr!=&drv)return 1;if(d){d[0]=&dev[0];d[1]=&dev[1];}*n=2;return 0;}
typedef struct{u stype;void*next;u dom,bus,dev_,fn;int gen,width;long long bw;unsigned char a,b,c;}pci;
u zesDevicePciGetProperties(h d,pci*p){if(p->stype!=2)return 1;p->dom=0;p->bus=d==&dev[0]?3:0;p->dev_=d==&dev[0]?0:2;p->fn=0;return 0;}
u zesDeviceEnumMemoryModules(h d,u*n,h*m){u c=d==&dev[0]?2:1;if(m){if(c==2){m[0]=&mem[0];m[1]=&mem[1];}else m[0]=&mem[2];}*n=c;return 0;}
typedef struct{u stype;void*next;int type;unsigned char on;u sub;int loc;ull phys;int bw,ch;}mp;
u zesMemoryGetProperties(h m,mp*p){if(p->stype!=0xb)return 1;p->loc=m!=&mem[2];p->phys=16ull<<30;return 0;}
typedef struct{u stype;void*next;int health;ull free,size;}ms;
u zesMemoryGetState(h m,ms*s){if(s->stype!=0x1e)return 1;s->size=8ull<<30;s->free=m==&mem[0]?7ull<<30:8ull<<30;return 0;}
u zesDeviceEnumTemperatureSensors(h d,u*n,h*t){u c=d==&dev[0]?2:0;if(t&&c){t[0]=&tmp[0];t[1]=&tmp[1];}*n=c;return 0;}
typedef struct{u stype;void*next;int type;unsigned char on;u sub;double max;unsigned char a,b,c;}tp;
u zesTemperatureGetProperties(h t,tp*p){if(p->stype!=0x14)return 1;p->type=t==&tmp[0]?1:2;return 0;}
u zesTemperatureGetState(h t,double*v){*v=t==&tmp[0]?51.5:60;return 0;}
`, "libze_loader.so.1")
	if os.Getenv("OUTCROP_TEST_SYSMAN") == "" {
		c := exec.Command(os.Args[0], "-test.run", "^TestSysman$", "-test.v")
		c.Env = append(os.Environ(), "OUTCROP_TEST_SYSMAN=1", "LD_LIBRARY_PATH="+dir)
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestSysman") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	s, err := openSysman()
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(s.cards())
	want := `[{"pci":"0000:03:00.0","source":"Level Zero Sysman (zesMemoryGetState)","total":17179869184,"used":1073741824,"have_used":true,"temp":51.5,"temp_vram":60},{"pci":"0000:00:02.0","source":"Level Zero Sysman (zesMemoryGetState)","total":0,"used":0,"have_used":false}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestLiveCards reads the cards of this machine for a few seconds, where there
// are any.
func TestLiveCards(t *testing.T) {
	m, fsys, live, err := Open("/")
	if err != nil {
		t.Fatal(err)
	}
	real := 0
	for _, c := range m.Cards {
		if c.Compute() {
			real++
		}
	}
	if real == 0 {
		t.Skip("this machine has no card that computes")
	}
	s := NewSampler(fsys, m, live)
	defer s.Close()
	var rs []CardReadings
	for i := range 20 {
		rs = s.Sample(time.Now().Add(time.Duration(i) * time.Second))
	}
	start := cpuTime()
	for i := range 100 {
		rs = s.Sample(time.Now().Add(time.Duration(20+i) * time.Second))
	}
	t.Logf("%.3f ms of a processor a reading", float64(cpuTime()-start)/1e6/100)
	for i, c := range m.Cards {
		b, _ := json.MarshalIndent(struct {
			Card     Card
			Readings CardReadings
		}{c, rs[i]}, "", " ")
		t.Logf("%s", b)
		if v := rs[i].VRAM; c.Driver == "nvidia" && m.UserMode.CUDA.Found && (!v.Free.Known || v.Free.Value > v.Total.Value || v.Free.Value <= 0) {
			t.Errorf("%s: %+v", c.PCI, v)
		}
	}
}
