// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/bundletest"
)

// everything is a bundle with all signals. The tests remove parts of it.
const everything = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: db.v2.0.0
  annotations:
    capabilities: Auto Pilot
    alm-examples: '[{"kind": "Database"}, {"kind": "DatabaseBackup"}]'
spec:
  version: 2.0.0
  displayName: Database
  description: Keeps databases.
  icon: [{base64data: aWNvbg==, mediatype: image/png}]
  replaces: db.v1.0.0
  customresourcedefinitions:
    owned:
    - {name: databases.example.com, kind: Database, version: v1}
    - {name: databasebackups.example.com, kind: DatabaseBackup, version: v1}
  install:
    strategy: deployment
    spec:
      deployments:
      - name: db
        spec:
          selector: {}
          template:
            spec:
              containers:
              - name: manager
                image: example.com/db@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
                readinessProbe: {httpGet: {path: /readyz, port: 8081}}
                resources: {requests: {cpu: 10m, memory: 64Mi}}
                ports: [{name: metrics, containerPort: 8080}]
      clusterPermissions:
      - serviceAccountName: db
        rules:
        - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
        - {apiGroups: [example.com], resources: [databases/finalizers], verbs: [update]}
        - {apiGroups: [policy], resources: [poddisruptionbudgets], verbs: [create]}
        - {apiGroups: [monitoring.coreos.com], resources: [prometheusrules], verbs: [create]}
        - {apiGroups: [""], resources: [events], verbs: [create]}
        - {apiGroups: [""], resources: [pods], verbs: [delete]}
`

const everyCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.example.com}
spec:
  group: example.com
  names: {kind: Database, plural: databases}
  scope: Namespaced
  conversion: {strategy: Webhook}
  versions:
  - {name: v1alpha1, served: true, subresources: {status: {}}}
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              version: {type: string}
              storage: {type: object}
              restoreFrom: {type: string}
              autoscaling: {type: object}
              autoTuning: {type: object}
          status: {type: object, properties: {conditions: {type: array}}}
`

const dashboard = "{apiVersion: v1, kind: ConfigMap, metadata: {name: board, labels: {grafana_dashboard: '1'}}}"

func score(t *testing.T, manifests ...string) Card {
	t.Helper()
	var texts [][]byte
	for _, m := range manifests {
		texts = append(texts, []byte(m))
	}
	b, err := bundles.FromManifests(texts, map[string]string{bundles.AnnotationPackage: "db"})
	if err != nil {
		t.Fatal(err)
	}
	return ScoreBundle(b)
}

func TestEverySignalIsDetected(t *testing.T) {
	c := score(t, everything, everyCRD, dashboard)
	for _, l := range c.Levels {
		for _, s := range l.Signals {
			if !s.Found() {
				t.Errorf("%s is not seen", s.ID)
			}
		}
	}
	if c.Shown != AutoPilot || c.Claimed != AutoPilot || c.ListMissingSignals() != nil {
		t.Errorf("it shows %v and claims %v, and %d signals are missing", c.Shown, c.Claimed,
			len(c.ListMissingSignals()))
	}
}

// TestEachSignal removes the evidence of each signal, and checks that exactly this signal is missing.
func TestEachSignal(t *testing.T) {
	type edit struct{ old, new string }
	tested := map[string]bool{}
	for id, e := range map[string]edit{
		"install-deployment": {"deployments:\n      - name: db", "others:\n      - name: db"},
		"install-api":        {"    owned:", "    required:"},
		"install-spec": {"          spec:\n            type: object",
			"          other:\n            type: object"},
		"install-examples":  {`, {"kind": "DatabaseBackup"}`, ""},
		"install-requests":  {"cpu: 10m, ", ""},
		"install-described": {"base64data: aWNvbg==", `base64data: ""`},
		"upgrade-status": {"- {name: v1alpha1, served: true, subresources: {status: {}}}",
			"- {name: v1alpha1, served: true}"},
		"upgrade-probes":     {"readinessProbe", "livenessProbe"},
		"upgrade-conversion": {"strategy: Webhook", "strategy: None"},
		"upgrade-edges":      {"  replaces: db.v1.0.0\n", ""},
		"upgrade-leader":     {"resources: [leases], verbs: [create]", "resources: [leases], verbs: [get]"},
		"upgrade-operand":    {"version: {type: string}", "apiVersion: {type: string}"},
		"upgrade-pinned":     {"@sha256:", ":"},
		"lifecycle-backup":   {"kind: DatabaseBackup, version", "kind: DatabaseCopy, version"},
		"lifecycle-restore":  {"restoreFrom:", "dataSource:"},
		"lifecycle-scale":    {", scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}", ""},
		"lifecycle-failover": {"poddisruptionbudgets", "things"},
		"lifecycle-storage":  {"              storage:", "              other:"},
		"lifecycle-cleanup":  {"databases/finalizers", "databases"},
		"insight-metrics":    {"name: metrics", "name: web"},
		"insight-alerts":     {"prometheusrules", "things"},
		"insight-events":     {"resources: [events]", "resources: [things]"},
		"insight-conditions": {"conditions:", "phase:"},
		"insight-dashboards": {"grafana_dashboard", "other"},
		"pilot-scale":        {"autoscaling:", "other:"},
		"pilot-heal":         {"resources: [pods], verbs: [delete]", "resources: [pods], verbs: [get]"},
		"pilot-tune":         {"autoTuning:", "other:"},
	} {
		t.Run(id, func(t *testing.T) {
			replace := func(text string) string { return strings.ReplaceAll(text, e.old, e.new) }
			if replace(everything)+replace(everyCRD)+replace(dashboard) == everything+everyCRD+dashboard {
				t.Fatalf("there is no %q to take away", e.old)
			}
			c := score(t, replace(everything), replace(everyCRD), replace(dashboard))
			for _, l := range c.Levels {
				for _, s := range l.Signals {
					if s.ID == id && s.Found() {
						t.Errorf("it is still seen in %q", s.Evidence)
					}
					if s.ID == id && s.Required && (l.Shown || c.Shown >= l.Level) {
						t.Errorf("it is required, and %s is shown without", l.Level)
					}
				}
			}
		})
		tested[id] = true
	}
	for _, level := range listChecks() {
		for _, check := range level {
			if !tested[check.id] {
				t.Errorf("no test takes %s away", check.id)
			}
		}
	}
}

