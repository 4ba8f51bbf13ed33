package engine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"outcrop/gpu/compute"
)

// DeviceInfo is a device that a driver offers, with the name that Options.Device
// takes.
type DeviceInfo struct {
	compute.Info
	ID string // "cuda:0", "opencl:1"
}

// Devices lists what the drivers offer, preferred drivers first; the same card
// may be there once for each. why says of drivers without devices what is
// missing.
func Devices() (list []DeviceInfo, why []error) {
	for _, d := range compute.Drivers() {
		infos, err := d.Devices()
		if err != nil {
			why = append(why, fmt.Errorf("%s: %w", d.Name(), err))
			continue
		}
		for _, i := range infos {
			list = append(list, DeviceInfo{i, fmt.Sprintf("%s:%d", i.Driver, i.Index)})
		}
	}
	return list, why
}

// pickDevices finds the devices of a name: "cpu" or "" is none; "auto" is every
// card that has passed first light, once, by its preferred driver; else a list of PCI addresses and of IDs.
func pickDevices(name, cache string, list []DeviceInfo) ([]DeviceInfo, error) {
	switch name {
	case "", "cpu":
		return nil, nil
	case "auto":
		var out []DeviceInfo
		seen := map[string]bool{}
		for _, d := range list {
			key := d.PCI
			if key == "" {
				key = d.Name
			}
			if d.CPU || !Lit(cache, d) || seen[key] || len(out) > 0 && out[0].Driver != d.Driver && d.PCI == "" {
				continue
			}
			seen[key] = true
			out = append(out, d)
		}
		if len(out) > 1 && apart(cache, out) {
			out = out[:1] // they failed side by side
		}
		return out, nil
	}
	var out []DeviceInfo
	for _, want := range strings.Split(name, ",") {
		found := false
		for _, d := range list {
			if d.ID == want || want != "" && strings.EqualFold(d.PCI, want) {
				for _, o := range out { // two contexts on a processor are a way to test
					if !d.CPU && (o.ID == d.ID || d.PCI != "" && o.PCI == d.PCI) {
						return nil, fmt.Errorf("devices %s: %s and %s are the same card, %s; name each card once", name, o.ID, want, d.Name)
					}
				}
				out, found = append(out, d), true
				break
			}
		}
		if !found {
			var have []string
			for _, d := range list {
				have = append(have, d.ID+" ("+d.Name+")")
			}
			if have == nil {
				have = []string{"none"}
			}
			return nil, fmt.Errorf("device %s is not there; there are: %s (outcrop cards --devices says more)", strconv.Quote(want), strings.Join(have, ", "))
		}
	}
	return out, nil
}

// OpenDevice opens a device that Devices listed. cache is a folder for compiled
// kernels; "" keeps none.
func OpenDevice(i DeviceInfo, cache string) (*compute.Device, error) {
	for _, drv := range compute.Drivers() {
		if drv.Name() == i.Driver {
			return compute.Open(drv, i.Info, compute.Options{Cache: cache, Plain: i.CPU, Overlap: i.Driver == "cuda"})
		}
	}
	return nil, fmt.Errorf("open %s: no driver of this name", i.ID)
}

var errNotLit = errors.New("no card has passed first light with its present driver; run: outcrop doctor --light")

// openDevices opens what Options.Device names. The model closes them.
func openDevices(o *Options) (own []*compute.Device, err error) {
	if o.Device == "" || o.Device == "cpu" {
		return nil, nil
	}
	if o.Device == "auto" {
		if m, err := readLights(o.KernelCache); err != nil || len(m) == 0 {
			return nil, errNotLit // without a look at drivers, which takes time
		}
	}
	list, why := Devices()
	pick, err := pickDevices(o.Device, o.KernelCache, list)
	if err != nil {
		return nil, errors.Join(append([]error{err}, why...)...)
	}
	if o.Device == "auto" && len(pick) == 0 {
		return nil, errNotLit
	}
	return openAll(pick, o.Device == "auto", func(i DeviceInfo) (*compute.Device, error) { return OpenDevice(i, o.KernelCache) })
}

// openAll opens devices. With some, those that cannot be opened are left out, as
// long as there is one: a card that was lost must not keep the others from work
// when nobody asked for it by name.
func openAll(pick []DeviceInfo, some bool, open func(DeviceInfo) (*compute.Device, error)) (own []*compute.Device, err error) {
	var bad []error
	for _, i := range pick {
		if d, err := open(i); err != nil {
			bad = append(bad, err)
		} else {
			own = append(own, d)
		}
	}
	if len(bad) == 0 || some && len(own) > 0 {
		return own, nil
	}
	for _, d := range own {
		d.Close()
	}
	return nil, errors.Join(bad...)
}

// closeDevices closes the devices that Load opened.
func (m *Model) closeDevices() {
	for _, d := range m.own {
		// A device that cannot be closed any more was reported when it failed.
		_ = d.Close()
	}
	m.own = nil
}

// endShelves frees what shelve took, when a load fails after it.
func (m *Model) endShelves() {
	if s, ok := m.experts.(*shelves); ok {
		s.end()
	}
}
