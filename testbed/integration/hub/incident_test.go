// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	plan "github.com/bellwether-dev/bellwether/alerts/paging"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/hub/paging"
	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/pagerduty"
)

// mount writes what the hub made for Alertmanager into a folder, with secrets read from there and groups that are
// gathered sooner, and returns the configuration.
func (w *pagingWorld) mount(folder string) []byte {
	w.t.Helper()
	data := w.written().Data
	for name, content := range data {
		must(w.t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	config := bytes.ReplaceAll(data[plan.ConfigFile], []byte(paging.DefaultFolder), []byte(folder))
	config = bytes.ReplaceAll(config, []byte("group_wait: 30s"), []byte("group_wait: 300ms"))
	return bytes.ReplaceAll(config, []byte("group_interval: 5m"), []byte("group_interval: 1s"))
}

// TestHubRestartsDuringAnIncident has the hub stop while an incident is open, and write the configuration anew after it
// is back: the incident is the same one, and ends once.
func TestHubRestartsDuringAnIncident(t *testing.T) {
	t.Parallel()
	h := startWhole(t)
	w := &pagingWorld{harness: h, t: t, namespace: hubNamespace}
	events, err := pagerduty.Start(t.Context(), pagerduty.Options{Services: []string{"platform"}})
	must(t, err)
	t.Cleanup(events.Close)
	h.paging.PagerDuty = []string{events.Host()}
	h.restartHub(t)
	key, err := events.RoutingKey("platform")
	must(t, err)
	must(t, w.Create(t.Context(), pagerDutySecret(hubNamespace, key)))
	fleet := pagingPolicy(hubNamespace, "platform", v1alpha1.PagingFleet)
	fleet.Spec.Receivers[0].PagerDuty.URL = events.URL() + pagerduty.EnqueuePath
	must(t, w.Create(t.Context(), fleet))
	w.reaches(t, fleet, "True Succeeded")

	binaries, err := build.Ensure(t.Context(), t.Output(), build.Alertmanager)
	must(t, err)
	folder := t.TempDir()
	manager, err := alertmanager.Start(t.Context(), alertmanager.Options{Dir: t.TempDir(),
		Binary: binaries[build.Alertmanager], Config: w.mount(folder)})
	must(t, err)
	t.Cleanup(func() { manager.Stop(context.Background()) })
	fires := func(until time.Time) {
		t.Helper()
		must(t, manager.Post(t.Context(), alertmanager.PostableAlert{EndsAt: until, Labels: map[string]string{
			"alertname": slo.AlertRelease, "severity": "page", "scope": "release", "operator_namespace": "payments",
			"operator": "echo", "version": "1.1.0", "sli": "reconcile"},
			Annotations: map[string]string{"summary": "echo burns its budget"}}))
	}
	reaches := func(opened, resolved int) {
		t.Helper()
		eventually(t, func() error {
			l := events.Ledger()
			if len(l.Incidents) != 1 || l.Incidents[0].Opened != opened || l.Incidents[0].Resolved != resolved {
				return errNotYet
			}
			return nil
		})
	}
	fires(time.Now().Add(time.Hour))
	reaches(1, 0)

	// The hub comes back, learns of an operator that has a route of its own, and writes what it did not before.
	w.restartHub(t)
	before := w.written().ResourceVersion
	operator := parse(t, goodOperator, hubNamespace)
	operator.SetName("other")
	must(t, w.Create(t.Context(), operator))
	eventually(t, func() error {
		if w.written().ResourceVersion == before {
			return errNotYet
		}
		return nil
	})
	must(t, manager.SetConfig(t.Context(), w.mount(folder)))
	fires(time.Now().Add(time.Hour))
	fires(time.Now())
	reaches(1, 1)
	if l := events.Ledger(); len(l.Anomalies) != 0 {
		t.Errorf("anomalies %+v", l.Anomalies)
	}
}