// TestRolesAmongTheManifestsAreSeen grants by a ClusterRole what the ClusterServiceVersion granted.
func TestRolesAmongTheManifestsAreSeen(t *testing.T) {
	csv, rules, found := strings.Cut(everything,
		"      clusterPermissions:\n      - serviceAccountName: db\n        rules:\n")
	if !found {
		t.Fatal("the ClusterServiceVersion grants nothing")
	}
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: db}\nrules:\n" +
		strings.ReplaceAll(rules, "        - ", "- ")
	const binding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: db}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: db}
subjects: [{kind: ServiceAccount, name: db, namespace: db}]
`
	if bound := score(t, csv, everyCRD, dashboard, role, binding); bound.Shown != AutoPilot ||
		bound.ListMissingSignals() != nil {
		t.Errorf("with a role that is bound it shows %v, and %d signals are missing", bound.Shown,
			len(bound.ListMissingSignals()))
	}
	if unbound := score(t, csv, everyCRD, dashboard, role); unbound.Shown >= AutoPilot {
		t.Errorf("with a role that nobody has it shows %v", unbound.Shown)
	}
}

func TestVerdict(t *testing.T) {
	for want, c := range map[string]Card{
		"It claims Deep Insights, but its bundle shows Basic Install.": {Claim: "Deep Insights",
			Claimed: DeepInsights, Shown: BasicInstall},
		"It claims Deep Insights, but its bundle shows not even Basic Install.": {Claim: "Deep Insights",
			Claimed: DeepInsights},
		"It claims Basic Install, and its bundle shows more: Auto Pilot.": {Claim: "Basic Install",
			Claimed: BasicInstall, Shown: AutoPilot},
		"It claims Basic Install, and its bundle shows it.": {Claim: "Basic Install",
			Claimed: BasicInstall, Shown: BasicInstall},
		"It claims no capability level; its bundle shows Full Lifecycle.": {Shown: FullLifecycle},
		`It claims "Excellent", which is no capability level; its bundle shows Basic Install.`: {Claim: "Excellent",
			Shown: BasicInstall},
	} {
		if got := c.Verdict(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestParseLevel(t *testing.T) {
	for text, want := range map[string]Level{"": None, "Excellent": None, "Basic Install": BasicInstall,
		" auto pilot ": AutoPilot} {
		if got := ParseLevel(text); got != want {
			t.Errorf("ParseLevel(%q) = %v, want %v", text, got, want)
		}
	}
}

// TestRenderings compares pages and pictures with those in testdata.
func TestRenderings(t *testing.T) {
	claims := strings.ReplaceAll(strings.ReplaceAll(everything, "prometheusrules", "things"), "Auto Pilot",
		"Deep Insights")
	c := score(t, claims, strings.ReplaceAll(everyCRD, "restoreFrom:", "other:"), dashboard)
	page, err := CardHTML(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"card.svg": CardSVG(c), "card.html": page, "card.md": CardMarkdown(c)} {
		compareGolden(t, name, got)
	}
}

// TestHostileTexts renders texts that would be markup.
func TestHostileTexts(t *testing.T) {
	const hostile = `<script>alert("x")</script>&]]>`
	c := score(t, everything, everyCRD, dashboard)
	c.Name, c.DisplayName, c.Provider, c.Claim, c.Claimed = hostile, hostile, hostile, hostile, None
	c.Levels[0].Signals[0].Evidence = []string{hostile}
	page, err := CardHTML(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"HTML": page, "SVG": CardSVG(c), "Markdown": CardMarkdown(c)} {
		if strings.Contains(text, "<script") {
			t.Errorf("the script got into the %s", name)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(CardSVG(c))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}

// TestScoresOfRealBundles checks on published bundles what is known of them.
func TestScoresOfRealBundles(t *testing.T) {
	for name, want := range map[string]string{
		"grafana-operator/5.9.2": "Basic Install/Seamless Upgrades",
		"etcd/0.9.2":             "None/None", // its CRDs have no schema
	} {
		c := ScoreBundle(bundletest.Read(t, name))
		if got := fmt.Sprintf("%v/%v", c.Claimed, c.Shown); got != want {
			t.Errorf("%s claims and shows %s, want %s", name, got, want)
		}
		signals := c.Levels[2].Signals
		i := slices.IndexFunc(signals, func(s Signal) bool { return s.ID == "lifecycle-backup" })
		if signals[i].Found() != strings.HasPrefix(name, "etcd") {
			t.Errorf("%s: backups are seen in %q", name, signals[i].Evidence)
		}
	}
}
