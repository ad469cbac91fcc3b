// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// judgeHub checks the Deployments of the hub.
func judgeHub(in Observation) []Finding {
	install := newAction("Install it, or name its namespace with --system-namespace", in.Program+" install hub")
	return judgeDeployments(CheckHub, in.Hub, in.Hub.Deployments, in.hasGap(CheckHub), install)
}

// judgeFleetSite checks the Deployments of the agent and of OLM on a cluster of the fleet.
func judgeFleetSite(in Observation) []Finding {
	if in.Fleet == nil {
		return nil
	}
	join := newAction("Install the agent, or name its namespace with --system-namespace",
		in.Program+" fleet join CLUSTER --cluster-kubeconfig FILE")
	olm := *in.Fleet
	olm.Component = "OLM"
	return append(judgeDeployments(CheckAgents, *in.Fleet, in.Fleet.Deployments, in.hasGap(CheckAgents), join),
		judgeDeployments(CheckOLM, olm, in.Fleet.OLM, in.hasGap(CheckOLM), remedy.Action{
			Text: "Install OLM v0, as in https://olm.operatorframework.io/docs/getting-started/"})...)
}

// hasGap reports whether a check could not be completed. Then a missing object might exist.
func (in Observation) hasGap(check Check) bool {
	for _, g := range in.Gaps {
		if g.Check == check {
			return true
		}
	}
	return false
}

// judgeDeployments returns findings for missing and failing Deployments. install is the remedy if there is none.
func judgeDeployments(check Check, s Site, deployments []explain.Deployment, hasGap bool,
	install remedy.Action) []Finding {
	if len(deployments) == 0 && !hasGap {
		text := fmt.Sprintf("there is no Deployment of %s on %s", s.Component, s.Name)
		if s.Component != "OLM" {
			text = fmt.Sprintf("there is no Deployment of the %s in namespace %s on %s", s.Component, s.Namespace,
				s.Name)
		}
		return []Finding{{Severity: Critical, Check: check, Text: text, Remedies: []remedy.Action{install}}}
	}
	var findings []Finding
	for _, d := range deployments {
		if f, isBad := judgeDeployment(check, s, d); isBad {
			findings = append(findings, f)
		}
	}
	return findings
}

// judgeDeployment returns the finding for one Deployment, and whether there is one. It is critical if no replica
// is available.
func judgeDeployment(check Check, s Site, d explain.Deployment) (Finding, bool) {
	namespace := d.Deployment.Namespace
	kubectl := strings.TrimSpace("kubectl "+s.Flags) + " -n " + namespace
	f := Finding{Severity: Critical, Check: check, Objects: []string{"Deployment " + namespace + "/" + d.Name}}
	if ptr.Deref(d.Deployment.Spec.Replicas, 1) == 0 {
		f.Text = fmt.Sprintf("Deployment %s/%s on %s is scaled to 0 replicas, so it does not run", namespace, d.Name,
			s.Name)
		f.Remedies = []remedy.Action{newAction("Start it", kubectl+" scale deployment "+d.Name+" --replicas=1")}
		return f, true
	}
	link := d.Link()
	if link.State == explain.Healthy {
		return f, false
	}
	if d.Deployment.Status.AvailableReplicas > 0 {
		f.Severity = Warning
	}
	f.Text = fmt.Sprintf("Deployment %s/%s on %s has %d of %d replicas available", namespace, d.Name, s.Name,
		d.Deployment.Status.AvailableReplicas, ptr.Deref(d.Deployment.Spec.Replicas, 1))
	if cause := link.Cause(); cause.Text != link.Text {
		f.Reason = cause.Reason
		f.Text += ": " + cause.Text
	}
	f.Remedies = []remedy.Action{
		newAction("See what its pods wait for, and correct that", kubectl+" describe pods -l "+formatSelector(d)),
		newAction("Read the log of the last run", kubectl+" logs deployment/"+d.Name+" --previous"),
	}
	return f, true
}

// formatSelector returns the label selector of a Deployment's pods for kubectl.
func formatSelector(d explain.Deployment) string {
	if d.Deployment.Spec.Selector == nil {
		return ""
	}
	var parts []string
	for _, key := range sortKeys(d.Deployment.Spec.Selector.MatchLabels) {
		parts = append(parts, key+"="+d.Deployment.Spec.Selector.MatchLabels[key])
	}
	return strings.Join(parts, ",")
}

// leaderGrace is how long after the end of the Lease a new leader may be missing: another replica needs time to
// take over.
const leaderGrace = 30 * time.Second

// judgeLeader returns a finding if no replica of the hub leads, by the Lease for the leader election. It returns nil if
// the hub is not installed, if the Lease is on another cluster, or if the Lease could not be read.
func judgeLeader(in Observation) []Finding {
	isUnread := in.Leader == nil && in.hasGap(CheckHub)
	if len(in.Hub.Deployments) == 0 || in.hasLeaderElsewhere() || isUnread {
		return nil
	}
	object := "Lease " + in.Hub.Namespace + "/bellwether-hub"
	text := ""
	switch {
	case in.Leader == nil:
		text = "no replica of the hub has ever led: " + object + " does not exist"
	case ptr.Deref(in.Leader.Spec.HolderIdentity, "") == "" || in.Leader.Spec.RenewTime == nil:
		text = "no replica of the hub leads: no replica holds " + object
	default:
		duration := time.Duration(ptr.Deref(in.Leader.Spec.LeaseDurationSeconds, 0)) * time.Second
		if leaseEnd := in.Leader.Spec.RenewTime.Add(duration); in.Now.After(leaseEnd.Add(leaderGrace)) {
			text = fmt.Sprintf("no replica of the hub has led since %s: %s has not renewed %s",
				phrase.Time(leaseEnd), *in.Leader.Spec.HolderIdentity, object)
		}
	}
	if text == "" {
		return nil
	}
	name := in.Hub.Deployments[0].Name
	return []Finding{{Severity: Critical, Check: CheckHub, Text: text, Objects: []string{object},
		Remedies: []remedy.Action{
			newAction("Read why the replicas do not take the Lease",
				"kubectl -n "+in.Hub.Namespace+" logs deployment/"+name+" --tail=50"),
			newAction("If they hang, start them again",
				"kubectl -n "+in.Hub.Namespace+" rollout restart deployment "+name),
		}}}
}

// hasLeaderElsewhere reports whether the Lease for the leader election is on another cluster.
func (in Observation) hasLeaderElsewhere() bool {
	return slices.ContainsFunc(in.Hub.Deployments, func(d explain.Deployment) bool {
		return d.ReadFlag("leader-election-kubeconfig") != ""
	})
}
