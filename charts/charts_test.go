// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/dashboards"
	"github.com/bellwether-dev/bellwether/engines/localpolicy"
)

var update = flag.Bool("update", false, "write the golden files")

func load(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := charts.Load()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// render returns the manifests that Helm would apply for the values, without
// the comments of the chart's authors.
func render(t *testing.T, loaded *chart.Chart, values string) ([]string, error) {
	t.Helper()
	return renderFor(t, loaded, values, chartutil.DefaultCapabilities)
}

// renderFor is render for a cluster with capabilities.
func renderFor(t *testing.T, loaded *chart.Chart, values string,
	capabilities *chartutil.Capabilities) ([]string, error) {
	t.Helper()
	var overrides map[string]any
	if err := yaml.Unmarshal([]byte(values), &overrides); err != nil {
		t.Fatal(err)
	}
	options := chartutil.ReleaseOptions{Name: "fleet", Namespace: "bellwether-system", IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(loaded, overrides, options, capabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	var manifests []string
	for name, text := range rendered {
		if path.Ext(name) != ".yaml" {
			continue
		}
		for _, manifest := range releaseutil.SplitManifests(text) {
			manifests = append(manifests, normalize(t, manifest))
		}
	}
	manifests = slices.DeleteFunc(manifests, func(m string) bool { return m == "" })
	slices.SortFunc(manifests, func(a, b string) int { return strings.Compare(sortKey(t, a), sortKey(t, b)) })
	return manifests, nil
}

func normalize(t *testing.T, manifest string) string {
	t.Helper()
	var object map[string]any
	if err := yaml.UnmarshalStrict([]byte(manifest), &object); err != nil {
		t.Fatalf("decode manifest: %v\n%s", err, manifest)
	}
	if object == nil {
		return ""
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func sortKey(t *testing.T, manifest string) string {
	t.Helper()
	var object struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
	}
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatal(err)
	}
	return object.Kind + "/" + object.Metadata.Name + "/" + object.Metadata.Namespace
}

const everything = `
nameOverride: sheep
commonLabels: {team: fleet}
commonAnnotations: {example.com/owner: sre}
imagePullSecrets: [{name: pull}]
registryConfigSecret: registry-login
hub:
  enabled: true
  image: {tag: 1.2.3}
  bindAddress: $(POD_IP)
  leaseGrace: 1m30s
  lock: {kubeconfigSecret: lock-login}
  slo: {rulesNamespace: monitoring, rulesLabels: {release: prometheus}, prometheusURL: ` +
	`"http://prometheus.monitoring:9090", ` +
	`runbookURL: "https://runbooks.example.com/slos", dashboardURL: "https://grafana.example.com/d/slo"}
  paging: {alertmanagerFolder: /config, configLabels: {alertmanager: main},
    secrets: [{namespace: payments, name: slack}, {namespace: monitoring, name: pagerduty},
      {namespace: payments, name: pagerduty}]}
  pullSecrets: [{namespace: payments, name: registry-login}]
  discovery: {sources: [hive, clusterprofile, clusterapi], labels: {stage: labels/stage}, selector: fleet!=no}
  remoteWriteGate: {enabled: true, storeURL: "https://mimir.example.com/api/v1/push", storeSecret: store-login,
    storeHeaders: {X-Scope-OrgID: fleet}, tlsSecret: gate-tls, extraArgs: [--max-series=5000]}
  extraArgs: [--zap-log-level=debug]
  extraEnv: [{name: HTTPS_PROXY, value: "http://proxy.example.com:3128"}]
  extraVolumes: [{name: catalog, configMap: {name: catalog}}]
  extraVolumeMounts: [{name: catalog, mountPath: /catalog}]
  serviceAccount: {annotations: {example.com/identity: hub}}
  podLabels: {sidecar: "false"}
  podAnnotations: {example.com/a: b}
  nodeSelector: {node-role.kubernetes.io/infra: ""}
  tolerations: [{key: infra, operator: Exists}]
  affinity: {nodeAffinity: {}}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
  priorityClassName: system-cluster-critical
  userRoles: {create: true, aggregate: true}
  probes: {allowPrivate: true, privateCIDRs: [10.128.0.0/14, 172.30.0.0/16]}
  podDisruptionBudget: {enabled: true}
  priorityClass: {create: true, value: 5000}
  fleet: {clusters: 1000, operatorsPerCluster: 30}
  logLevel: debug
  networkPolicy: {enabled: true, metricsFrom: [{namespaceSelector: {}}],
    egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}]}, {ports: [{port: 443}]}]}
  podMonitor: {enabled: true, labels: {release: prometheus}}
probes: {deniedCIDRs: [192.0.2.0/24]}
dashboards:
  labels: {grafana_dashboard: "yes"}
  grafanaOperator: {enabled: true, instanceLabels: {team: sre}}
agent:
  enabled: true
  cluster: prod-eu
  hub: {kubeconfigSecret: hub-login, namespace: elsewhere, tokenLifetime: 24h}
  image: {digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
  viewHost: $(POD_IP)
  bindAddress: $(POD_IP)
  viewPorts: {first: 40000, last: 40099}
  localPolicy: {deniedNamespaces: [kube-*], permissions: {denyClusterWildcards: true}}
  jobs: {namespaces: [checks]}
  pullSecrets: [registry-login]
  remoteWrite: {tokenSecret: {namespace: monitoring, name: sender}, url: "https://metrics.example.com/api/v1/write",
    caSecret: gate-ca, rulesConfigMap: edge-rules}
  templates: {namespace.yaml: "kind: Namespace\n"}
  extraRules: [{apiGroups: [""], resources: [limitranges], verbs: [create]}]
  backup: {stores: ["s3://backups/fleet?region=eu-central-1"], secrets: [backup-store]}
  extraArgs: [--zap-log-level=debug]
  networkPolicy: {enabled: true, metricsFrom: [{namespaceSelector: {}}], olmNamespaces: [catalogs],
    egress: [{ports: [{port: 443}]}]}
  podMonitor: {enabled: true, labels: {release: prometheus}}
`

// compareGolden compares manifests with the golden file of a name.
func compareGolden(t *testing.T, name string, manifests []string) {
	t.Helper()
	got, golden := strings.Join(manifests, "---\n"), filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("manifests; run with -update if this is what you want (-want +got):\n%s", diff)
	}
}

func TestRender(t *testing.T) {
	for name, values := range map[string]string{
		"nothing": "{}",
		"hub":     "hub: {enabled: true}",
		"agent":   "agent: {enabled: true, cluster: canary}",
		"hosted": "agent: {enabled: true, hosted: {enabled: true, service: {loadBalancerSourceRanges: [10.0.0.0/8]}}, " +
			"viewHost: views.example.com, viewPorts: {last: 50102}, " +
			"podMonitor: {enabled: true}}",
		"access":     "agent: {enabled: true, accessOnly: true}",
		"bundle":     "agent: {enabled: true, part: bundle}",
		"cluster":    "agent: {enabled: true, part: cluster}",
		"everything": everything,
	} {
		t.Run(name, func(t *testing.T) {
			manifests, err := render(t, withFixedRules(load(t)), values)
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, name, manifests)
			for _, manifest := range manifests {
				decodes(t, manifest)
			}
		})
	}
}

// withFixedRules replaces the generated permissions and dashboards and leaves the CRDs
// out, so that the golden files hold the chart alone and do not follow every marker on
// a controller. A dashboard's braces are Grafana's, not Helm's.
func withFixedRules(loaded *chart.Chart) *chart.Chart {
	loaded.Files = slices.DeleteFunc(loaded.Files, func(f *chart.File) bool {
		return strings.HasPrefix(f.Name, "files/dashboards/") && path.Base(f.Name) != "bellwether-fleet.json" ||
			strings.HasPrefix(f.Name, "files/crds/")
	})
	for _, file := range loaded.Files {
		if strings.HasPrefix(file.Name, "files/dashboards/") {
			file.Data = []byte("{\"legend\":\"{{operator}}: {{ .Values }}\"}\n")
		}
		if strings.HasSuffix(file.Name, "-rules.yaml") {
			file.Data = []byte("---\nkind: ClusterRole\nrules:\n- apiGroups: [\"\"]\n  resources: [namespaces]\n  " +
				"verbs: [get]\n" +
				"---\nkind: Role\nrules:\n- apiGroups: [\"\"]\n  resources: [configmaps]\n  verbs: [create]\n")
		}
	}
	return loaded
}

// decodes checks a manifest against the API's own types: a field that does not
// exist is an error.
func decodes(t *testing.T, manifest string) {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	_, _, err := decoder.Decode([]byte(manifest), nil, nil)
	if err != nil && !runtime.IsNotRegisteredError(err) {
		t.Errorf("decode manifest: %v\n%s", err, manifest)
	}
}

func TestValuesAreChecked(t *testing.T) {
	for name, c := range map[string]struct{ values, want string }{
		"a part that is none":           {"agent: {enabled: true, part: half}", "part"},
		"a misspelt value":              {"hub: {enable: true}", "enable"},
		"an agent without cluster":      {"agent: {enabled: true}", "agent.cluster must name"},
		"a hosted agent nobody reaches": {"agent: {enabled: true, hosted: {enabled: true}}", "agent.viewHost must name"},
		"a Service with too many ports": {"agent: {enabled: true, hosted: {enabled: true}, viewHost: v}",
			"agent.viewPorts has 900: set agent.viewPorts.last to at most 50599"},
		"a Service with one port too many": {"agent: {enabled: true, hosted: {enabled: true}, viewHost: v, " +
			"viewPorts: {last: 50600}}", "agent.viewPorts has 501"},
		"no ports": {"agent: {enabled: true, cluster: c, viewPorts: {first: 50200, last: 50199}}",
			"agent.viewPorts.last is 50199, which is less"},
		"a cluster's name too long": {"agent: {enabled: true, cluster: " + strings.Repeat("x", 51) + "}", "cluster"},
		"a template for nothing":    {"agent: {templates: {deployment.yaml: ''}}", "deployment.yaml"},
		"a port out of range":       {"agent: {viewPorts: {first: 70000}}", "viewPorts"},
		"a digest that is none":     {"hub: {image: {digest: latest}}", "digest"},
		"a Prometheus by name":      {"hub: {slo: {prometheusURL: prometheus}}", "prometheusURL"},
		"an unknown source":         {"hub: {enabled: true, discovery: {sources: [rancher]}}", "sources"},
		"a hosted agent that may only read": {"agent: {enabled: true, readOnly: true, hosted: {enabled: true}}",
			"agent.readOnly is for an agent that Helm installs"},
		"no namespace of OLM": {"agent: {networkPolicy: {olmNamespaces: []}}", "olmNamespaces"},
		"addresses denied to an agent that OLM installs": {
			"{agent: {enabled: true, part: cluster}, probes: {deniedCIDRs: [192.0.2.0/24]}}",
			"BELLWETHER_AGENT_PROBE_DENIED_CIDRS"},
		"a level that is none": {"hub: {logLevel: loud}", "logLevel"},
		"all Secrets of a namespace for paging": {"hub: {paging: {secretNamespaces: [payments]}}",
			"secretNamespaces"},
		"a fleet by name":      {"hub: {fleet: {clusters: large}}", "clusters"},
		"a grace without unit": {"hub: {leaseGrace: '40'}", "leaseGrace"},
		"an inventory for two replicas": {"hub: {enabled: true, inventory: {enabled: true}}",
			"hub.replicas is 2: set hub.replicas to 1"},
		"an inventory that is kept for no time": {"hub: {inventory: {maxAge: ''}}", "maxAge"},
		"an age without unit":                   {"hub: {inventory: {maxAge: '90'}}", "maxAge"},
		"a size without unit":                   {"hub: {inventory: {maxSize: '2'}}", "maxSize"},
		"a claim without size":                  {"hub: {inventory: {storage: {size: ''}}}", "size"},
		"a port of no TCP":                      {"hub: {inventory: {port: 0}}", "port"},
		"dashboards for no Grafana": {"{hub: {enabled: true}, dashboards: {grafanaOperator: {enabled: true}}}",
			"instanceLabels must name"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(t, load(t), c.values); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one about %q", err, c.want)
			}
		})
	}
}

