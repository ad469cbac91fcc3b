// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/internal/version"
)

const labelVersion = "app.kubernetes.io/version"

// readHubVersion returns the version label of the hub's Deployment. It returns "" if there is none.
func (in Observation) readHubVersion() string {
	for _, d := range in.Hub.Deployments {
		if d.Deployment != nil && d.Deployment.Labels[labelVersion] != "" {
			return d.Deployment.Labels[labelVersion]
		}
	}
	return ""
}

// judgeVersions returns findings for agents that are more than one minor version newer or older than the hub.
func judgeVersions(in Observation) []Finding {
	var newer, older []string
	for _, c := range in.Clusters {
		text := c.Name + " (" + c.Status.Versions.Agent + ")"
		switch version.Compare(in.readHubVersion(), c.Status.Versions.Agent) {
		case version.SkewHubOld:
			newer = append(newer, text)
		case version.SkewAgentOld:
			older = append(older, text)
		}
	}
	var findings []Finding
	if len(newer) > 0 {
		findings = append(findings, Finding{Severity: Warning, Check: CheckVersions, Objects: newer,
			Text: fmt.Sprintf("the agents of %s are more than one minor version newer than the hub, which is %s: "+
				"%s", phrase.Count(len(newer),
				"cluster"), in.readHubVersion(), phrase.First(newer, maxShown)),
			Remedies: []remedy.Action{newAction("Upgrade the hub first", in.Program+" install hub")}})
	}
	if len(older) > 0 {
		findings = append(findings, Finding{Severity: Warning, Check: CheckVersions, Objects: older,
			Text: fmt.Sprintf("the agents of %s are more than one minor version older than the hub, which is %s: %s",
				phrase.Count(len(older), "cluster"), in.readHubVersion(), phrase.First(older, maxShown)),
			Remedies: []remedy.Action{newAction("Upgrade each agent",
				in.Program+" fleet join CLUSTER --cluster-kubeconfig FILE")}})
	}
	return findings
}

// judgeCRDs reports missing CRDs, and CRDs that differ from the CRDs of the hub's version. The difference is known
// only if the hub has the program's version.
func judgeCRDs(in Observation) []Finding {
	var missing, different []string
	for _, c := range in.CRDs {
		if c.Missing {
			missing = append(missing, c.Name)
		} else if in.readHubVersion() == in.ChartVersion {
			different = append(different, c.Name)
		}
	}
	install := []remedy.Action{newAction("Apply them; objects stay as they are", in.Program+" install hub")}
	var findings []Finding
	if len(missing) > 0 {
		findings = append(findings, Finding{Severity: Critical, Check: CheckVersions, Objects: missing,
			Remedies: install,
			Text: fmt.Sprintf("the hub does not have %s: %s", phrase.Count(len(missing), "CRD"),
				phrase.First(missing, maxShown))})
	}
	if len(different) > 0 {
		findings = append(findings, Finding{Severity: Warning, Check: CheckVersions, Objects: different,
			Remedies: install,
			Text: fmt.Sprintf("CRDs on the hub are not those of its version, %s, as after a `helm upgrade` with "+
				"crds.enabled=false: %s", in.ChartVersion, phrase.First(different, maxShown))})
	}
	return findings
}

// CompareCRD compares the schemas of all versions of an installed CRD with those of the CRD of the built-in chart. It
// returns false if they are the same. installed is nil if the CRD does not exist.
func CompareCRD(chart, installed *unstructured.Unstructured) (CRD, bool) {
	if installed == nil {
		return CRD{Name: chart.GetName(), Missing: true}, true
	}
	return CRD{Name: chart.GetName()}, !reflect.DeepEqual(readSchemas(chart), readSchemas(installed))
}

// readSchemas returns the schema of each version of a CRD.
func readSchemas(crd *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if m, ok := v.(map[string]any); ok {
			out[fmt.Sprint(m["name"])] = m["schema"]
		}
	}
	return out
}

// judgePermissions reports missing permissions of hub and agent.
func judgePermissions(in Observation) []Finding {
	var findings []Finding
	fixes := map[string]remedy.Action{
		"hub": newAction("Apply the hub's roles again", in.Program+" install hub"),
		"agent": newAction("Apply the agent's roles again",
			in.Program+" fleet join CLUSTER --cluster-kubeconfig FILE"),
	}
	for _, s := range in.listSites() {
		denied := formatPermissions(s.Denied)
		if len(denied) == 0 {
			continue
		}
		findings = append(findings, Finding{Severity: Critical, Check: CheckPermissions, Text: fmt.Sprintf(
			"ServiceAccount %s lacks permissions on %s: %s", s.Account, s.Name, formatList(denied)),
			Objects:  denied,
			Remedies: []remedy.Action{fixes[s.Component]}})
	}
	return findings
}

// listSites returns the hub and the examined cluster of the fleet.
func (in Observation) listSites() []Site {
	sites := []Site{in.Hub}
	if in.Fleet != nil {
		sites = append(sites, *in.Fleet)
	}
	return sites
}

