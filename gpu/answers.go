package gpu

import (
	"io/fs"
	"sort"
	"strings"
)

// AnswersFile is the name, below the root of a recorded machine, of what
// programs and drivers answered there: versions from the package manager,
// NVML, DRM queries, free space. On the machine itself a live probe gives the
// same answers, so both are read by one path.
const AnswersFile = "answers"

// Answer is one recorded or live answer.
type Answer struct {
	Value  string
	Source string
}

// Answers maps keys to answers. Keys, with PCI standing for an address and
// MOUNT for a mount point:
//
//	neo, igc, rocm, nvidia, mesa, oneapi     versions
//	name PCI, uuid PCI, cc PCI               what NVML or kfd calls the card
//	vram.total PCI, vram.used PCI,
//	vram.free PCI, vram.visible PCI          bytes, from a driver call
//	temp PCI, power PCI, fan PCI, clock PCI,
//	clock.mem PCI, busy PCI, power.max PCI   sensors, from a driver call
//	ip PCI                                   graphics IP version, such as 20.1, from the xe driver
//	perfmon.helper                           "yes": the sensor helper has CAP_PERFMON
//	open PATH                                "yes", or the error of opening a device file
//	free MOUNT, size MOUNT                   bytes of a file system
//	compute PCI                              "yes" or the error of a compute probe
type Answers map[string]Answer

// ParseAnswers reads "key = value" lines; "# source" after a value names who
// was asked. Empty lines and lines that begin with # are skipped, and so is
// what has no "=".
func ParseAnswers(s string) Answers {
	a := Answers{}
	lines(s, func(line string) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			return
		}
		k, v, ok := strings.Cut(line, "=")
		if !ok {
			return
		}
		v, src, _ := strings.Cut(v, " # ")
		src = strings.TrimSpace(src)
		if src == "" {
			src = "recorded answer"
		}
		a[strings.Join(strings.Fields(k), " ")] = Answer{strings.TrimSpace(v), src}
	})
	return a
}

// Text writes the answers in the form ParseAnswers reads, sorted.
func (a Answers) Text() string {
	keys := make([]string, 0, len(a))
	for k := range a {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(k + " = " + a[k].Value)
		if a[k].Source != "" {
			b.WriteString(" # " + a[k].Source)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// answersOf reads a recorded machine's answers; a root without them has none.
func answersOf(root fs.FS) Answers { return ParseAnswers(text(root, AnswersFile)) }

func (a Answers) int(key, asked string) Reading[int64] {
	v, ok := a[key]
	if !ok {
		return Unknown[int64](asked, "no answer")
	}
	n, ok := parseInt(v.Value)
	if !ok {
		return Unknown[int64](v.Source, clip(v.Value))
	}
	return Known(n, v.Source)
}
