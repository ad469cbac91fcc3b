// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging_test

import (
	"testing"

	"github.com/prometheus/alertmanager/template"

	"github.com/bellwether-dev/bellwether/alerts/paging"
)

// TestNamesStayText holds that Alertmanager, which reads details as YAML, makes no other
// value of a name.
func TestNamesStayText(t *testing.T) {
	router, err := paging.NewRouter(configOf(t, fleet()))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"prod-eu": "prod-eu", "12e4": " 12e4", "0123": " 0123", "1.10": " 1.10",
		"on": " on", "null": " null", "online": "online"} {
		events, err := router.Preview([]paging.Firing{{Labels: map[string]string{
			"alertname": "BellwetherClusterFailing", "severity": "page", "scope": "cluster", "cluster": name,
			"team": name},
			Annotations: map[string]string{"clusters": name}}})
		if err != nil || len(events) != 1 {
			t.Fatalf("events %v, error %v, want 1 event", events, err)
		}
		for _, kind := range []string{"cluster", "clusters", "team"} {
			want := want
			if want[0] == ' ' {
				want = kind + want
			}
			sent, err := template.DeepCopyWithTemplate(events[0].Details[kind], func(text string) (string, error) {
				return text, nil
			})
			if sent != want || err != nil {
				t.Errorf("%s %s is sent as %#v (error %v), want %q", kind, name, sent, err, want)
			}
		}
	}
}
