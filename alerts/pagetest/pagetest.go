// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pagetest sends a test alert through Alertmanager to the receivers
// of a PagingPolicy, and checks that each notification was accepted.
//
// It does not check whether a person's telephone rang, nor the path
// from Prometheus to Alertmanager, which the heartbeat covers.
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

// Alertmanager contains the requests that a test sends to an Alertmanager.
type Alertmanager interface {
	Configuration(ctx context.Context) (string, error)
	Post(ctx context.Context, a alertmanager.Alert, until time.Time) error
	Attempts(ctx context.Context) (map[string]alertmanager.Attempts, error)
}

// Test configures a test.
type Test struct {
	Policy types.NamespacedName
	// Severity is page or ticket.
	Severity string
	// By is the person who runs the test. The receivers see the name.
	By string
	// Patience is how long to wait for each of the two notifications.
	Patience time.Duration
	// Progress is called with a description of each wait. It may be nil.
	Progress func(string)
}

// Result is the result of a test.
type Result struct {
	// Incident is the group and the receiver of the alert in Alertmanager.
	paging.Incident
	// Notified has the deliveries of the notification that the alert fires, and Resolved the deliveries of the
	// notification that it ended, by the kind of receiver. A kind that did not accept the first notification gets no
	// second one.
	Notified map[string]Delivery `json:"notified"`
	Resolved map[string]Delivery `json:"resolved"`
}

// Delivery counts the notifications to receivers of one kind, such as pagerduty.
type Delivery struct {
	Expected int `json:"expected"`
	Accepted int `json:"accepted"`
	// Failed counts failed attempts. Alertmanager retries temporary failures.
	Failed int `json:"failed"`
}

// Problem describes the notifications that were not accepted. It is empty if all were accepted.
func (r *Result) Problem() string {
	var out []string
	for _, phase := range []struct {
		deliveries map[string]Delivery
		event      string
	}{{r.Notified, "that the alert fires"}, {r.Resolved, "that it ended"}} {
		for _, kind := range slices.Sorted(maps.Keys(phase.deliveries)) {
			if d := phase.deliveries[kind]; d.Accepted < d.Expected {
				out = append(out, fmt.Sprintf("%d of %d notifications %s were accepted by %s, after %d failed attempts",
					d.Accepted, d.Expected, phase.event, kind, d.Failed))
			}
		}
	}
	return strings.Join(out, "; ")
}

var (
	// ErrNotRouted means that Alertmanager's configuration does not contain the policy.
	ErrNotRouted = errors.New("the configuration that Alertmanager runs does not have the policy")
	// ErrNotSent means that Alertmanager did not try to send a notification in time.
	ErrNotSent = errors.New("Alertmanager sent nothing")
)

const (
	pollInterval = time.Second
	// alertEnds is when a test alert ends if the test does not end it.
	alertEnds   = 15 * time.Minute
	endingLimit = 10 * time.Second
)

// Run runs a test. After an error, the result contains the deliveries up to the error. Other
// notifications of the same kind at the same time count too, because Alertmanager counts by kind.
func Run(ctx context.Context, am Alertmanager, t Test) (*Result, error) {
	result, expected, err := findRoute(ctx, am, t)
	if err != nil {
		return nil, err
	}
	alert := alertmanager.Alert{Labels: paging.TestLabels(t.Policy.Namespace, t.Policy.Name, t.Severity),
		Since: time.Now(), Annotations: map[string]string{
			"summary":     fmt.Sprintf("Test of the PagingPolicy %s, nothing is wrong", t.Policy),
			"description": fmt.Sprintf("%s tests who gets a %s. It ends by itself.", t.By, t.Severity),
		}}
	startAlert := func(ctx context.Context) error { return am.Post(ctx, alert, time.Now().Add(alertEnds)) }
	ended := false
	endAlert := func(ctx context.Context) error {
		err := am.Post(ctx, alert, time.Now())
		ended = err == nil
		return err
	}
	result.Notified, err = sendAndWait(ctx, am, t, "be notified that the test alert fires", expected, startAlert)
	// Receivers that were not notified that the alert fires are not notified that it ended.
	expected = countAccepted(result.Notified)
	if err == nil && len(expected) > 0 {
		result.Resolved, err = sendAndWait(ctx, am, t, "be notified that it ended", expected, endAlert)
	}
	if !ended {
		// The alert is also ended if the test is cancelled, so that no incident stays open.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endingLimit)
		defer cancel()
		err = errors.Join(err, endAlert(ending))
	}
	return result, err
}

