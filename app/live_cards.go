package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strings"
	"time"

	"outcrop/engine/launch"
	"outcrop/engine/wire"
	"outcrop/gpu"
	"outcrop/gpu/doctor"
)

// LiveCards is the computer this program runs on, or a recorded one.
type LiveCards struct {
	Root    string // "" is this computer
	Version string
	Binary  string // the program that runs tests; "" is this one
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

// Offers asks the drivers in a child process: loading one may crash.
func (l *LiveCards) Offers(ctx context.Context) (doctor.Offers, error) {
	var o doctor.Offers
	if l.Root != "" {
		return o, nil // a recorded machine has no drivers
	}
	err := ask(ctx, &o, "cards", "--devices", "--json")
	return o, err
}

// FirstLight follows `outcrop doctor --light` in a child process: a driver may
// crash or hang in it, and the memory it takes is gone with it.
func (l *LiveCards) FirstLight(ctx context.Context, device string, env []string, tell func(doctor.LightLine)) error {
	if l.Root != "" {
		return errors.New("first light tests this computer, and the window looks at a recorded one")
	}
	ends := 0
	x, err := launch.Task{Binary: l.Binary, Args: []string{"doctor", "--light", "--json", "--card", device}, Env: env, What: "the test",
		Line: func(b []byte) {
			var n doctor.LightLine
			if json.Unmarshal(b, &n) != nil {
				return
			}
			if n.Result != nil || n.Error != "" {
				ends++
			}
			tell(n)
		}}.Run(ctx)
	switch {
	case err != nil:
		return err
	case x.Signal != "":
		return fmt.Errorf("%s The window goes on, and the device is not used until it passes", x.Text)
	case x.Code == 0, x.Code == 1 && ends > 0: // 1: something did not pass, which was told
		return nil
	}
	return errors.New(x.Text)
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
