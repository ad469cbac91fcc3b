// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
	"github.com/bellwether-dev/bellwether/version"
)

const labelVersion = "app.kubernetes.io/version"

// hubVersion is what the hub's Deployment is labelled with; empty where there is none.
func (in Observation) hubVersion() string {
	for _, d := range in.Hub.Deployments {
		if d.Deployment != nil && d.Deployment.Labels[labelVersion] != "" {
			return d.Deployment.Labels[labelVersion]
		}
	}
	return ""
}

// judgeVersions compares the agents' versions with the hub's.
func judgeVersions(in Observation) []Finding {
	var newer, older []string
	for _, c := range in.Clusters {
		text := c.Name + " (" + c.Status.Versions.Agent + ")"
		switch version.Compare(in.hubVersion(), c.Status.Versions.Agent) {
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
				"cluster"), in.hubVersion(), phrase.First(newer, shown)),
			Remedies: []remedy.Action{run("Upgrade the hub first", in.Program+" install hub")}})
	}
	if len(older) > 0 {
		findings = append(findings, Finding{Severity: Warning, Check: CheckVersions, Objects: older,
			Text: fmt.Sprintf("the agents of %s are more than one minor version older than the hub, which is %s: %s",
				phrase.Count(len(older), "cluster"), in.hubVersion(), phrase.First(older, shown)),
			Remedies: []remedy.Action{run("Upgrade each agent",
				in.Program+" fleet join CLUSTER --cluster-kubeconfig FILE")}})
	}
	return findings
}

// judgeCRDs says which CRDs are missing, and which are not those of the hub's version. That is only known of a hub of
// the program's own version.
func judgeCRDs(in Observation) []Finding {
	var missing, different []string
	for _, c := range in.CRDs {
		if c.Missing {
			missing = append(missing, c.Name)
		} else if in.hubVersion() == in.ChartVersion {
			different = append(different, c.Name)
		}
	}
	install := []remedy.Action{run("Apply them; objects stay as they are", in.Program+" install hub")}
	var findings []Finding
	if len(missing) > 0 {
		findings = append(findings, Finding{Severity: Critical, Check: CheckVersions, Objects: missing,
			Remedies: install,
			Text: fmt.Sprintf("the hub does not have %s: %s", phrase.Count(len(missing), "CRD"),
				phrase.First(missing, shown))})
	}
	if len(different) > 0 {
		findings = append(findings, Finding{Severity: Warning, Check: CheckVersions, Objects: different,
			Remedies: install,
			Text: fmt.Sprintf("CRDs on the hub are not those of its version, %s, as after a `helm upgrade` with "+
				"crds.enabled=false: %s", in.ChartVersion, phrase.First(different, shown))})
	}
	return findings
}

// judgePermissions says what hub and agent may not do.
func judgePermissions(in Observation) []Finding {
	var findings []Finding
	again := map[string]remedy.Action{
		"hub": run("Apply the hub's roles again", in.Program+" install hub"),
		"agent": run("Apply the agent's roles again",
			in.Program+" fleet join CLUSTER --cluster-kubeconfig FILE"),
	}
	for _, s := range in.sites() {
		if len(s.Denied) == 0 {
			continue
		}
		findings = append(findings, Finding{Severity: Critical, Check: CheckPermissions, Text: fmt.Sprintf(
			"ServiceAccount %s lacks permissions on %s: %s", s.Account, s.Name, listed(s.Denied)), Objects: s.Denied,
			Remedies: []remedy.Action{again[s.Component]}})
	}
	return findings
}

func (in Observation) sites() []Site {
	sites := []Site{in.Hub}
	if in.Fleet != nil {
		sites = append(sites, *in.Fleet)
	}
	return sites
}

// maxSkew is how far two clocks may be apart. Tokens, Leases and the times in statuses are compared across clusters.
const maxSkew = 30 * time.Second

// judgeClocks compares the clocks of API servers with the caller's, and the time that each agent wrote into its Lease
// with the time at which the hub's API server received it.
func judgeClocks(in Observation) []Finding {
	var findings []Finding
	synchronize := "Make the nodes of the control plane synchronize their clocks (NTP)"
	for _, s := range in.sites() {
		if s.Ahead == nil || s.Ahead.Abs() <= maxSkew {
			continue
		}
		findings = append(findings, Finding{Severity: Warning, Check: CheckClocks, Text: fmt.Sprintf(
			"the clock of the API server of %s is %s the clock of this machine", s.Name, offset(*s.Ahead)),
			Remedies: []remedy.Action{run(synchronize+". First check the clock of this machine",
				"timedatectl status")}})
	}
	var skewed []string
	for i := range in.Leases {
		if by, known := skewOf(&in.Leases[i]); known && by.Abs() > maxSkew {
			skewed = append(skewed, fmt.Sprintf("%s (%s the hub's)", clusterOf(in.Leases[i].Namespace), offset(by)))
		}
	}
	if len(skewed) > 0 {
		slices.Sort(skewed)
		findings = append(findings, Finding{Severity: Warning, Check: CheckClocks, Objects: skewed, Text: fmt.Sprintf(
			"the clocks of %s differ from the clock of the hub: %s. The hub does not judge liveness by them, but "+
				"tokens, change windows and the times that these clusters report are off", phrase.Count(len(skewed),
				"cluster"),
			phrase.First(skewed, shown)),
			Remedies: []remedy.Action{run(synchronize+", there or on the hub", "timedatectl status")}})
	}
	return findings
}

// skewOf is how far the clock of an agent was ahead of that of the hub's API server when the Lease was last renewed:
// the API server notes when it took in a change of the field. The agent uses the clock of its own cluster's API server.
func skewOf(lease *coordinationv1.Lease) (time.Duration, bool) {
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

func clusterOf(namespace string) string {
	return strings.TrimPrefix(namespace, v1alpha1.ClusterNamespace(""))
}

// offset is "2m0s ahead of" or "2m0s behind".
func offset(ahead time.Duration) string {
	if ahead < 0 {
		return ahead.Abs().Round(time.Second).String() + " behind"
	}
	return ahead.Round(time.Second).String() + " ahead of"
}

// ours are the groups of the API without which Bellwether does not work.
var ours = []string{"*", "", "apps", "bellwether.dev", "coordination.k8s.io", "operators.coreos.com",
	"rbac.authorization.k8s.io"}

// judgeWebhooks says which admission webhooks nobody serves. Requests that one of them is asked about fail.
func judgeWebhooks(in Observation) []Finding {
	var findings []Finding
	for _, s := range in.sites() {
		for _, w := range s.Webhooks {
			findings = append(findings, judgeWebhook(s, w))
		}
	}
	return findings
}

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
		if slices.ContainsFunc(w.Groups, func(g string) bool { return slices.Contains(ours, g) }) {
			f.Severity = Critical
			effect += ", those of Bellwether among them"
		}
	}
	f.Text = fmt.Sprintf("webhook %s of %s %s on %s leads to Service %s, which %s: %s", w.Name, w.Kind, w.Configuration,
		s.Name, w.Service, state, effect)
	f.Remedies = []remedy.Action{
		run("Start what serves it", kubectl+" -n "+namespace+" get service,endpointslices,pods"),
		run("If "+service+" was removed on purpose, delete the configuration that it left behind",
			kubectl+" delete "+strings.ToLower(w.Kind)+" "+w.Configuration),
	}
	return f
}

// listed is a list of lists, shortened.
func listed(items []string) string { return strings.Join(phrase.Limit(items, shown), "; ") }