// TestMostViewPorts verifies that the numbers in the command line are the numbers of the chart.
func TestMostViewPorts(t *testing.T) {
	const first = 50100
	values := func(ports int) string {
		return fmt.Sprintf("agent: {enabled: true, hosted: {enabled: true}, viewHost: v, "+
			"viewPorts: {first: %d, last: %d}}", first, first+ports-1)
	}
	manifests, err := render(t, load(t), values(charts.MaxViewPorts))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(strings.Join(manifests, "\n"), "name: view-"); got != charts.MaxViewPorts {
		t.Errorf("the Service has %d ports, want %d", got, charts.MaxViewPorts)
	}
	says := fmt.Sprintf("enough for %d clusters with %d operators each", charts.MaxViewPorts/charts.HostedViewPorts,
		charts.HostedViewPorts)
	if _, err := render(t, load(t), values(charts.MaxViewPorts+1)); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("one more: %v, want an error that says %q", err, says)
	}
	// Without the Service there are as many as there are ports.
	_, err = render(t, load(t), "agent: {enabled: true, hosted: {enabled: true, service: {enabled: false}}, "+
		"viewHost: v, viewPorts: {last: 65535}}")
	if err != nil {
		t.Error(err)
	}
}

// TestRulesArePresent guards against a chart that renders roles without rules
// because a generated file is missing or was renamed.
func TestRulesArePresent(t *testing.T) {
	manifests, err := render(t, load(t), everything)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, manifest := range manifests {
		if key := sortKey(t, manifest); !strings.HasPrefix(key, "ClusterRole/") &&
			!strings.HasPrefix(key, "Role/sheep-hub-rules/") {
			continue
		}
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(manifest), &role); err != nil {
			t.Fatal(err)
		}
		seen[role.Name] = true
		if len(role.Rules) < 1 && role.AggregationRule == nil {
			t.Errorf("ClusterRole %s has no rules", role.Name)
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Resources, "*") ||
				slices.Contains(rule.APIGroups, "*") {
				t.Errorf("ClusterRole %s has a wildcard: %v", role.Name, rule)
			}
		}
	}
	want := map[string]bool{"sheep-hub": true, "sheep-agent": true, "sheep-agent-backup": true,
		"sheep-agent-migration": true, "sheep-agent-operands": true, "sheep-agent-probe-secrets": true,
		"sheep-view": true, "sheep-operate": true, "sheep-join": true,
		"sheep-approve": true, "sheep-override": true, "sheep-policy": true, "sheep-remove": true, "sheep-freeze": true,
		"sheep-freezes": true, "sheep-hub-rules": true,
		"sheep-hub-discovery": true, "sheep-remote-write-gate": true}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("ClusterRoles (-want +got):\n%s", diff)
	}
}

