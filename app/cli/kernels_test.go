package cli

import (
	"strings"
	"testing"
)

func TestUseKernels(t *testing.T) {
	best := kernelName()
	for _, name := range kernelLevels() {
		undo, err := useKernels(name)
		if err != nil || kernelName() != name {
			t.Errorf("use %s: got %s, %v", name, kernelName(), err)
		}
		undo()
		if kernelName() != best {
			t.Fatalf("after %s: got %s, want %s again", name, kernelName(), best)
		}
	}
	if _, err := useKernels("sse"); err == nil || !strings.Contains(err.Error(), best) {
		t.Errorf("an unknown level: got %v, want an error that names those there are", err)
	}
}
