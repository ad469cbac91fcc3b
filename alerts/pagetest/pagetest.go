// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pagetest sends a test alert the way of a PagingPolicy, through Alertmanager to
// whoever is notified, and sees whether each notification was accepted.
//
// Whether a person's telephone rang is not seen, and neither is the way from Prometheus
// to Alertmanager: that is what the heartbeat is for.
package pagetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/bellwether-dev/bellwether/alerts/alertmanager"
	"github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Alertmanager is what a test asks of one.
type Alertmanager interface {
	Configuration(ctx context.Context) (string, error)
	Post(ctx context.Context, a alertmanager.Alert, until time.Time) error
	Attempts(ctx context.Context) (map[string]alertmanager.Attempts, error)
}

// Test is what to test.
type Test struct {
	Policy types.NamespacedName
	// Severity is page or ticket.
	Severity string
	// By is who tests, for whoever is notified.
	By string
	// Patience is for how long to wait for each of the two notifications.
	Patience time.Duration
	// Progress is told what is waited for; nil: nobody is.
	Progress func(string)
}

// Result is what became of a test.
type Result struct {
	// Incident is what Alertmanager made of the alert.
	paging.Incident
	// Notified says what became of the notification that the alert fires, and Resolved of
	// the one that it ended, by the kind. Of a kind that did not accept the first there is
	// no second one.
	Notified map[string]Delivery `json:"notified"`
	Resolved map[string]Delivery `json:"resolved"`
}

// Delivery is what became of the notifications of a kind.
type Delivery struct {
	Expected int `json:"expected"`
	Accepted int `json:"accepted"`
	// Failed attempts. Alertmanager tries again what may work later.
	Failed int `json:"failed"`
}

// Problem says which notifications were not accepted; empty if all were.
func (r *Result) Problem() string {
	var out []string
	for _, phase := range []struct {
		of   map[string]Delivery
		what string
	}{{r.Notified, "that the alert fires"}, {r.Resolved, "that it ended"}} {
		for _, kind := range slices.Sorted(maps.Keys(phase.of)) {
			if d := phase.of[kind]; d.Accepted < d.Expected {
				out = append(out, fmt.Sprintf("%d of %d notifications %s were accepted by %s, after %d failed attempts",
					d.Accepted, d.Expected, phase.what, kind, d.Failed))
			}
		}
	}
	return strings.Join(out, "; ")
}

var (
	// ErrNotRouted says that Alertmanager does not know the policy.
	ErrNotRouted = errors.New("the configuration that Alertmanager runs does not have the policy")
	// ErrNotSent says that Alertmanager did not try to notify anybody in time.
	ErrNotSent = errors.New("Alertmanager sent nothing")
)

const (
	pollInterval = time.Second
	// alertEnds is when a test alert ends that nobody ends.
	alertEnds   = 15 * time.Minute
	endingLimit = 10 * time.Second
)

// Run tests. The result is what was seen until then where it fails. Other notifications
// of the same kind at the same time count too: Alertmanager counts by kind.
func Run(ctx context.Context, am Alertmanager, t Test) (*Result, error) {
	result, expected, err := route(ctx, am, t)
	if err != nil {
		return nil, err
	}
	alert := alertmanager.Alert{Labels: paging.TestLabels(t.Policy.Namespace, t.Policy.Name, t.Severity),
		Since: time.Now(), Annotations: map[string]string{
			"summary":     fmt.Sprintf("Test of the PagingPolicy %s, nothing is wrong", t.Policy),
			"description": fmt.Sprintf("%s tests who gets a %s. It ends by itself.", t.By, t.Severity),
		}}
	begin := func(ctx context.Context) error { return am.Post(ctx, alert, time.Now().Add(alertEnds)) }
	ended := false
	end := func(ctx context.Context) error {
		err := am.Post(ctx, alert, time.Now())
		ended = err == nil
		return err
	}
	result.Notified, err = send(ctx, am, t, "be notified that the test alert fires", expected, begin)
	// Who was not notified that it fires is not notified that it ended.
	expected = accepted(result.Notified)
	if err == nil && len(expected) > 0 {
		result.Resolved, err = send(ctx, am, t, "be notified that it ended", expected, end)
	}
	if !ended {
		// Whoever stops the test wants no incident to stay open.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endingLimit)
		defer cancel()
		err = errors.Join(err, end(ending))
	}
	return result, err
}

// route finds the way of the test alert, and how many notifications of each kind to expect.
func route(ctx context.Context, am Alertmanager, t Test) (*Result, map[string]int, error) {
	text, err := am.Configuration(ctx)
	if err != nil {
		return nil, nil, err
	}
	router, err := paging.NewRouter([]byte(text))
	if err != nil {
		return nil, nil, err
	}
	for _, in := range router.Incidents(paging.TestLabels(t.Policy.Namespace, t.Policy.Name, t.Severity)) {
		// An AlertmanagerConfig's receivers have its own name in front.
		if len(in.Notifies) > 0 && strings.Contains("/"+in.Receiver, "/"+t.Policy.String()+"/") {
			return &Result{Incident: in}, router.Integrations(in.Receiver), nil
		}
	}
	return nil, nil, fmt.Errorf("%w %s", ErrNotRouted, t.Policy)
}

// send does something of which Alertmanager notifies, and waits until it has.
func send(ctx context.Context, am Alertmanager, t Test, what string, expected map[string]int,
	act func(context.Context) error) (map[string]Delivery, error) {
	before, err := am.Attempts(ctx)
	if err != nil {
		return nil, err
	}
	if err := act(ctx); err != nil {
		return nil, err
	}
	if t.Progress != nil {
		t.Progress(fmt.Sprintf("Waiting for %s to %s", strings.Join(slices.Sorted(maps.Keys(expected)), ", "), what))
	}
	var seen map[string]Delivery
	err = wait.PollUntilContextTimeout(ctx, pollInterval, t.Patience, true, func(ctx context.Context) (bool, error) {
		after, err := am.Attempts(ctx)
		if err != nil {
			return false, err
		}
		var done bool
		seen, done = compare(expected, before, after)
		return done, nil
	})
	if err != nil && ctx.Err() == nil && wait.Interrupted(err) {
		err = nil
		if !tried(seen) {
			err = fmt.Errorf("%w within %s", ErrNotSent, t.Patience)
		}
	}
	return seen, err
}

// compare says what was delivered since before, and whether nothing more is to be
// expected: all was accepted, or Alertmanager gave up.
func compare(expected map[string]int, before, after map[string]alertmanager.Attempts) (map[string]Delivery, bool) {
	out, done := map[string]Delivery{}, true
	for kind, n := range expected {
		was, is := before[kind], after[kind]
		d := Delivery{Expected: n, Failed: is.Failed - was.Failed}
		d.Accepted = min(n, is.All-was.All-d.Failed)
		out[kind] = d
		done = done && d.Accepted+is.GivenUp-was.GivenUp >= n
	}
	return out, done
}

// accepted counts the notifications that were accepted, by their kind.
func accepted(of map[string]Delivery) map[string]int {
	out := map[string]int{}
	for kind, d := range of {
		if d.Accepted > 0 {
			out[kind] = d.Accepted
		}
	}
	return out
}

// tried tells whether there was any attempt.
func tried(seen map[string]Delivery) bool {
	for _, d := range seen {
		if d.Accepted+d.Failed > 0 {
			return true
		}
	}
	return false
}

// Severities that can be tested.
var Severities = []string{series.Page, series.Ticket}
