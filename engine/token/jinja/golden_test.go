package jinja

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"
)

// TestGolden compares with Python's Jinja: testdata/make.py.
func TestGolden(t *testing.T) {
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Vars     json.RawMessage
		Template string
		Want     *string
		Raised   *string
		Error    string
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 90 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		v, err := FromJSON(c.Vars)
		if err != nil {
			t.Fatal(err)
		}
		vars := map[string]any{}
		for _, k := range v.(*Dict).keys {
			vars[k.(string)] = v.(*Dict).vals[k]
		}
		var got string
		tpl, err := Parse(c.Template)
		if err == nil {
			got, err = tpl.Render(vars, time.Date(2026, 3, 7, 9, 5, 2, 0, time.UTC))
		}
		var e *Error
		switch {
		case c.Want != nil:
			if err != nil {
				t.Errorf("%s\nerror: %v\nwant %q", c.Template, err, *c.Want)
			} else if got != *c.Want {
				t.Errorf("%s\n got %q\nwant %q", c.Template, got, *c.Want)
			}
		case c.Raised != nil:
			if !errors.As(err, &e) || !e.Raised || e.Error() != *c.Raised {
				t.Errorf("%s\n got %q, %v\nwant %q raised", c.Template, got, err, *c.Raised)
			}
		default:
			if !errors.As(err, &e) || e.Raised || e.Line == 0 {
				t.Errorf("%s\n got %q, %v\nwant an error with a line, as %s", c.Template, got, err, c.Error)
			}
		}
	}
}
