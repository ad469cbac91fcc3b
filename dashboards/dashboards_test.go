// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/dashboards"
)

// TestFilesAreCurrent compares the generated files with the code: `go generate` writes both folders.
func TestFilesAreCurrent(t *testing.T) {
	for dir, compact := range map[string]bool{"out": false, "../charts/bellwether/files/dashboards": true} {
		want := map[string]any{}
		for _, d := range dashboards.All() {
			want[dashboards.FileName(d)] = roundTrip(t, d)
		}
		got := map[string]any{}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var content any
			if err := json.Unmarshal(text, &content); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			got[filepath.Base(file)] = content
			if lines := bytes.Count(text, []byte("\n")); compact != (lines == 1) {
				t.Errorf("%s has %d lines", file, lines)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("files in %s; run go generate ./dashboards (-want +got):\n%.3000s", dir, diff)
		}
	}
}

// TestEveryPhaseIsShown: the dashboard of a rollout has a word for each phase of the API.
func TestEveryPhaseIsShown(t *testing.T) {
	text, err := os.ReadFile("../charts/bellwether/files/crds/bellwether.dev_operatorrollouts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	status := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties
	shown, err := os.ReadFile("out/bellwether-rollout.json")
	if err != nil {
		t.Fatal(err)
	}
	for metric, phase := range map[string]apiextensionsv1.JSONSchemaProps{
		series.RolloutPhase:     status["phase"],
		series.RolloutWavePhase: status["waves"].Items.Schema.Properties["phase"],
	} {
		if len(phase.Enum) == 0 {
			t.Errorf("no phases of %s in the definition", metric)
		}
		for _, word := range phase.Enum {
			var name string
			if err := json.Unmarshal(word.Raw, &name); err != nil {
				t.Fatal(err)
			}
			query := fmt.Sprintf(`%s\{[^}]*phase=\\"%s\\"`, metric, name)
			if !regexp.MustCompile(query).Match(shown) {
				t.Errorf("no query for phase %s in %s", name, metric)
			}
		}
	}
}

// TestStoppedRolloutsAreMarked: the annotation shows every phase in which a rollout is stopped, but
// neither succeeded nor superseded.
func TestStoppedRolloutsAreMarked(t *testing.T) {
	shown, err := os.ReadFile("out/bellwether-rollout.json")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`bellwether_rollout_phase\{[^}]*phase=~\\"([^"]*)\\"`).FindSubmatch(shown)
	if found == nil {
		t.Fatal("no annotation with phases of the rollout")
	}
	got := strings.Split(string(found[1]), "|")
	want := []string{"Paused", "Halted", "Aborted", "RolledBack"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
}

func roundTrip(t *testing.T, d dashboards.Dashboard) any {
	t.Helper()
	text, err := dashboards.JSON(d)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestGrafanasSchema reads the JSON back with Grafana's own schema, strictly: a
// field that Grafana does not have, or a required one that is missing, fails.
func TestGrafanasSchema(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	for _, d := range dashboards.All() {
		model, ok := roundTrip(t, d).(map[string]any)
		if !ok {
			t.Fatalf("%s is no object", *d.Uid)
		}
		delete(model, "__requires") // Grafana adds and removes it itself
		text, err := json.Marshal(model)
		if err != nil {
			t.Fatal(err)
		}
		var read dashboards.Dashboard
		err = read.UnmarshalJSONStrict(text)
		var all cog.BuildErrors
		if errors.As(err, &all) {
			for _, e := range all {
				t.Errorf("%s: %v", *d.Uid, e)
			}
		} else if err != nil {
			t.Errorf("%s: %v", *d.Uid, err)
		}
		if err := read.Validate(); err != nil {
			t.Errorf("%s: %v", *d.Uid, err)
		}
	}
}

// TestRequirements finds the oldest Grafana in every file and in the guide, and every
// kind of panel in the requirements of a dashboard.
func TestRequirements(t *testing.T) {
	for _, d := range dashboards.All() {
		text, err := dashboards.JSON(d)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Requires []dashboards.Requirement `json:"__requires"`
			Panels   []struct {
				Type string `json:"type"`
			} `json:"panels"`
		}
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		needs := map[string]string{}
		for _, r := range file.Requires {
			needs[r.Type+" "+r.ID] = r.Version
		}
		if needs["grafana grafana"] != dashboards.GrafanaVersion {
			t.Errorf("%s needs %v, want Grafana %s", *d.Uid, needs, dashboards.GrafanaVersion)
		}
		for _, p := range file.Panels {
			if _, ok := needs["panel "+p.Type]; !ok && p.Type != "row" {
				t.Errorf("%s does not say that it needs the panel %s", *d.Uid, p.Type)
			}
		}
	}
	guide, err := os.ReadFile("../docs/guides/dashboards.md")
	if err != nil {
		t.Fatal(err)
	}
	if version := strings.TrimSuffix(dashboards.GrafanaVersion, ".0"); !bytes.Contains(guide,
		[]byte("need Grafana "+version+" or later")) {
		t.Errorf("the guide does not say that dashboards need Grafana %s", version)
	}
}

// TestNothingIsLeftOpen finds options that the SDK leaves empty and its schema accepts, such as the mode of a tooltip.
// Grafana draws such panels incorrectly.
func TestNothingIsLeftOpen(t *testing.T) {
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, inner := range v {
				walk(path+"."+key, inner)
			}
		case []any:
			for _, inner := range v {
				walk(path+"[]", inner)
			}
		case nil, string:
			// The first threshold has no bound. The other keys are texts and not options.
			if (v == nil || v == "") &&
				!regexp.MustCompile(`steps\[\]\.value$|\.legendFormat$|\.(icon|tooltip)$|__requires\[\]\.version$`).
					MatchString(path) {
				t.Errorf("%s is %#v", path, v)
			}
		}
	}
	for _, d := range dashboards.All() {
		walk(*d.Uid, roundTrip(t, d))
	}
}
