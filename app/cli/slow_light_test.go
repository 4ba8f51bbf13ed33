//go:build slow && unix

package cli

import (
	"bufio"
	"encoding/json"
	"testing"

	"outcrop/app/client"
	"outcrop/engine/catalog"
	"outcrop/gpu/doctor"
)

// First light of a device as the window runs it: line by line, kept for its
// driver, taken back when a test does not come to its end; then an engine on that device,
// which says what it holds there. The device is OpenCL on the processor.
func TestSlowFirstLight(t *testing.T) {
	home := t.TempDir()
	offers := func() doctor.Offers {
		cmd := program(t, "cards", "--devices", "--json")
		cmd.Env = append(cmd.Env, "OUTCROP_HOME="+home)
		b, err := cmd.Output()
		var o doctor.Offers
		if err == nil {
			err = json.Unmarshal(b, &o)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		return o
	}
	id := ""
	for _, d := range offers().Devices {
		if d.CPU && d.Driver == "opencl" {
			id = d.ID
		}
		if d.Passed {
			t.Errorf("%s has passed before any test", d.ID)
		}
	}
	if id == "" {
		t.Skip("no OpenCL on the processor here (package pocl-opencl-icd)")
	}
	passed := func() bool {
		for _, d := range offers().Devices {
			if d.ID == id {
				return d.Passed
			}
		}
		return false
	}
	// light runs a test and calls f with each line until f says that it is enough.
	light := func(f func(doctor.LightLine) bool) error {
		cmd := program(t, "doctor", "--light", "--json", "--card", id)
		cmd.Env = append(cmd.Env, "OUTCROP_HOME="+home)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var n doctor.LightLine
			if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
				t.Errorf("%v: %s", err, lines.Bytes())
			}
			if !f(n) {
				cmd.Process.Kill()
				break
			}
		}
		return cmd.Wait()
	}
	steps, result := 0, (*doctor.Light)(nil)
	err := light(func(n doctor.LightLine) bool {
		if n.Step != nil {
			steps++
		}
		if n.Result != nil {
			result = n.Result
		}
		return true
	})
	if err != nil || steps < len(doctor.LightSteps())-1 || result == nil || !result.OK() || result.Driver == "" {
		t.Fatalf("%v, %d steps, %+v", err, steps, result)
	}
	if !passed() {
		t.Error("the pass was not kept")
	}
	if err := light(func(n doctor.LightLine) bool { return n.Step == nil }); err == nil {
		t.Error("a killed test ended well")
	}
	if passed() {
		t.Error("a test that was killed leaves the pass of the one before")
	}

	cmd, addr, errs := server(t, "--listen", "127.0.0.1:0", "--device", id)
	defer cmd.Process.Kill()
	c := client.New(addr, "")
	defer c.Close()
	if text, err := chatText(t, t.Context(), addr, "Hi, who are you?", 12); err != nil || text == "" {
		t.Fatalf("%q, %v, %s", text, err, errs.String())
	}
	s, err := c.Sample(t.Context())
	if err != nil || s.Engine.DeviceWanted != id || s.Engine.Device == "CPU" || s.Engine.DeviceWhy != "" || s.Engine.LayerTimes == nil {
		t.Fatalf("%+v, %v", s.Engine, err)
	}
	used := 0
	for _, card := range s.Cards {
		if card.Used && card.Use != nil && card.Use.Weights > 0 && card.Use.KV > 0 && card.Own.Known {
			used++
		}
	}
	if used != 1 || s.Pack != catalog.StarterName || s.Residency == nil || s.Residency.Tier[0] != 1 {
		t.Errorf("%d devices are in use: %+v, %+v", used, s.Cards, s.Residency)
	}
}
