// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lintrules

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dials matches Go code that opens network connections.
var dials = regexp.MustCompile(`\bhttp\.(Client\{|Transport\{|DefaultClient|DefaultTransport|Get\(|Post(Form)?\(|Head\()|` +
	`\bnew\(http\.|\bnet\.(Dialer\b|Dial\w*\()|\btls\.Dial|\bgrpc\.(Dial|NewClient)|\brest\.(TransportFor|HTTPClientFor)\(|\bwebsocket\.`)

// guarded are the files of hub and agent that open network connections, with the check that protects each. All other
// files use package outbound or a Kubernetes client.
var guarded = map[string]string{
	"internal/outbound/client.go":                "the guard itself",
	"catalogs/oci/remote.go":                     "asks outbound at each connection, also after redirects",
	"controllers/probe/run/health.go":            "to an address that was resolved and asked about",
	"controllers/probe/run/proxy.go":             "to an address that was resolved and asked about",
	"controllers/agent/credentials/authority.go": "the hub's own API server, without redirects",
	"controllers/agent/heartbeat/apiserver.go":   "the cluster's own API server",
	"release/image/chart.go":                     "of a release, by a person",
	"cmd/bellwether/internal/bundle/try.go":      "of the command line, by a person",
	"cmd/bellwether/internal/backup/restore.go":  "of the command line, by a person",
	"cmd/bellwether/internal/query/server.go":    "of the command line, by a person",
}

// TestEveryDialIsGuarded fails for a file that opens network connections and is not in guarded. A new file must say
// what prevents connections to the metadata services of clouds.
func TestEveryDialIsGuarded(t *testing.T) {
	found := map[string]bool{}
	walkSources(t, os.DirFS(root(t)), func(file string, text []byte) {
		ofProduct := !strings.HasPrefix(file, "testbed/") && !strings.HasPrefix(file, "internal/tools/") &&
			strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go")
		if ofProduct && dials.Match(code(text)) {
			found[file] = true
		}
	})
	want := map[string]bool{}
	for file := range guarded {
		want[file] = true
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("files that connect to others (-want +got):\n%s", diff)
	}
}

// code returns the text without lines that are comments.
func code(text []byte) []byte {
	return regexp.MustCompile(`(?m)^\s*//.*$`).ReplaceAll(text, nil)
}
