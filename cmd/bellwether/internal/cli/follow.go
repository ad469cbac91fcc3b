// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/view"
)

// watchRollouts keeps an operator's rollouts, its installs and the fleet in
// memory, and says when any of them changed.
func (a *app) watchRollouts(ctx context.Context, operator client.ObjectKey) (client.Reader, <-chan struct{}, error) {
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, nil, badKubeconfig(err)
	}
	installs := labels.SelectorFromSet(v1alpha1.OperatorReference(operator).Labels())
	watched, err := cache.New(config, cache.Options{Scheme: scheme,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.OperatorRollout{}: {Namespaces: map[string]cache.Config{operator.Namespace: {}}},
			&v1alpha1.OperatorInstall{}: {Label: installs},
		}})
	if err != nil {
		return nil, nil, fmt.Errorf("watch rollouts: %w", err)
	}
	changed := make(chan struct{}, 1)
	if err := notify(ctx, watched, changed); err != nil {
		return nil, nil, err
	}
	go func() { _ = watched.Start(ctx) }() // ends with ctx, and has no other error
	if !watched.WaitForCacheSync(ctx) {
		return nil, nil, fmt.Errorf("watch rollouts: %w", context.Cause(ctx))
	}
	return watched, changed, nil
}

func notify(ctx context.Context, watched cache.Cache, changed chan<- struct{}) error {
	tell := func() {
		select {
		case changed <- struct{}{}:
		default: // a change is waiting to be seen already
		}
	}
	for _, kind := range []client.Object{&v1alpha1.OperatorRollout{}, &v1alpha1.OperatorInstall{},
		&v1alpha1.FleetCluster{}} {
		informer, err := watched.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch rollouts: %w", err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() }, DeleteFunc: func(any) { tell() },
		}); err != nil {
			return fmt.Errorf("watch rollouts: %w", err)
		}
	}
	return nil
}

// followRollout shows a rollout until it has ended, or the newest rollout of an
// operator until the user interrupts.
func (a *app) followRollout(ctx context.Context, h *hub, name string) error {
	first, err := h.rollout(ctx, name)
	if err != nil {
		return err
	}
	byOperator := first.Name != name
	reader, changed, err := a.watch(ctx, client.ObjectKey{Namespace: h.namespace, Name: first.Spec.Operator.Name})
	if err != nil {
		return err
	}
	look := func() (view.RolloutInput, error) {
		r, err := newestOf(ctx, reader, first, byOperator)
		if err != nil {
			return view.RolloutInput{}, err
		}
		return a.rolloutInput(ctx, reader, r)
	}
	draw := a.drawing()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		in, err := look()
		if err != nil {
			return err
		}
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
func (a *app) drawing() func(view.RolloutInput) {
	if f, ok := a.streams.Out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s := &screen{out: f, size: func() (int, int, error) { return term.GetSize(int(f.Fd())) }}
		return func(in view.RolloutInput) { s.draw(view.Rollout(in, a.style())) }
	}
	var before view.RolloutInput
	return func(in view.RolloutInput) {
		for _, line := range view.RolloutChanges(before, in) {
			a.say("%s  %s\n", in.Now.Format(time.TimeOnly), line)
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
	text = clip(text, height-1)
	if text == s.drawn {
		return
	}
	var out strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\r\x1b[J", s.lines)
	}
	out.WriteString(text)
	s.drawn, s.lines = text, view.Lines(text, width)
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