// findRoute returns the incident of the test alert, and the expected number of notifications by kind.
// The error wraps ErrNotRouted if the test alert reaches no receiver of the policy.
func findRoute(ctx context.Context, am Alertmanager, t Test) (*Result, map[string]int, error) {
	text, err := am.Configuration(ctx)
	if err != nil {
		return nil, nil, err
	}
	router, err := paging.NewRouter([]byte(text))
	if err != nil {
		return nil, nil, err
	}
	for _, in := range router.Incidents(paging.TestLabels(t.Policy.Namespace, t.Policy.Name, t.Severity)) {
		// Receivers of an AlertmanagerConfig have the name of the object as a prefix.
		if len(in.Notifies) > 0 && strings.Contains("/"+in.Receiver, "/"+t.Policy.String()+"/") {
			return &Result{Incident: in}, router.Integrations(in.Receiver), nil
		}
	}
	return nil, nil, fmt.Errorf("%w %s", ErrNotRouted, t.Policy)
}

// sendAndWait calls act, which causes notifications, and waits until Alertmanager has sent them. It returns
// the deliveries by kind. After the test's timeout it returns ErrNotSent if nothing was attempted.
func sendAndWait(ctx context.Context, am Alertmanager, t Test, purpose string, expected map[string]int,
	act func(context.Context) error) (map[string]Delivery, error) {
	before, err := am.Attempts(ctx)
	if err != nil {
		return nil, err
	}
	if err := act(ctx); err != nil {
		return nil, err
	}
	if t.Progress != nil {
		t.Progress(fmt.Sprintf("Waiting for %s to %s", strings.Join(slices.Sorted(maps.Keys(expected)), ", "), purpose))
	}
	var deliveries map[string]Delivery
	err = wait.PollUntilContextTimeout(ctx, pollInterval, t.Patience, true, func(ctx context.Context) (bool, error) {
		after, err := am.Attempts(ctx)
		if err != nil {
			return false, err
		}
		var done bool
		deliveries, done = compareAttempts(expected, before, after)
		return done, nil
	})
	// After the test's own timeout, the deliveries show what failed, unless nothing was attempted.
	if err != nil && ctx.Err() == nil && wait.Interrupted(err) {
		err = nil
		if !hasAttempts(deliveries) {
			err = fmt.Errorf("%w within %s", ErrNotSent, t.Patience)
		}
	}
	return deliveries, err
}

// compareAttempts returns the deliveries between two readings of the counts, by kind. It also reports
// whether no more deliveries are expected, because all were accepted or Alertmanager gave up.
func compareAttempts(expected map[string]int, before, after map[string]alertmanager.Attempts) (map[string]Delivery,
	bool) {
	out, done := map[string]Delivery{}, true
	for kind, n := range expected {
		old, current := before[kind], after[kind]
		d := Delivery{Expected: n, Failed: current.Failed - old.Failed}
		d.Accepted = min(n, current.All-old.All-d.Failed)
		out[kind] = d
		done = done && d.Accepted+current.GivenUp-old.GivenUp >= n
	}
	return out, done
}

// countAccepted counts the accepted notifications by kind.
func countAccepted(deliveries map[string]Delivery) map[string]int {
	out := map[string]int{}
	for kind, d := range deliveries {
		if d.Accepted > 0 {
			out[kind] = d.Accepted
		}
	}
	return out
}

// hasAttempts reports whether there was any attempt.
func hasAttempts(deliveries map[string]Delivery) bool {
	for _, d := range deliveries {
		if d.Accepted+d.Failed > 0 {
			return true
		}
	}
	return false
}

// Severities are the severities that can be tested.
var Severities = []string{series.Page, series.Ticket}
