package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime/debug"
	"strings"
	"time"

	"outcrop/assets"
	"outcrop/engine/catalog"
	"outcrop/engine/wire"
	"outcrop/gpu"
	"outcrop/gpu/doctor"
)

// LiveCards is the computer this program runs on, or a recorded one.
type LiveCards struct {
	Root    string // "" is this computer
	Version string
}

var _ Cards = (*LiveCards)(nil)

// Detect looks at the machine.
func (l *LiveCards) Detect() (gpu.Machine, error) {
	m, _, _, err := gpu.Open(l.Root)
	return m, err
}

// Readings follows the machine through a child process, so that a driver that
// breaks while its sensors are read does not take the window along. The child
// is started again when it ends, more slowly each time.
func (l *LiveCards) Readings(f func(wire.Sample)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		pause := time.Second
		for ctx.Err() == nil {
			if l.follow(ctx, f) {
				pause = time.Second
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, time.Minute)
		}
	}()
	return cancel
}

// follow reads one child's lines until it ends, and says whether any came.
func (l *LiveCards) follow(ctx context.Context, f func(wire.Sample)) (any bool) {
	self, err := os.Executable()
	if err != nil {
		return false
	}
	root := l.Root
	if root == "" {
		root = "/"
	}
	cmd := exec.CommandContext(ctx, self, "monitor", "--json", "--root", root)
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return false
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s wire.Sample
		if json.Unmarshal(lines.Bytes(), &s) == nil {
			any = true
			f(s)
		}
	}
	cmd.Wait()
	return any
}

// FirstLight runs the known-answer tests.
func (l *LiveCards) FirstLight(ctx context.Context, card gpu.PCI, progress func(doctor.StepResult)) (doctor.Light, error) {
	m, err := l.Detect()
	if err != nil {
		return doctor.Light{}, err
	}
	if card != "" {
		return doctor.Light{}, fmt.Errorf("first light on a card runs in the terminal: outcrop doctor --light --card %s", card)
	}
	// The window must outlive the test, so it touches little memory here.
	light, err := doctor.FirstLight(ctx, doctor.CPU(m), doctor.LightOptions{Emit: progress, MaxBytes: lightBytes, Golden: golden})
	debug.FreeOSMemory()
	return light, err
}

// lightBytes is the most memory that first light on the CPU touches.
const lightBytes = 256 << 20

// golden has the engine, a child process of its own, answer the starter's
// known questions, and counts the tokens that are as they must be.
func golden(ctx context.Context, _ doctor.Device) (right, total int, err error) {
	var known struct {
		Prompts []struct {
			Prompt string  `json:"prompt"`
			IDs    []int32 `json:"ids"`
			Answer int     `json:"answer_tokens"` // up to the end of the turn
		} `json:"prompts"`
	}
	if err := json.Unmarshal(assets.Golden, &known); err != nil {
		return 0, 0, fmt.Errorf("read the known answers: %w", err)
	}
	for _, k := range known.Prompts {
		var got struct {
			IDs []int32 `json:"ids"`
		}
		if err := ask(ctx, &got, "chat", catalog.StarterName, "--prompt", k.Prompt, "--raw", "--max-tokens", fmt.Sprint(len(k.IDs)), "--temperature", "0", "--json"); err != nil {
			return right, total, err
		}
		n := min(k.Answer, len(k.IDs))
		total += n
		for i := range n {
			if i < len(got.IDs) && got.IDs[i] == k.IDs[i] {
				right++
			}
		}
	}
	return right, total, nil
}

// Report makes the text for a bug tracker, without the names of the person.
func (l *LiveCards) Report() (string, error) {
	_, fsys, _, err := gpu.Open(l.Root)
	if err != nil {
		return "", err
	}
	var who doctor.Person
	if u, err := user.Current(); err == nil {
		who.User, who.Home = u.Username, u.HomeDir
	}
	who.Host, _ = os.Hostname()
	b, err := doctor.Report(fsys, nil, doctor.Options{}, who, l.Version)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if _, err := b.WriteTo(&text); err != nil {
		return "", err
	}
	return text.String(), nil
}
