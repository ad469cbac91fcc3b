// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/alerts/series"
)

// Endpoints of one probe are run on their own, come and go, and have a series each.
func TestTargetsOfOneProbe(t *testing.T) {
	server := httptest.NewServer(hostileHandler())
	t.Cleanup(server.Close)
	e := newTestEngine(Options{})
	registry := prometheus.NewPedanticRegistry()
	must(t, registry.Register(e))
	startEngine(t, e)
	p := probeOf("", 20*time.Millisecond)
	p.Resolve = func(_ context.Context, target string) (probes.Target, *probes.Failure) {
		if target == "dead" {
			return probes.Target{}, &probes.Failure{Reason: "TargetNotFound", Message: target}
		}
		return probes.Target{URL: server.URL + "/ok"}, nil
	}
	shows := func(lines ...string) {
		t.Helper()
		want := strings.Builder{}
		if len(lines) > 0 {
			want.WriteString("# HELP probe_success Whether the probe succeeded.\n# TYPE probe_success gauge\n")
		}
		for _, line := range lines {
			target, value, _ := strings.Cut(line, " ")
			want.WriteString(`probe_success{cluster="prod-1",operator="echo",operator_namespace="fleet",probe="web",` +
				`target="` + target + `",vantage="cluster"} ` + value + "\n")
		}
		err := testutil.GatherAndCompare(registry, strings.NewReader(want.String()), series.ProbeSuccess)
		if err != nil {
			t.Error(err)
		}
	}
	haveRun := func(names ...string) {
		t.Helper()
		eventually(t, strings.Join(names, " and ")+" have run", func() bool {
			verdicts := e.Verdicts(key("a"))
			for _, name := range names {
				if verdicts[name].At.IsZero() {
					return false
				}
			}
			return len(verdicts) == len(names)
		})
	}
	p.Targets = []string{"one", "dead"}
	must(t, e.Set(key("a"), p))
	haveRun("one", "dead")
	shows("dead 0", "one 1")
	first := e.entries[key("a")].targets["one"]

	p.Targets = []string{"one", "two"}
	must(t, e.Set(key("a"), p))
	haveRun("one", "two")
	shows("one 1", "two 1")
	if e.entries[key("a")].targets["one"] != first {
		t.Error("an endpoint that stays has lost its state")
	}

	p.Targets = nil
	must(t, e.Set(key("a"), p))
	shows()
	if err := e.Set(key("b"), p); !errors.Is(err, ErrDuplicate) {
		t.Errorf("another probe of the same name, while nothing is selected: %v", err)
	}
	e.Remove(key("a"))
	if len(e.entries) != 0 || len(e.owners) != 0 {
		t.Errorf("after the removal there are %d probes and %d owners", len(e.entries), len(e.owners))
	}
}
