// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package paging_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"

	"github.com/bellwether-dev/bellwether/alerts/paging"
)

// routed are the receivers of an alert in the objects of policies, as prometheus-operator
// puts them into one configuration: an alert goes through each object.
func routed(t *testing.T, labels map[string]string, policies ...paging.Policy) []string {
	t.Helper()
	var out []string
	for _, p := range policies {
		spec, err := paging.BuildObject(p, policies)
		if err != nil {
			t.Fatal(err)
		}
		config := map[string]any{"receivers": []map[string]string{{"name": "unmatched"}}}
		for _, r := range spec.Receivers {
			config["receivers"] = append(config["receivers"].([]map[string]string), map[string]string{"name": r.Name})
		}
		config["route"] = map[string]any{"receiver": "unmatched", "routes": []any{plainRoute(t, spec.Route)}}
		text, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		router, err := paging.NewRouter(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range router.Incidents(labels) {
			if in.Receiver != "unmatched" && in.Receiver != "nobody" {
				out = append(out, in.Receiver)
			}
		}
	}
	return out
}

func plainRoute(t *testing.T, r *monitoring.Route) map[string]any {
	t.Helper()
	var matchers []string
	for _, m := range r.Matchers {
		matchers = append(matchers, m.String())
	}
	children, err := r.ChildRoutes()
	if err != nil {
		t.Fatal(err)
	}
	var routes []any
	for i := range children {
		routes = append(routes, plainRoute(t, &children[i]))
	}
	return map[string]any{"receiver": r.Receiver, "matchers": matchers, "routes": routes}
}

const toFleet = "bellwether-system/platform/pages"

// TestObjectsReachSomebodyOnce holds that each alert reaches one policy, also about an
// operator that was deleted while it fires.
func TestObjectsReachSomebodyOnce(t *testing.T) {
	dotted := paging.Operator{Namespace: "payments", Name: "a.b"}
	policies := []paging.Policy{fleet(echo, critical), tenant("payments", others, ledger, dotted)}
	for name, c := range map[string]struct {
		op   paging.Operator
		want string
	}{
		"of the fleet":         {echo, toFleet},
		"of a team":            {ledger, "payments/team/pages"},
		"with a dot":           {dotted, "payments/team/standard"},
		"like one with a dot":  {paging.Operator{Namespace: "payments", Name: "axb"}, toFleet},
		"deleted, of a team":   {paging.Operator{Namespace: "payments", Name: "gone"}, toFleet},
		"deleted":              {paging.Operator{Namespace: "tools", Name: "gone"}, toFleet},
		"of another namespace": {paging.Operator{Namespace: "tools", Name: "ledger"}, toFleet},
	} {
		got := routed(t, alert(c.op, "BellwetherReleaseSLOBurn", "page", "release"), policies...)
		if diff := cmp.Diff([]string{c.want}, got); diff != "" {
			t.Errorf("an operator %s (-want +got):\n%s", name, diff)
		}
	}
	cluster := routed(t, map[string]string{"alertname": "BellwetherClusterFailing", "severity": "page",
		"scope": "cluster", "cluster": "prod-eu"}, policies...)
	if !slices.Equal(cluster, []string{toFleet}) {
		t.Errorf("an alert about a cluster reaches %v, want the fleet's pages", cluster)
	}
}

// TestObjectsTakeOwnAlertsOnly checks that alerts of other rules reach no policy, with any labels.
func TestObjectsTakeOwnAlertsOnly(t *testing.T) {
	policies := []paging.Policy{fleet(echo, critical), tenant("payments", others, ledger)}
	for name, labels := range map[string]map[string]string{
		"with the labels that a PodMonitor adds": alert(ledger, "LedgerQueueInfo", "info", "", "pod", "ledger-0"),
		"of a known operator of the fleet":       alert(echo, "Whatever", "page", "release"),
		"of nobody's":                            {"alertname": "DiskFull", "severity": "page"},
	} {
		if got := routed(t, labels, policies...); len(got) != 0 {
			t.Errorf("%s: goes to %v", name, got)
		}
	}
}
