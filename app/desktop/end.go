package desktop

import "time"

// The toolkit's end can hang for good: an event that is queued while its loop ends
// is waited for and never run (fyne.io/fyne/v2 v2.8.1, glfw: runOnMainWithWait and
// the drain in runGL). The window is gone then, and the engine would go on.

// How long the toolkit may take to end, and what is ours to close after that.
const endTime = 8 * time.Second

// lastly waits for over, and where it does not come in time closes what is ours,
// as long as that takes no longer again, and ends the program.
func lastly(over <-chan struct{}, wait time.Duration, closeAll func(), exit func(code int)) {
	select {
	case <-over:
		return
	case <-time.After(wait):
	}
	closed := make(chan struct{})
	go func() { closeAll(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(wait):
	}
	exit(0)
}
