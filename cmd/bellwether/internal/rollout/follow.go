// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	xterm "golang.org/x/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/command"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// followRollout shows a rollout until it has ended, or the newest rollout of an
// operator until the user interrupts.
func (a *app) followRollout(ctx context.Context, h *hub.Client, name string) error {
	first, err := h.Rollout(ctx, name)
	if err != nil {
		return err
	}
	byOperator := first.Name != h.Key(name).Name
	reader, changed, err := a.Watch(ctx, client.ObjectKey{Namespace: first.Namespace, Name: first.Spec.Operator.Name})
	if err != nil {
		return err
	}
	look := func() (RolloutInput, error) {
		r, err := newestOf(ctx, reader, first, byOperator)
		if err != nil {
			return RolloutInput{}, err
		}
		return a.rolloutInput(ctx, reader, r)
	}
	draw := a.drawing()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var away string
	var asked time.Time
	for {
		in, err := look()
		if err != nil {
			return err
		}
		if in.Now.Sub(asked) >= hubAgeEvery {
			away, asked = a.HubAway(ctx, h), in.Now
		}
		in.HubAway = away
		draw(in)
		if !byOperator && in.Rollout.Status.Phase.Ended() {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-tick.C:
		}
	}
}

// hubAgeEvery is how often a command that watches asks when the hub was last seen.
const hubAgeEvery = 10 * time.Second

var errRolloutGone = errors.New("the rollout was deleted")

// newestOf returns the rollout as it is now, or the newest of its operator.
func newestOf(ctx context.Context, reader client.Reader, first *v1alpha1.OperatorRollout,
	byOperator bool) (*v1alpha1.OperatorRollout, error) {
	list := &v1alpha1.OperatorRolloutList{}
	if err := reader.List(ctx, list, client.InNamespace(first.Namespace)); err != nil {
		return nil, fmt.Errorf("list rollouts: %w", err)
	}
	var newest *v1alpha1.OperatorRollout
	for i := range list.Items {
		r := &list.Items[i]
		wanted := r.Name == first.Name || byOperator && r.Spec.Operator.Name == first.Spec.Operator.Name
		if wanted && (newest == nil || r.Spec.Revision > newest.Spec.Revision) {
			newest = r
		}
	}
	if newest == nil {
		return nil, errRolloutGone
	}
	return newest, nil
}

// drawing returns what shows a rollout again and again: over itself on a
// terminal, elsewhere a line for each change.
func (a *app) drawing() func(RolloutInput) {
	if f, ok := command.File(a.Streams.Out); ok && xterm.IsTerminal(int(f.Fd())) {
		s := &screen{out: f, size: func() (int, int, error) { return xterm.GetSize(int(f.Fd())) }}
		return func(in RolloutInput) { s.draw(Rollout(in, a.Style())) }
	}
	var before RolloutInput
	return func(in RolloutInput) {
		if in.HubAway != "" && before.HubAway == "" && before.Rollout != nil {
			a.Warn("%s\n", in.HubAway) // before anything is shown, the command has said it
		}
		for _, line := range RolloutChanges(before, in) {
			a.Say("%s  %s\n", term.TimeOfDay(in.Now), line)
		}
		before = in
	}
}

// screen draws a text over the one it drew before.
type screen struct {
	out   io.Writer
	size  func() (width, height int, err error)
	drawn string
	lines int
}

func (s *screen) draw(text string) {
	width, height, err := s.size()
	if err != nil {
		width, height = 0, 0
	}
	text = clip(term.Shown(text), height-1)
	if text == s.drawn {
		return
	}
	var out strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\r\x1b[J", s.lines)
	}
	out.WriteString(text)
	s.drawn, s.lines = text, term.Lines(text, width)
	_, _ = io.WriteString(s.out, out.String()) // a terminal that is gone needs no picture
}

// clip keeps so many lines, since what has scrolled away cannot be drawn over.
func clip(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	if lines <= 0 || len(all) <= lines {
		return text
	}
	return strings.Join(all[:lines], "")
}
