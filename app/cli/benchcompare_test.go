package cli

import "testing"

func TestParsePeer(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want speedPair
		bad  bool
	}{
		"lines":       {in: "model.gguf threads 2\nprefill 512 tok/s median 148.20 [1..2] of 3\ndecode 128 tok/s median 11.20 [1..2] of 3\n", want: speedPair{148.2, 11.2}},
		"llama-bench": {in: `[{"n_prompt":512,"n_gen":0,"avg_ts":148.5},{"n_prompt":0,"n_gen":128,"avg_ts":11.5}]`, want: speedPair{148.5, 11.5}},
		"half":        {in: "prefill 512 tok/s median 148.20\n", bad: true},
		"nothing":     {in: "", bad: true},
		"zero":        {in: "prefill 1 tok/s median 0.0\ndecode 1 tok/s median 0.0\n", bad: true},
	} {
		got, err := parsePeer([]byte(c.in))
		if (err != nil) != c.bad || !c.bad && got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func TestMedians(t *testing.T) {
	if got := medians([]speedPair{{1, 9}, {3, 7}, {2, 8}}); got != (speedPair{2, 8}) {
		t.Errorf("%+v", got)
	}
	if got := medians([]speedPair{{1, 4}, {3, 2}}); got != (speedPair{2, 3}) {
		t.Errorf("%+v", got)
	}
}
