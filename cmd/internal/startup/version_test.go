// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/internal/version"
)

// TestOneVersion verifies that the metric and the command report the version of package version.
func TestOneVersion(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		if err := AddBuildInfo(registry, "hub"); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 1 {
		t.Fatalf("got %v, error %v; want one series", families, err)
	}
	got := map[string]string{}
	for _, l := range families[0].GetMetric()[0].GetLabel() {
		got[l.GetName()] = l.GetValue()
	}
	want := version.Get()
	if families[0].GetName() != "bellwether_build_info" || got["version"] != want.Version ||
		got["goversion"] != want.Go || got["component"] != "hub" {
		t.Errorf("got %s%v, want %+v", families[0].GetName(), got, want)
	}

	var out bytes.Buffer
	root := &cobra.Command{Use: "hub"}
	root.AddCommand(VersionCommand())
	root.SetOut(&out)
	root.SetArgs([]string{"version", "--json"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	var printed version.Info
	if err := json.Unmarshal(out.Bytes(), &printed); err != nil || printed.Version != want.Version {
		t.Errorf("version --json printed %s, error %v", &out, err)
	}
}
