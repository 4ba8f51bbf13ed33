package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/renameio/v2/maybe"

	"outcrop/engine/token"
	"outcrop/gpu/kernels"
)

// A device runs models by itself ("auto") only after first light: the
// known-answer test of gpu/doctor and the known tokens of the starter pack. What
// passed is kept in a file beside the compiled kernels, and counts for one
// device, one version of its driver and one text of the kernels.

const lightFile = "first-light.json"

// lightKey names what a pass of first light counts for.
func lightKey(i DeviceInfo) string {
	id := i.ID
	if i.PCI != "" {
		id = i.Driver // its number depends on which other cards a recipe shows
	}
	return fmt.Sprintf("%s %s %s %s %s", id, i.PCI, i.Name, i.Version, kernelHash())
}

var kernelHash = sync.OnceValue(func() string {
	h := sha256.New()
	for _, m := range append(kernels.All(32), kernels.Units()...) {
		fmt.Fprintln(h, m.Name, m.Defines)
		fmt.Fprintln(h, kernels.Ahead(m).Text) // which holds the text as it is for other drivers
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
})

// Lit tells whether a device has passed first light with its present driver and
// kernels. dir is Options.KernelCache.
func Lit(dir string, i DeviceInfo) bool {
	m, err := readLights(dir)
	return err == nil && m[lightKey(i)]
}

// SetLit keeps the result of first light of a device.
func SetLit(dir string, i DeviceInfo, passed bool) error { return setLight(dir, lightKey(i), passed) }

func setLight(dir, key string, passed bool) error {
	m, err := readLights(dir)
	if err != nil {
		m = map[string]bool{} // damaged: what is lost is tested again
	}
	if passed {
		m[key] = true
	} else {
		delete(m, key)
	}
	b, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep first light: %w", err)
	}
	if err := maybe.WriteFile(filepath.Join(dir, lightFile), append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("keep first light: %w", err)
	}
	return nil
}

// SetApart keeps whether cards failed when they were open side by side: then
// "auto" uses one of them only.
func SetApart(dir string, list []DeviceInfo, failed bool) error {
	return setLight(dir, apartKey(list), failed)
}

// apart tells whether cards must not be open side by side.
func apart(dir string, list []DeviceInfo) bool {
	m, err := readLights(dir)
	return err == nil && m[apartKey(list)]
}

func apartKey(list []DeviceInfo) string {
	var keys []string
	for _, i := range list {
		keys = append(keys, lightKey(i))
	}
	slices.Sort(keys)
	return "apart: " + strings.Join(keys, ", ")
}

func readLights(dir string) (map[string]bool, error) {
	m := map[string]bool{}
	b, err := os.ReadFile(filepath.Join(dir, lightFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	return m, json.Unmarshal(b, &m)
}

// Known is a prompt with the tokens that must follow it.
type Known struct {
	Prompt []token.ID
	IDs    []token.ID
}

// Golden loads a pack with options and counts how many of the known tokens come
// out right.
func Golden(ctx context.Context, path string, o Options, known []Known) (right, total int, err error) {
	p, err := OpenPack(path)
	if err != nil {
		return 0, 0, err
	}
	defer p.Close()
	m, err := Load(ctx, p, o)
	if err != nil {
		return 0, 0, err
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	for _, k := range known {
		total += len(k.IDs)
		n := 0
		_, err := s.Generate(ctx, Request{Prompt: k.Prompt, MaxTokens: len(k.IDs), IgnoreEOG: true}, func(st Step) error {
			if st.ID >= 0 {
				if n < len(k.IDs) && st.ID == k.IDs[n] {
					right++
				}
				n++
			}
			return nil
		})
		if err != nil {
			return right, total, err
		}
	}
	return right, total, nil
}
