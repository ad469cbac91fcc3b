// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
	"github.com/bellwether-dev/bellwether/testbed/alertmanager"
	"github.com/bellwether-dev/bellwether/testbed/build"
)

// Receivers of the recommended configuration of Alertmanager.
const (
	pages     = "pages"
	tickets   = "tickets"
	heartbeat = "heartbeat"
	others    = "others"
)

// recommended is the configuration of Alertmanager in the guide.
func recommended(t *testing.T) string {
	t.Helper()
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "guides", "slos.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```yaml\n(# alertmanager.yaml\n.*?)```\n").FindAllStringSubmatch(string(text), -1)
	if len(found) != 1 {
		t.Fatalf("the guide has %d configurations of Alertmanager, want 1", len(found))
	}
	return found[0][1]
}

// compressedConfig divides the durations of a configuration of Alertmanager, and sends everything to one server.
func compressedConfig(t *testing.T, config string, factor int, url string) []byte {
	t.Helper()
	config, err := CompressConfig(config, factor)
	if err != nil {
		t.Fatal(err)
	}
	// The names of the hosts become paths.
	return []byte(regexp.MustCompile(`https://([a-z]+)\.example\.com/`).ReplaceAllString(config, url+"/$1"))
}

// TestRecommendedRouting asks amtool where each alert goes.
func TestRecommendedRouting(t *testing.T) {
	amtool, config := binary(t, build.Amtool), []byte(recommended(t))
	if err := alertmanager.Check(t.Context(), amtool, config); err != nil {
		t.Fatal(err)
	}
	rules, err := slo.Build(slo.Set{Default: slo.DefaultProfile()})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{series.Page: pages, series.Ticket: tickets, series.Heartbeat: heartbeat}
	seen := map[string]bool{}
	for _, group := range rules.All() {
		for _, rule := range group.Rules {
			severity := rule.Labels[series.Severity]
			if rule.Alert == "" || seen[rule.Alert+severity] {
				continue
			}
			seen[rule.Alert+severity] = true
			receiver, err := alertmanager.Receiver(t.Context(), amtool, config, "alertname="+rule.Alert,
				"severity="+severity)
			if err != nil || receiver != want[severity] {
				t.Errorf("%s of severity %q reaches %q (%v), want %q", rule.Alert, severity, receiver, err,
					want[severity])
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("there are only %d alerts", len(seen))
	}
	receiver, err := alertmanager.Receiver(t.Context(), amtool, config, "alertname=Other", "severity=page")
	if err != nil || receiver != others {
		t.Errorf("an alert of somebody else reaches %q (%v)", receiver, err)
	}
}

// TestCompressedConfiguration has an accelerated configuration that Alertmanager takes.
func TestCompressedConfiguration(t *testing.T) {
	config := string(compressedConfig(t, recommended(t), 60, "http://127.0.0.1:1"))
	for _, part := range []string{"group_wait: 500ms", "group_wait: 0s", "group_interval: 5s", "repeat_interval: 12m",
		"repeat_interval: 750ms", "url: http://127.0.0.1:1/pager"} {
		if !strings.Contains(config, part) {
			t.Errorf("%q is not in\n%s", part, config)
		}
	}
	if err := alertmanager.Check(t.Context(), binary(t, build.Amtool), []byte(config)); err != nil {
		t.Error(fmt.Errorf("%w\n%s", err, config))
	}
}
