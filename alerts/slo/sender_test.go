// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

var prodEU = Sender{Cluster: "prod-eu", URL: "https://metrics.hub.example.com/api/v1/write",
	Token: "/etc/prometheus/bellwether/token"}

// TestSenderKeepsWhatTravels plays the relabelling of both forms of the configuration: of a cluster it keeps all that
// travels and nothing else, and of another cluster nothing.
func TestSenderKeepsWhatTravels(t *testing.T) {
	text, err := prodEU.Configuration()
	if err != nil {
		t.Fatal(err)
	}
	var c senderConfig
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	spec, err := prodEU.PrometheusSpec()
	if err != nil {
		t.Fatal(err)
	}
	file, object := c.RemoteWrite[0].Relabel[0], spec.RemoteWrite[0].WriteRelabelConfigs[0]
	if file.Action != "keep" || object.Action != "keep" || file.Regex != object.Regex ||
		strings.Join(file.Source, " ") != "cluster __name__" || len(object.SourceLabels) != 2 {
		t.Fatalf("relabelling: %+v, %+v", file, object)
	}
	keep := regexp.MustCompile("^(?s:" + file.Regex + ")$") // as Prometheus anchors it
	for _, name := range series.Travelling() {
		if !keep.MatchString("prod-eu;" + name) {
			t.Errorf("%s is not sent", name)
		}
		for _, other := range []string{"prod-eu2;" + name, "prod-us;" + name, ";" + name, "prod-eu;" + name + "x",
			"prod-eu;x" + name} {
			if keep.MatchString(other) {
				t.Errorf("%s is sent", other)
			}
		}
	}
	for _, s := range append(series.Exported(), series.Recorded()...) {
		want := false
		for _, name := range series.Travelling() {
			want = want || name == s.Name
		}
		if got := keep.MatchString("prod-eu;" + s.Name); got != want {
			t.Errorf("%s is sent: %v, want %v", s.Name, got, want)
		}
	}
	drop := c.RemoteWrite[0].Relabel[1]
	if drop.Action != "labeldrop" || drop.Regex != "prometheus|prometheus_replica" {
		t.Errorf("replicas are not joined: %+v", drop)
	}
	if c.Global.ExternalLabels["cluster"] != "prod-eu" || spec.ExternalLabels["cluster"] != "prod-eu" {
		t.Errorf("external labels: %v, %v", c.Global.ExternalLabels, spec.ExternalLabels)
	}
}

func TestSenderIsChecked(t *testing.T) {
	for name, s := range map[string]Sender{
		"no cluster":        {URL: prodEU.URL},
		"a regexp":          {Cluster: ".*", URL: prodEU.URL},
		"two lines":         {Cluster: "a\nb", URL: prodEU.URL},
		"no URL":            {Cluster: "prod-eu"},
		"no host":           {Cluster: "prod-eu", URL: "/api/v1/write"},
		"another scheme":    {Cluster: "prod-eu", URL: "ftp://metrics.example.com/"},
		"password in a URL": {Cluster: "prod-eu", URL: "https://me:secret@metrics.example.com/"},
	} {
		if _, err := s.Configuration(); !errors.Is(err, ErrSender) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.PrometheusSpec(); !errors.Is(err, ErrSender) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGuideHasTheConfiguration compares the guide with the generated configuration.
func TestGuideHasTheConfiguration(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "telemetry.md"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := prodEU.Configuration()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), "```yaml\n"+string(text)+"```\n") {
		t.Errorf("docs/guides/telemetry.md does not have this:\n%s", text)
	}
}
