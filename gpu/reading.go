package gpu

import (
	"encoding/json"
	"fmt"
)

// Reading is a value together with who was asked for it. An answer nobody
// gave is its own state: Known is false, Value is the zero value and must not
// be used, and Why says what would have to change to know it. A caller that
// treats an unknown reading as zero repeats the fault of Niko1221/Strata#1545,
// where a driver's silence about free memory became a cache of 0 experts.
type Reading[T any] struct {
	Value  T      `json:"value"`
	Known  bool   `json:"known"`
	Source string `json:"source,omitempty"` // file, call or program that was asked
	Why    string `json:"why,omitempty"`    // why it is unknown; empty when known
}

// Known makes a reading that was answered by source.
func Known[T any](v T, source string) Reading[T] {
	return Reading[T]{Value: v, Known: true, Source: source}
}

// Unknown makes a reading that source could not answer, with the reason.
func Unknown[T any](source, why string) Reading[T] {
	return Reading[T]{Source: source, Why: why}
}

// MarshalJSON writes an unknown value as null, so that no reader of the JSON can
// take the zero value for an answer.
func (r Reading[T]) MarshalJSON() ([]byte, error) {
	out := struct {
		Value  *T     `json:"value"`
		Known  bool   `json:"known"`
		Source string `json:"source,omitempty"`
		Why    string `json:"why,omitempty"`
	}{nil, r.Known, r.Source, r.Why}
	if r.Known {
		out.Value = &r.Value
	}
	return json.Marshal(out)
}

// Or gives the value, or def when it is unknown.
func (r Reading[T]) Or(def T) T {
	if r.Known {
		return r.Value
	}
	return def
}

// String gives the value, or "n/a" with the reason.
func (r Reading[T]) String() string {
	if r.Known {
		return fmt.Sprint(r.Value)
	}
	if r.Why == "" {
		return "n/a"
	}
	return "n/a (" + r.Why + ")"
}

// First gives the first known reading. When none is known it gives an unknown
// one whose reason lists every source that was asked, so that "n/a" can always
// be explained.
func First[T any](rs ...Reading[T]) Reading[T] {
	out := Reading[T]{}
	for _, r := range rs {
		if r.Known {
			return r
		}
		if r.Source == "" && r.Why == "" {
			continue
		}
		if out.Source != "" {
			out.Source += "; "
			out.Why += "; "
		}
		out.Source += r.Source
		out.Why += r.Why
	}
	return out
}