// maxSkew is the maximum difference between two clocks. Tokens, Leases and the times in statuses are compared
// across clusters.
const maxSkew = 30 * time.Second

// judgeClocks compares the clocks of API servers with the caller's clock, and the time that each agent wrote into its
// Lease with the time at which the hub's API server received it.
func judgeClocks(in Observation) []Finding {
	var findings []Finding
	synchronize := "Make the nodes of the control plane synchronize their clocks (NTP)"
	for _, s := range in.listSites() {
		if s.Ahead == nil || s.Ahead.Abs() <= maxSkew {
			continue
		}
		findings = append(findings, Finding{Severity: Warning, Check: CheckClocks, Text: fmt.Sprintf(
			"the clock of the API server of %s is %s the clock of this machine", s.Name, formatOffset(*s.Ahead)),
			Remedies: []remedy.Action{newAction(synchronize+". First check the clock of this machine",
				"timedatectl status")}})
	}
	var skewed []string
	for i := range in.Leases {
		if skew, known := readSkew(&in.Leases[i]); known && skew.Abs() > maxSkew {
			skewed = append(skewed, fmt.Sprintf("%s (%s the hub's)", parseCluster(in.Leases[i].Namespace),
				formatOffset(skew)))
		}
	}
	if len(skewed) > 0 {
		slices.Sort(skewed)
		findings = append(findings, Finding{Severity: Warning, Check: CheckClocks, Objects: skewed, Text: fmt.Sprintf(
			"the clocks of %s differ from the clock of the hub: %s. The hub does not judge liveness by them, but "+
				"tokens, change windows and the times that these clusters report are off", phrase.Count(len(skewed),
				"cluster"),
			phrase.First(skewed, maxShown)),
			Remedies: []remedy.Action{newAction(synchronize+", there or on the hub", "timedatectl status")}})
	}
	return findings
}

// readSkew returns how far the clock of an agent was ahead of the clock of the hub's API server at the last renewal of
// the Lease: the API server records when the field changed. The agent uses the clock of its own cluster's API server.
// It returns false if the skew is not known.
func readSkew(lease *coordinationv1.Lease) (time.Duration, bool) {
	if lease.Spec.RenewTime == nil {
		return 0, false
	}
	for _, m := range lease.ManagedFields {
		if m.Time != nil && m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), `"f:renewTime"`) {
			return lease.Spec.RenewTime.Sub(m.Time.Time).Round(time.Second), true
		}
	}
	return 0, false
}

// parseCluster returns the cluster of a namespace on the hub.
func parseCluster(namespace string) string {
	return strings.TrimPrefix(namespace, v1alpha1.ClusterNamespace(""))
}

// formatOffset returns "2m0s ahead of" or "2m0s behind".
func formatOffset(ahead time.Duration) string {
	if ahead < 0 {
		return ahead.Abs().Round(time.Second).String() + " behind"
	}
	return ahead.Round(time.Second).String() + " ahead of"
}

// bellwetherGroups are the API groups without which Bellwether does not work.
var bellwetherGroups = []string{"*", "", "apps", "bellwether.dev", "coordination.k8s.io", "operators.coreos.com",
	"rbac.authorization.k8s.io"}

// judgeWebhooks reports admission webhooks without a ready endpoint. Requests that such a webhook handles can fail.
func judgeWebhooks(in Observation) []Finding {
	var findings []Finding
	for _, s := range in.listSites() {
		for _, w := range s.Webhooks {
			findings = append(findings, judgeWebhook(s, w))
		}
	}
	return findings
}

// judgeWebhook returns the finding for a webhook without a ready endpoint. It is critical if requests of
// Bellwether fail.
func judgeWebhook(s Site, w Webhook) Finding {
	kubectl := strings.TrimSpace("kubectl " + s.Flags)
	namespace, service, _ := strings.Cut(w.Service, "/")
	f := Finding{Severity: Warning, Check: CheckWebhooks, Objects: []string{w.Kind + " " + w.Configuration}}
	state := "has no ready endpoint"
	if w.Missing {
		state = "does not exist"
	}
	effect := "it is skipped, and each request waits for it in vain"
	if w.Fails {
		effect = "requests fail that it is asked about"
		if slices.ContainsFunc(w.Groups, func(g string) bool { return slices.Contains(bellwetherGroups, g) }) {
			f.Severity = Critical
			effect += ", those of Bellwether among them"
		}
	}
	f.Text = fmt.Sprintf("webhook %s of %s %s on %s leads to Service %s, which %s: %s", w.Name, w.Kind, w.Configuration,
		s.Name, w.Service, state, effect)
	f.Remedies = []remedy.Action{
		newAction("Start what serves it", kubectl+" -n "+namespace+" get service,endpointslices,pods"),
		newAction("If "+service+" was removed on purpose, delete the configuration that it left behind",
			kubectl+" delete "+strings.ToLower(w.Kind)+" "+w.Configuration),
	}
	return f
}

// formatList joins a limited number of items.
func formatList(items []string) string { return strings.Join(phrase.Limit(items, maxShown), "; ") }
