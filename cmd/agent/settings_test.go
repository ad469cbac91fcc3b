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

// TestVariablesSetFlags: what differs by cluster, an agent that OLM installs gets in variables.
func TestVariablesSetFlags(t *testing.T) {
	variables := map[string]string{"BELLWETHER_AGENT_VIEW_HOST": "10.0.0.1", "BELLWETHER_AGENT_VIEW_PORTS": "1-2",
		"BELLWETHER_AGENT_BACKUP_STORE": "s3://a,s3://b"}
	lookup := func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	flags := command().Flags()
	if err := flags.Parse([]string{"--view-ports=3-4"}); err != nil {
		t.Fatal(err)
	}
	if err := fromEnvironment(flags, lookup); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"view-host": "10.0.0.1", "view-ports": "3-4",
		"backup-store": "[s3://a,s3://b]"} {
		if got := flags.Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
	variables["BELLWETHER_AGENT_LEASE_DURATION"] = "soon"
	if err := fromEnvironment(flags, lookup); err == nil {
		t.Error("a value that is none is accepted")
	}
}

// TestKubeconfigNamesTheCluster: fleet join says in the kubeconfig which cluster it is for.
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
		err := f.nameCluster()
		if f.cluster != want || errors.Is(err, errNoCluster) != (want == "") {
			t.Errorf("namespace %q: cluster %q, error %v, want %q", namespace, f.cluster, err, want)
		}
		given := flags{hubKubeconfig: file, cluster: "other"}
		if err := given.nameCluster(); err != nil || given.cluster != "other" {
			t.Errorf("--cluster other became %q, error %v", given.cluster, err)
		}
	}
}
