// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestVariablesSetFlags verifies that variables set the flags of an agent that OLM installs,
// because these settings differ between clusters.
func TestVariablesSetFlags(t *testing.T) {
	variables := map[string]string{"BELLWETHER_AGENT_VIEW_HOST": "10.0.0.1", "BELLWETHER_AGENT_VIEW_PORTS": "1-2",
		"BELLWETHER_AGENT_BACKUP_STORE": "s3://a,s3://b"}
	lookup := func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	flags := newCommand().Flags()
	if err := flags.Parse([]string{"--view-ports=3-4"}); err != nil {
		t.Fatal(err)
	}
	if err := setFromEnvironment(flags, lookup); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"view-host": "10.0.0.1", "view-ports": "3-4",
		"backup-store": "[s3://a,s3://b]"} {
		if got := flags.Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
	variables["BELLWETHER_AGENT_LEASE_DURATION"] = "soon"
	if err := setFromEnvironment(flags, lookup); err == nil {
		t.Error("a value that is none is accepted")
	}
}

// TestKubeconfigNamesTheCluster verifies that the agent gets its cluster's name from the
// kubeconfig that fleet join writes.
func TestKubeconfigNamesTheCluster(t *testing.T) {
	for namespace, want := range map[string]string{"bellwether-prod-eu": "prod-eu", "bellwether-": "", "default": "",
		"": ""} {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: hub, contexts: [{name: hub, context: "+
			"{cluster: hub, user: agent, namespace: %q}}]}", namespace)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f := flags{hubKubeconfig: file}
		err := f.completeCluster()
		if f.cluster != want || errors.Is(err, errNoCluster) != (want == "") {
			t.Errorf("namespace %q: cluster %q, error %v, want %q", namespace, f.cluster, err, want)
		}
		given := flags{hubKubeconfig: file, cluster: "other"}
		if err := given.completeCluster(); err != nil || given.cluster != "other" {
			t.Errorf("--cluster other became %q, error %v", given.cluster, err)
		}
	}
}
