// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/catalog"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// graphDir is a catalog of the package p in a folder.
func graphDir(t *testing.T, graph string) string {
	t.Helper()
	return write(t, "catalog.json", catalogtest.Graph("p", graph), true)
}

// write puts a text into a file of a new folder and returns its path, or the folder's.
func write(t *testing.T, name, text string, folder bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatalf("write %s: %v", name, err)
	}
	if folder {
		return filepath.Dir(path)
	}
	return path
}

// runs is a cluster on which a bundle of a package is installed.
func runs(cluster, pkg, version string) *v1alpha1.OperatorInstall {
	return &v1alpha1.OperatorInstall{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bellwether-" + cluster, Name: "default." + pkg},
		Spec: v1alpha1.OperatorInstallSpec{Cluster: cluster,
			Admission: &v1alpha1.Admission{Release: v1alpha1.Release{Package: pkg}}},
		Status: v1alpha1.OperatorInstallStatus{Installed: &v1alpha1.InstalledVersion{Bundle: pkg + ".v" + version,
			Version: version}},
	}
}

func TestCatalogGraph(t *testing.T) {
	h := clitest.NewHub(runs("a", "p", "1.0.0"), runs("b", "p", "1.0.0"), runs("c", "p", "1.1.0"),
		runs("d", "other", "1.0.0"))
	dir := graphDir(t, "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0")
	file := write(t, "installed.yaml", "p.v1.1.0: 7\n1.0.0: 2\n0.9.0: 1\n", false)
	picture := filepath.Join(t.TempDir(), "p.svg")
	for name, test := range map[string]struct {
		args []string
		want clitest.Result
	}{
		"text": {
			args: []string{dir, "p"},
			want: clitest.Result{Out: "p: 3 versions in channel stable\n\n┌ stable\n◉  1.2.0                  " +
				" [head of stable]\n" +
				"●  1.1.0  → 1.2.0\n●  1.0.0  → 1.1.0, 2 hops\n\n◉ head   ● offered\n"},
		},
		"with the hub's clusters": {
			args: []string{dir, "p", "--installed", "hub"},
			want: clitest.Result{Out: "p: 3 versions in channel stable, 3 clusters\n\n┌ stable\n◉  1.2.0      " +
				"                         [head of stable]\n" +
				"●  1.1.0   1 cluster  → 1.2.0\n●  1.0.0  2 clusters  → 1.1.0, 2 hops\n\n◉ head   ● offered\n"},
		},
		"with a file's clusters": {
			args: []string{dir, "p", "--installed", file},
			want: clitest.Result{Out: "p: 3 versions in channel stable, 10 clusters, 1 cluster without an upgrade " +
				"path\n\n┌ " +
				"stable\n" +
				"◉  1.2.0                                [head of stable]\n●  1.1.0   7 clusters  → 1.2.0\n●  1.0.0  " +
				" 2 clusters  → 1.1.0, 2 hops\n" +
				"   0.9.0    1 cluster                   [clusters run it, and no channel has an upgrade from it]  " +
				"[not in the catalog]\n\n◉ head   ● offered\n"},
		},
		"to a file": {args: []string{dir, "p", "--file", picture},
			want: clitest.Result{Err: "Wrote " + picture + ".\n"}},
		"no package": {
			args: []string{dir, "q"},
			want: clitest.Result{Code: exit.Error, Err: "Error: no such package \"q\": the catalog has p\n"},
		},
		"no channel": {
			args: []string{dir, "p", "--channel", "fast"},
			want: clitest.Result{Code: exit.Error,
				Err: "Error: no such channel \"fast\" in package \"p\": it offers stable (1.2.0)\n"},
		},
		"an unknown ending": {
			args: []string{dir, "p", "--file", "p.gif"},
			want: clitest.Result{Code: exit.Error,
				Err: "Error: the ending of p.gif is not a known format\nHint:  use a name that ends in .svg, " +
					".mmd, .dot or .txt, or set -o\n"},
		},
		"an unknown format": {
			args: []string{dir, "p", "-o", "gif"},
			want: clitest.Result{Code: exit.Error,
				Err: "Error: invalid value \"gif\" of -o\nHint:  use one of text, svg, mermaid, dot\n"},
		},
		"a negative number": {
			args: []string{dir, "p", "--installed", write(t, "i.yaml", "p.v1.0.0: -1", false)},
			want: clitest.Result{Code: exit.Error,
				Err: "Error: the number of clusters of p.v1.0.0 is -1\nHint:  use 0 or a positive number\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.Run(t, append([]string{"catalog", "graph"}, test.args...)...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
	for format, want := range map[string]string{"svg": "<svg ", "mermaid": "flowchart BT", "dot": "digraph "} {
		if got := h.Run(t, "catalog", "graph", dir, "p", "-o", format); !strings.Contains(got.Out, want) {
			t.Errorf("-o %s gave %q and %s", format, got.Out, got.Err)
		}
	}
	if text, err := os.ReadFile(picture); err != nil || !strings.HasPrefix(string(text), "<svg ") {
		t.Errorf("the file holds %q (%v)", text, err)
	}
	if got := h.Run(t, "__complete", "catalog", "graph", dir, ""); !strings.HasPrefix(got.Out, "p\n") {
		t.Errorf("it completes to %q", got.Out)
	}
}

// TestCatalogGraphTellsResolversApart deprecates a head: OLM v1 stays
// on the version before it, and v0 upgrades to it.
func TestCatalogGraphTellsResolversApart(t *testing.T) {
	graph := catalogtest.Graph("p", "1.0.0\n1.1.0 replaces 1.0.0") + `{"schema":"olm.deprecations","package":"p",` +
		`"entries":[{"reference":{"schema":"olm.bundle","name":"p.v1.1.0"},"message":"slow"}]}`
	got := clitest.NewHub().Run(t, "catalog", "graph", write(t, "catalog.json", graph, true), "p")
	if got.Code != exit.OK || !strings.Contains(got.Out,
		"[OLM v0 and v1 differ in channel stable: OLM v1 stays, because 1.1.0 is deprecated") {
		t.Errorf("%+v", got)
	}
}

func TestCatalogDiff(t *testing.T) {
	h := clitest.NewHub(runs("a", "p", "1.0.0"), runs("b", "p", "1.1.0"))
	before, after := graphDir(t, "1.0.0\n1.1.0 replaces 1.0.0"), graphDir(t, "1.1.0\n1.2.0 replaces 1.1.0")
	for name, test := range map[string]struct {
		args []string
		want clitest.Result
	}{
		"the same": {args: []string{before, before}, want: clitest.Result{Err: "The catalogs do not differ.\n"}},
		"another head": {
			args: []string{before, after, "--installed", "hub"},
			want: clitest.Result{Code: catalog.ExitDifferent, Out: "p\n  channel stable: head 1.1.0 → 1.2.0\n\n" +
				"VERSION   CLUSTERS   CHANNEL   BEFORE   AFTER   WHAT\n" +
				"1.2.0                stable    -        head    added; joined channel\n" +
				"1.1.0     1          stable    head     1.2.0   next hop\n" +
				"1.0.0     1          stable    1.1.0    -       removed; no upgrade path in any channel; stranded, " +
				"left channel\n" +
				"\nClusters without an upgrade path: 1\n"},
		},
		"as Markdown": {
			args: []string{before, after, "p", "-o", "markdown"},
			want: clitest.Result{Code: catalog.ExitDifferent, Out: "### p\n\n- channel stable: head 1.1.0 → 1.2.0\n\n" +
				"| version | clusters | channel | before | after | what |\n|---|---:|---|---|---|---|\n" +
				"| 1.2.0 |  | stable | - | head | added; joined channel |\n| 1.1.0 |  | stable | head | 1.2.0 | next " +
				"hop |\n" +
				"| 1.0.0 |  | stable | 1.1.0 | - | **removed; no upgrade path in any channel; stranded, left " +
				"channel** |\n"},
		},
		"no such package": {
			args: []string{before, after, "q"},
			want: clitest.Result{Code: catalog.ExitTrouble,
				Err: "Error: package \"q\" is in neither catalog\nHint:  see `bellwether catalog show`\n"},
		},
		"one catalog": {
			args: []string{before},
			want: clitest.Result{Code: catalog.ExitTrouble,
				Err: "Error: missing argument: two catalogs (folders or references), and optionally a " +
					"package\nHint:  usage: bellwether catalog diff OLD NEW [PACKAGE] [flags]\n"},
		},
		"an unknown flag": {
			args: []string{before, after, "--wide"},
			want: clitest.Result{Code: catalog.ExitTrouble,
				Err: "Error: unknown flag: --wide\nHint:  see `bellwether catalog diff --help`\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.Run(t, append([]string{"catalog", "diff"}, test.args...)...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
	if got := h.Run(t, "catalog", "diff", before, after, "-o", "json"); got.Code != catalog.ExitDifferent ||
		!strings.Contains(got.Out, `"stuck": true`) {
		t.Errorf("as JSON: %+v", got)
	}
}
