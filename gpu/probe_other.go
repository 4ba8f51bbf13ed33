//go:build !windows

package gpu

// probeWindows is asked only on Windows.
func probeWindows() WindowsAnswers { return WindowsAnswers{} }
