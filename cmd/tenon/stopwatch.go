package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// patience is how long a step takes before its first progress line.
	patience = 1500 * time.Millisecond
	// tellEvery is the interval between later progress lines.
	tellEvery = 3 * time.Second
)

// stopwatch prints what a command does while that takes long, and nothing for quick steps.
type stopwatch struct {
	mu    sync.Mutex
	out   io.Writer
	what  string
	done  int
	of    int
	unit  string // of the numbers above
	began time.Time
	end   chan struct{}
	ended sync.WaitGroup
}

func newStopwatch(out io.Writer) *stopwatch { return &stopwatch{out: out} }

// begin starts a step and ends the one before.
func (s *stopwatch) begin(format string, args ...any) {
	s.stop()
	s.mu.Lock()
	s.what, s.done, s.of, s.unit, s.began = fmt.Sprintf(format, args...), 0, 0, "", time.Now()
	s.end = make(chan struct{})
	end := s.end
	s.mu.Unlock()
	s.ended.Go(func() {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		for {
			select {
			case <-end:
				return
			case <-timer.C:
				s.tell()
				timer.Reset(tellEvery)
			}
		}
	})
}

// progress records how far the step is.
func (s *stopwatch) progress(done, of int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of != s.of {
		s.done = 0 // the items of lists are counted from zero
	}
	s.done, s.of, s.unit = max(done, s.done), of, " documents"
}

// step records how far a step is, and begins it unless it is under way.
func (s *stopwatch) step(what string, done, of int) {
	s.mu.Lock()
	under := s.end != nil && s.what == what
	s.mu.Unlock()
	if !under {
		s.begin("%s", what)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.of = done, of
}

func (s *stopwatch) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf("%s (%s)", s.what, time.Since(s.began).Round(time.Second))
	if s.of > 0 {
		line += fmt.Sprintf(": %d of %d%s", s.done, s.of, s.unit)
	}
	_, _ = fmt.Fprintln(s.out, line)
}

// say writes a line between progress lines.
func (s *stopwatch) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.out, format+"\n", args...)
}

// stop ends the step and its progress lines.
func (s *stopwatch) stop() {
	s.mu.Lock()
	if s.end != nil {
		close(s.end)
		s.end = nil
	}
	s.mu.Unlock()
	s.ended.Wait()
}