// TestTheAgentReadsNoLogs verifies that the agent cannot read logs, because the content of
// operators' logs must not reach the hub.
func TestTheAgentReadsNoLogs(t *testing.T) {
	manifests, err := render(t, load(t), everything)
	if err != nil {
		t.Fatal(err)
	}
	roles := 0
	for _, manifest := range manifests {
		if !strings.HasPrefix(sortKey(t, manifest), "ClusterRole/") {
			continue
		}
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(manifest), &role); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(role.Name, "sheep-agent") {
			continue
		}
		roles++
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "pods/log") {
				t.Errorf("ClusterRole %s permits logs: %v", role.Name, rule)
			}
		}
	}
	if roles == 0 {
		t.Error("no role of the agent was found")
	}
}

// TestDashboards reads the dashboards as Grafana's sidecar does.
func TestDashboards(t *testing.T) {
	manifests, err := render(t, load(t), "hub: {enabled: true}")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, manifest := range manifests {
		var config corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(manifest), &config); err != nil ||
			config.Labels[dashboards.SidecarLabel] == "" {
			continue
		}
		for name, text := range config.Data {
			var content any
			if err := json.Unmarshal([]byte(text), &content); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got[name] = content
		}
	}
	want := map[string]any{}
	for _, d := range dashboards.All() {
		text, err := dashboards.JSON(d)
		if err != nil {
			t.Fatal(err)
		}
		var content any
		if err := json.Unmarshal(text, &content); err != nil {
			t.Fatal(err)
		}
		want[dashboards.FileName(d)] = content
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dashboards; run go generate ./dashboards (-want +got):\n%.3000s", diff)
	}
}

