// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

const (
	// progressAfter is how long a command may take without a word.
	progressAfter = 2 * time.Second
	// progressEvery is how often the line changes.
	progressEvery = 250 * time.Millisecond
)

// Progress shows on the terminal how far a command is, on a line of its own that is gone when the command ends. It
// shows nothing in the first two seconds, and nothing at all where stderr is not a terminal. Its methods may be called
// from several goroutines; those of nil do nothing.
type Progress struct {
	out   io.Writer
	width int
	start time.Time
	stop  chan struct{}
	ended chan struct{}

	mu          sync.Mutex
	doing, unit string
	done, total int
	shown       bool
}

// Progress begins to show how far the command is: what it does, as in "reading the catalog". It is to be stopped before
// anything is printed, and its line goes to stderr.
func (a *Env) Progress(doing string) *Progress {
	width, terminal := TerminalWidth(a.Streams.ErrOut)
	if !terminal || a.Getenv("CI") != "" || a.Getenv("TERM") == "dumb" {
		return nil
	}
	ticker := time.NewTicker(progressEvery)
	p := newProgress(rawOf(a.Streams.ErrOut), width, doing, time.Now())
	a.progress.Store(p)
	go func() {
		defer ticker.Stop()
		p.run(ticker.C)
	}()
	return p
}

// newProgress takes the width that a terminal reports. One that reports none, as serial consoles and some containers
// do, has the default width.
func newProgress(out io.Writer, width int, doing string, start time.Time) *Progress {
	if width <= 0 {
		width = term.DefaultWidth
	}
	return &Progress{out: out, width: width, doing: doing, start: start, stop: make(chan struct{}),
		ended: make(chan struct{})}
}

// run shows the line at each tick until it is stopped.
func (p *Progress) run(ticks <-chan time.Time) {
	defer close(p.ended)
	for {
		select {
		case <-p.stop:
			return
		case now := <-ticks:
			if now.Sub(p.start) >= progressAfter {
				p.show(now)
			}
		}
	}
}

// Doing says what the command does next.
func (p *Progress) Doing(doing string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing, p.done, p.total = doing, 0, 0
}

// Count says how much of it is done; unit is the plural of what is counted.
func (p *Progress) Count(done, total int, unit string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.total, p.unit = done, total, unit
}

// Print writes text where the line is; the line comes back below it.
func (p *Progress) Print(write func()) {
	if p == nil {
		write()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	write()
}

// Stop removes the line. It may be called more than once.
func (p *Progress) Stop() {
	if p == nil {
		return
	}
	p.mu.Lock()
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	p.mu.Unlock()
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// clearLine goes to the beginning of the line and removes what is there.
const clearLine = "\r\x1b[K"

func (p *Progress) clear() {
	if p.shown {
		_, _ = io.WriteString(p.out, clearLine)
	}
	p.shown = false
}

func (p *Progress) show(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := term.Escape(p.doing)
	if p.total > 0 {
		text += fmt.Sprintf(": %d of %d %s", p.done, p.total, p.unit)
	}
	text += fmt.Sprintf(" (%s)", now.Sub(p.start).Truncate(time.Second))
	// A line that does not fit would be continued on the next one, which is never removed.
	if runes := []rune(text); len(runes) >= p.width {
		text = string(runes[:max(p.width-1, 0)])
	}
	_, _ = io.WriteString(p.out, clearLine+text)
	p.shown = true
}
