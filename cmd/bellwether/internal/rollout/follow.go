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

// followRollout shows a rollout until the rollout ends. If name is an operator, it shows the newest rollout of this
// operator until the user interrupts the command.
func (a *app) followRollout(ctx context.Context, h *hub.Client, name string) error {
	initial, err := h.Rollout(ctx, name)
	if err != nil {
		return err
	}
	isOperatorName := initial.Name != h.Key(name).Name
	reader, changed, err := a.Watch(ctx,
		client.ObjectKey{Namespace: initial.Namespace, Name: initial.Spec.Operator.Name})
	if err != nil {
		return err
	}
	readInput := func() (RolloutInput, error) {
		r, err := findNewestRollout(ctx, reader, initial, isOperatorName)
		if err != nil {
			return RolloutInput{}, err
		}
		return a.readRolloutInput(ctx, reader, r)
	}
	draw := a.newRolloutPrinter()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var hubAway string
	var checkedAt time.Time
	for {
		in, err := readInput()
		if err != nil {
			return err
		}
		if in.Now.Sub(checkedAt) >= hubAgeInterval {
			hubAway, checkedAt = a.DescribeHubAge(ctx, h), in.Now
		}
		in.HubAway = hubAway
		draw(in)
		if !isOperatorName && in.Rollout.Status.Phase.Ended() {
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

// hubAgeInterval is the time between two checks of when the hub was last seen, while a command watches a rollout.
const hubAgeInterval = 10 * time.Second

var errRolloutGone = errors.New("the rollout was deleted")

// findNewestRollout returns the current state of the rollout initial. If isOperatorName is set, it returns the newest
// rollout of the same operator instead. It returns errRolloutGone if there is no such rollout.
func findNewestRollout(ctx context.Context, reader client.Reader, initial *v1alpha1.OperatorRollout,
	isOperatorName bool) (*v1alpha1.OperatorRollout, error) {
	list := &v1alpha1.OperatorRolloutList{}
	if err := reader.List(ctx, list, client.InNamespace(initial.Namespace)); err != nil {
		return nil, fmt.Errorf("list rollouts: %w", err)
	}
	var newest *v1alpha1.OperatorRollout
	for i := range list.Items {
		r := &list.Items[i]
		isSameOperator := isOperatorName && r.Spec.Operator.Name == initial.Spec.Operator.Name
		isNewer := newest == nil || r.Spec.Revision > newest.Spec.Revision
		if isNewer && (isSameOperator || r.Name == initial.Name) {
			newest = r
		}
	}
	if newest == nil {
		return nil, errRolloutGone
	}
	return newest, nil
}

// newRolloutPrinter returns a function that shows a rollout each time it is called. On a terminal, the function
// replaces its previous output; elsewhere it prints one line for each change.
func (a *app) newRolloutPrinter() func(RolloutInput) {
	if f, ok := command.File(a.Streams.Out); ok && xterm.IsTerminal(int(f.Fd())) {
		s := &screen{out: f, size: func() (int, int, error) { return xterm.GetSize(int(f.Fd())) }}
		return func(in RolloutInput) { s.draw(RenderRollout(in, a.Style())) }
	}
	var previous RolloutInput
	return func(in RolloutInput) {
		if in.HubAway != "" && previous.HubAway == "" && previous.Rollout != nil {
			a.Warn("%s\n", in.HubAway) // before the first output, the command itself prints this warning
		}
		for _, line := range ListRolloutChanges(previous, in) {
			a.Say("%s  %s\n", term.TimeOfDay(in.Now), line)
		}
		previous = in
	}
}

// screen replaces the text that it drew last by a new text.
type screen struct {
	out   io.Writer
	size  func() (width, height int, err error)
	drawn string
	lines int
}

// draw shows a text in place of the previous text. It does nothing if the text is unchanged.
func (s *screen) draw(text string) {
	width, height, err := s.size()
	if err != nil {
		width, height = 0, 0 // the size is unknown, so lines are not cut
	}
	text = cutLines(term.EscapeText(text), height-1)
	if text == s.drawn {
		return
	}
	var out strings.Builder
	if s.lines > 0 { // move the cursor to the first line of the previous text, and clear the screen from there
		fmt.Fprintf(&out, "\x1b[%dA\r\x1b[J", s.lines)
	}
	out.WriteString(text)
	s.drawn, s.lines = text, term.Lines(text, width)
	_, _ = io.WriteString(s.out, out.String()) // there is no output to update if the terminal was closed
}

// cutLines returns the first lines of a text. A line that has scrolled off the screen cannot be replaced later. If
// lines is 0 or negative, the text is returned unchanged.
func cutLines(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	if lines <= 0 || len(all) <= lines {
		return text
	}
	return strings.Join(all[:lines], "")
}