// TestPlatformNamespacesAreDenied verifies that a policy without a list of namespaces keeps
// operators out of OpenShift's namespaces.
func TestPlatformNamespacesAreDenied(t *testing.T) {
	const namespace = "bellwether-system"
	policyOf := func(values string) *localpolicy.Policy {
		manifests, err := render(t, load(t), "agent: {enabled: true, cluster: c, localPolicy: "+values+"}")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range manifests {
			found := &corev1.ConfigMap{}
			if err := yaml.Unmarshal([]byte(text), found); err == nil && found.Kind == "ConfigMap" &&
				found.Name == localpolicy.ConfigMap {
				return localpolicy.Parse(found.Data, namespace)
			}
		}
		t.Fatal("there is no policy")
		return nil
	}
	byDefault, owners := policyOf("{permissions: {denyClusterWildcards: true}}"), policyOf("{deniedNamespaces: [prod]}")
	for name, denied := range map[string]bool{
		namespace: true, "kube-system": true, "olm": true, "openshift-marketplace": true, "openshift-etcd": true,
		"openshift-operator-lifecycle-manager": true, "openshift-monitoring": true,
		"openshift-operators": false, "openshift-gitops-operator": false, "openshift-custom-domains-operator": false,
	} {
		release := v1alpha1.Release{Install: v1alpha1.InstallSettings{Namespace: name}}
		if _, err := byDefault.JudgeRelease(release); (err != nil) != denied {
			t.Errorf("a release into %s: %v", name, err)
		}
		if _, err := owners.JudgeRelease(release); err != nil {
			t.Errorf("a release into %s, which the owner's list does not have: %v", name, err)
		}
	}
}
