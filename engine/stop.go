package engine

import "strings"

// stopper holds text back while it could be the beginning of a stop string.
type stopper struct {
	stops []string
	queue []Step // not handed out yet, with the text of each
	text  string // the text of the queue
	out   []Step
}

func newStopper(stops []string) *stopper {
	s := &stopper{}
	for _, t := range stops {
		if t != "" {
			s.stops = append(s.stops, t)
		}
	}
	return s
}

// push adds a step and returns the steps whose text is sure; they are valid
// until the next call. When a stop string is complete, found names it, and the
// text ends before it.
func (s *stopper) push(st Step) (ready []Step, found string) {
	s.out = s.out[:0]
	if len(s.stops) == 0 {
		s.out = append(s.out, st)
		return s.out, ""
	}
	s.queue = append(s.queue, st)
	s.text += st.Text
	at := len(s.text)
	for _, t := range s.stops {
		if i := strings.Index(s.text, t); i >= 0 && (found == "" || i < at) {
			at, found = i, t
		}
	}
	if found != "" {
		s.release(at, true)
		s.queue, s.text = s.queue[:0], ""
		return s.out, found
	}
	held := 0
	for _, t := range s.stops {
		for n := min(len(t)-1, len(s.text)); n > held; n-- {
			if strings.HasSuffix(s.text, t[:n]) {
				held = n
				break
			}
		}
	}
	s.release(len(s.text)-held, false)
	return s.out, ""
}

// release hands out the steps whose text ends by at; cut also hands out the
// front part of the step in which at lies.
func (s *stopper) release(at int, cut bool) {
	end, n := 0, 0
	for _, st := range s.queue {
		begin := end
		end += len(st.Text)
		if end > at {
			if cut && begin < at {
				st.Text = st.Text[:at-begin]
				s.out = append(s.out, st)
			}
			break
		}
		s.out = append(s.out, st)
		n++
	}
	done := 0
	for _, st := range s.queue[:n] {
		done += len(st.Text)
	}
	s.queue = append(s.queue[:0], s.queue[n:]...)
	s.text = s.text[done:]
}

// rest gives everything that is still held.
func (s *stopper) rest() []Step {
	s.out = append(s.out[:0], s.queue...)
	s.queue, s.text = s.queue[:0], ""
	return s.out
}
