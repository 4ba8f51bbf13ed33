//go:build linux

package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"outcrop/engine/guard"
)

// plotScene records a run under pressure as a table and a picture in the
// folder that OUTCROP_PLOTS names.
func plotScene(t *testing.T, name string, r scene) {
	dir := os.Getenv("OUTCROP_PLOTS")
	if dir == "" || len(r.samples) == 0 {
		return
	}
	var csv strings.Builder
	csv.WriteString("seconds,limit,available,copies,other_program,tokens,step,level\n")
	for _, s := range r.samples {
		fmt.Fprintf(&csv, "%.1f,%d,%d,%d,%d,%d,%s,%s\n", s.seconds, s.Total, s.Available, s.Held, s.ballast, s.tokens, guard.Step(s.Step), s.Level)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".csv"), []byte(csv.String()), 0o644); err != nil {
		t.Fatal(err)
	}

	const w, h, left, top = 900, 420, 60, 30
	end := r.samples[len(r.samples)-1].seconds
	x := func(s float64) float64 { return left + s/max(end, 1)*(w-left-20) }
	y := func(bytes int64) float64 { return top + (1-float64(bytes)/float64(sceneLimit))*(h-top-40) }
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", w, h)
	fmt.Fprintf(&svg, `<rect width="%d" height="%d" fill="white"/>`+"\n", w, h)
	for mib := 0; mib <= sceneLimit>>20; mib += 128 {
		fmt.Fprintf(&svg, `<line x1="%d" x2="%d" y1="%.0f" y2="%.0f" stroke="#ddd"/><text x="%d" y="%.0f" text-anchor="end">%d</text>`+"\n", left, w-20, y(int64(mib)<<20), y(int64(mib)<<20), left-6, y(int64(mib)<<20)+4, mib)
	}
	// The guard's step as bands.
	for i := range r.samples[:len(r.samples)-1] {
		if s := r.samples[i]; s.Step > 0 {
			fmt.Fprintf(&svg, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#f4b400" opacity="%.2f"/>`+"\n", x(s.seconds), top, x(r.samples[i+1].seconds)-x(s.seconds)+0.5, h-top-40, 0.10*float64(s.Step))
		}
	}
	line := func(colour, label string, at int, v func(s sample) int64) {
		var p strings.Builder
		for _, s := range r.samples {
			fmt.Fprintf(&p, "%.1f,%.1f ", x(s.seconds), y(v(s)))
		}
		fmt.Fprintf(&svg, `<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/><text x="%d" y="20" fill="%s">%s</text>`+"\n", colour, p.String(), at, colour, label)
	}
	line("#1a73e8", "copies of experts", left, func(s sample) int64 { return s.Held })
	line("#d93025", "second program", left+140, func(s sample) int64 { return s.ballast })
	line("#188038", "available", left+260, func(s sample) int64 { return s.Available })
	fmt.Fprintf(&svg, `<line x1="%d" x2="%d" y1="%.0f" y2="%.0f" stroke="#188038" stroke-dasharray="4 4"/><text x="%d" y="20">dashed: floor; bands: steps of the guard; MiB over seconds</text>`+"\n", left, w-20, y(sceneFloor), y(sceneFloor), left+350)
	for s := 0.0; s <= end; s += 20 {
		fmt.Fprintf(&svg, `<text x="%.0f" y="%d" text-anchor="middle">%.0f</text>`+"\n", x(s), h-18, s)
	}
	svg.WriteString("</svg>\n")
	if err := os.WriteFile(filepath.Join(dir, name+".svg"), []byte(svg.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
