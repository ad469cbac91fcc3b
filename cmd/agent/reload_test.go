// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

const hubKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: hub, cluster: {server: "https://hub.example.com", certificate-authority: ca.crt}}]
users: [{name: agent, user: {token: first}}]
contexts: [{name: hub, context: {cluster: hub, user: agent}}]
current-context: hub
`

func TestKubeconfigDigest(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("kubeconfig", hubKubeconfig)
	write("ca.crt", "authority")
	w, err := newFileWatcher(path, "")
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name             string
		change           func()
		changed, useless bool
	}{
		{"the same", func() { write("kubeconfig", hubKubeconfig) }, false, false},
		{"half written", func() { write("kubeconfig", hubKubeconfig[:60]) }, false, true},
		{"gone", func() { _ = os.Remove(path) }, false, true},
		{"another token", func() { write("kubeconfig", hubKubeconfig+"# renewed\n") }, true, false},
		{"the same again", func() { write("kubeconfig", hubKubeconfig) }, false, false},
		{"another authority", func() { write("ca.crt", "another") }, true, false},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			step.change()
			now, err := w.computeDigest()
			if (err != nil) != step.useless || err == nil && (now != w.startDigest) != step.changed {
				t.Errorf("changed %t, error %v; want changed %t, an error %t", now != w.startDigest, err, step.changed,
					step.useless)
			}
		})
	}
}
