// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/dashboards"
)

const dashboardList = `UID                    TITLE                               PANELS   VARIABLES
bellwether-fleet       Bellwether / Fleet                  14       datasource, cluster, operator_namespace, operator
bellwether-rollout     Bellwether / Rollout                13       datasource, operator_namespace, operator, cluster
bellwether-operator    Bellwether / Operator SLO           30       datasource, operator_namespace, operator, cluster,
                                                                    sli
bellwether-cluster     Bellwether / Cluster                15       datasource, cluster, operator_namespace, operator
bellwether-internals   Bellwether / Controller internals   15       datasource, job, cluster, operator_namespace,
                                                                    operator
bellwether-catalog     Bellwether / Catalog                9        datasource, catalog, cluster, operator_namespace,
                                                                    operator
bellwether-paging      Bellwether / Paging health          19       datasource, cluster, operator_namespace, operator
`

func TestDashboardsList(t *testing.T) {
	h := clitest.NewHub()
	if diff := cmp.Diff(clitest.Result{Out: dashboardList}, h.Run(t, "dashboards", "list")); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	var list []struct{ Description string }
	if err := json.Unmarshal([]byte(h.Run(t, "dashboards", "ls", "-o", "json").Out), &list); err != nil ||
		len(list) != len(dashboards.All()) || list[0].Description == "" {
		t.Errorf("JSON: %v, %+v", err, list)
	}
}

// TestDashboardsWrite reads the written files, and checks that every format has the same dashboard.
func TestDashboardsWrite(t *testing.T) {
	h := clitest.NewHub()
	fleet := dashboards.All()[0]
	want, err := dashboards.JSON(fleet)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		file string
		json func(t *testing.T, text []byte) string
	}{
		"files": {nil, "bellwether-fleet.json", func(_ *testing.T, text []byte) string { return string(text) }},
		"ConfigMaps": {[]string{"-o", "configmap", "--dashboards-namespace", "obs"}, "bellwether-fleet.yaml",
			func(t *testing.T, text []byte) string {
				var c corev1.ConfigMap
				if err := yaml.UnmarshalStrict(text, &c); err != nil {
					t.Fatal(err)
				}
				if c.Namespace != "obs" || c.Name != "bellwether-fleet-dashboard" ||
					c.Labels["grafana_dashboard"] != "1" ||
					c.Kind != "ConfigMap" {
					t.Errorf("metadata: %+v", c.ObjectMeta)
				}
				return c.Data["bellwether-fleet.json"]
			}},
		"objects of grafana-operator": {[]string{"-o", "grafanadashboard", "--grafana", "team=sre"},
			"bellwether-fleet.yaml", func(t *testing.T, text []byte) string {
				var d dashboards.GrafanaDashboard
				if err := yaml.UnmarshalStrict(text, &d); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(map[string]string{"team": "sre"},
					d.Spec.InstanceSelector.MatchLabels); diff != "" ||
					d.Metadata.Namespace != "monitoring" || d.Kind != "GrafanaDashboard" {
					t.Errorf("%+v, Grafanas (-want +got):\n%s", d.Metadata, diff)
				}
				return d.Spec.JSON
			}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new", "folder")
			got := h.Run(t, append([]string{"dashboards", "write", dir}, test.args...)...)
			if diff := cmp.Diff(clitest.Result{Err: "Wrote 7 dashboards to " + dir + ".\n"}, got); diff != "" {
				t.Fatalf("result (-want +got):\n%s", diff)
			}
			files, err := os.ReadDir(dir)
			if err != nil || len(files) != 7 {
				t.Fatalf("%d files, %v", len(files), err)
			}
			text, err := os.ReadFile(filepath.Join(dir, test.file))
			if err != nil {
				t.Fatal(err)
			}
			if got := test.json(t, text); !bytes.Equal([]byte(got), want) {
				t.Errorf("dashboard (-want +got):\n%.2000s", cmp.Diff(string(want), got))
			}
		})
	}
}

func TestDashboardsErrorsSayWhatToDo(t *testing.T) {
	h := clitest.NewHub()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no folder": {[]string{"write"},
			"Error: missing argument: the folder\nHint:  usage: bellwether dashboards write FOLDER [UID...] [flags]\n"},
		"unknown dashboard": {[]string{"write", "x", "fleet"},
			"Error: unknown dashboard fleet\nHint:  run `bellwether dashboards list` to see all dashboards\n"},
		"unknown format": {[]string{"write", "x", "-o", "yaml"},
			"Error: dashboards cannot be written as yaml\nHint:  use one of json, configmap, grafanadashboard\n"},
		"a file": {[]string{"write", file}, "Error: make folder: mkdir " + file + ": not a directory\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if got := h.Run(t, append([]string{"dashboards"}, test.args...)...); got.Code != exit.Error ||
				got.Err != test.want {
				t.Errorf("exit code %d and\n%s\nwant\n%s", got.Code, got.Err, test.want)
			}
			if left, _ := filepath.Glob("*"); len(left) > 0 {
				t.Errorf("left behind: %s", strings.Join(left, ", "))
			}
		})
	}
}
