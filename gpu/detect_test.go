package gpu

import ("testing";"os";"encoding/json")

func TestHere(t *testing.T) {
	m, err := Detect(os.DirFS("/"))
	if err != nil { t.Fatal(err) }
	b, _ := json.MarshalIndent(m, "", " ")
	t.Logf("%s", b)
}
