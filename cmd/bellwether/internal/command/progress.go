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
	// progressDelay is the time before the progress line appears.
	progressDelay = 2 * time.Second
	// progressInterval is how often the line changes.
	progressInterval = 250 * time.Millisecond
)

// Progress shows on the terminal how far a command is, in a line that is removed when the command ends. It shows
// nothing in the first two seconds, and nothing if stderr is not a terminal. Its methods may be called from several
// goroutines. On a nil Progress they do nothing.
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

// Progress starts a progress line on stderr. doing is what the command does, as in "reading the catalog". The caller
// must call Stop before it prints anything. It returns nil if stderr is not a terminal.
func (a *Env) Progress(doing string) *Progress {
	width, terminal := TerminalWidth(a.Streams.ErrOut)
	if !terminal || a.Getenv("CI") != "" || a.Getenv("TERM") == "dumb" {
		return nil
	}
	ticker := time.NewTicker(progressInterval)
	p := newProgress(unwrapStream(a.Streams.ErrOut), width, doing, time.Now())
	a.progress.Store(p)
	go func() {
		defer ticker.Stop()
		p.run(ticker.C)
	}()
	return p
}

// newProgress returns a progress line that is not shown yet. A width of 0, which serial consoles and some containers
// report, is replaced by the default width.
func newProgress(out io.Writer, width int, doing string, start time.Time) *Progress {
	if width <= 0 {
		width = term.DefaultWidth
	}
	return &Progress{out: out, width: width, doing: doing, start: start, stop: make(chan struct{}),
		ended: make(chan struct{})}
}

// run shows the line at each tick until Stop is called.
func (p *Progress) run(ticks <-chan time.Time) {
	defer close(p.ended)
	for {
		select {
		case <-p.stop:
			return
		case now := <-ticks:
			if now.Sub(p.start) >= progressDelay {
				p.show(now)
			}
		}
	}
}

// Doing sets what the command does next.
func (p *Progress) Doing(doing string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing, p.done, p.total = doing, 0, 0
}

// Count sets how much of the work is done. unit is the plural of what is counted.
func (p *Progress) Count(done, total int, unit string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.total, p.unit = done, total, unit
}

// Print removes the line and calls write. The line appears again below the text that write prints.
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
	case <-p.stop: // already closed
	default:
		close(p.stop)
	}
	p.mu.Unlock()
	<-p.ended // run needs the lock until it ends
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// clearLine moves the cursor to the beginning of the line and clears the line.
const clearLine = "\r\x1b[K"

// clear removes the line from the terminal if it is shown. The caller must hold the lock.
func (p *Progress) clear() {
	if p.shown {
		_, _ = io.WriteString(p.out, clearLine)
	}
	p.shown = false
}

// show writes the line with the work that is done and the time since the start.
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
