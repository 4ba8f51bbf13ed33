//go:build slow && unix

package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"outcrop/gpu/doctor"
)

// TestSlowCards: two contexts on one OpenCL device stand for two cards: tested
// side by side, measured, and refused under a limit. Answers are the same as on
// the CPU.
func TestSlowCards(t *testing.T) {
	cmd := program(t, "cards", "--devices", "--json")
	b, err := cmd.Output()
	var o doctor.Offers
	if err == nil {
		err = json.Unmarshal(b, &o)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	id := ""
	for _, d := range o.Devices {
		if d.CPU && d.Driver == "opencl" {
			id = d.ID
		}
	}
	if id == "" {
		t.Skip("no OpenCL on the processor here (package pocl-opencl-icd)")
	}
	two := id + "," + id
	run := func(args ...string) (string, string, error) {
		cmd := program(t, args...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		return out.String(), errs.String(), err
	}
	if out, errs, err := run("doctor", "--together", "--card", two); err != nil || !strings.Contains(out, "side by side: 4 of 4") {
		t.Errorf("side by side: %v\n%s%s", err, out, errs)
	}
	if _, errs, err := run("doctor", "--together", "--card", id); err == nil || !strings.Contains(errs, "two are needed") {
		t.Errorf("one card side by side: %v, %s", err, errs)
	}
	if _, errs, err := run("bench", "starter", "--cards", id, "--split", "1", "--vram-limit", "2MiB", "--prompt", "8", "--generate", "2"); err == nil ||
		!strings.Contains(errs, "not enough memory on the card: layers 0 to") || !strings.Contains(errs, "that it may use") {
		t.Errorf("under a limit: %v, %s", err, errs)
	}
	out, errs, err := run("bench", "starter", "--cards", two, "--split", "1,1", "--chunk", "32", "--prompt", "96", "--generate", "2", "--repeat", "1", "--json")
	var r benchResult
	if err == nil {
		err = json.Unmarshal([]byte(out), &r)
	}
	if err != nil || len(r.HandOver) != 1 || !(r.HandOver[0].TokenUS > 0) || !(r.HandOver[0].ChunkUS > 0) || r.HandOver[0].TokenBytes == 0 || !strings.Contains(r.Device, ", ") {
		t.Errorf("bench: %v, %+v\n%s", err, r, errs)
	}
	args := []string{"--prompt", "The weather today is", "--max-tokens", "12"}
	one, both := answer(t, append(args, "--device", "cpu")...), answer(t, append(args, "--cards", two, "--split", "3,5")...)
	if len(one.IDs) == 0 || len(one.IDs) != len(both.IDs) {
		t.Fatalf("answers of %d and %d tokens", len(one.IDs), len(both.IDs))
	}
	for i := range one.IDs {
		if one.IDs[i] != both.IDs[i] {
			t.Errorf("ids part after %d", i)
			break
		}
	}
}
