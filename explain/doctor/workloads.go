// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/phrase"
)

// judgeHub looks at the Deployments of the hub.
func judgeHub(in Observation) []Finding {
	install := run("Install it, or name its namespace with --system-namespace", in.Program+" install hub")
	return judgeDeployments(CheckHub, in.Hub, in.Hub.Deployments, in.gapped(CheckHub), install)
}

// judgeFleetSite looks at the Deployments of the agent and of OLM on a cluster of the fleet.
func judgeFleetSite(in Observation) []Finding {
	if in.Fleet == nil {
		return nil
	}
	join := run("Install the agent, or name its namespace with --system-namespace",
		in.Program+" fleet join CLUSTER --cluster-kubeconfig FILE")
	olm := *in.Fleet
	olm.Component = "OLM"
	return append(judgeDeployments(CheckAgents, *in.Fleet, in.Fleet.Deployments, in.gapped(CheckAgents), join),
		judgeDeployments(CheckOLM, olm, in.Fleet.OLM, in.gapped(CheckOLM), remedy.Action{
			Text: "Install OLM v0, as in https://olm.operatorframework.io/docs/getting-started/"})...)
}

// gapped tells whether a check could not be made completely, so that nothing seen is not nothing there.
func (in Observation) gapped(check Check) bool {
	for _, g := range in.Gaps {
		if g.Check == check {
			return true
		}
	}
	return false
}

func judgeDeployments(check Check, s Site, deployments []explain.Deployment, gapped bool,
	install remedy.Action) []Finding {
	if len(deployments) == 0 && !gapped {
		text := fmt.Sprintf("there is no Deployment of %s on %s", s.Component, s.Name)
		if s.Component != "OLM" {
			text = fmt.Sprintf("there is no Deployment of the %s in namespace %s on %s", s.Component, s.Namespace,
				s.Name)
		}
		return []Finding{{Severity: Critical, Check: check, Text: text, Remedies: []remedy.Action{install}}}
	}
	var findings []Finding
	for _, d := range deployments {
		if f, bad := judgeDeployment(check, s, d); bad {
			findings = append(findings, f)
		}
	}
	return findings
}

// judgeDeployment says what is wrong with one Deployment. It is critical if no replica is available.
func judgeDeployment(check Check, s Site, d explain.Deployment) (Finding, bool) {
	namespace := d.Deployment.Namespace
	kubectl := strings.TrimSpace("kubectl "+s.Flags) + " -n " + namespace
	f := Finding{Severity: Critical, Check: check, Objects: []string{"Deployment " + namespace + "/" + d.Name}}
	if ptr.Deref(d.Deployment.Spec.Replicas, 1) == 0 {
		f.Text = fmt.Sprintf("Deployment %s/%s on %s is scaled to 0 replicas, so it does not run", namespace, d.Name,
			s.Name)
		f.Remedies = []remedy.Action{run("Start it", kubectl+" scale deployment "+d.Name+" --replicas=1")}
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
		run("See what its pods wait for, and correct that", kubectl+" describe pods -l "+selector(d)),
		run("Read the log of the last run", kubectl+" logs deployment/"+d.Name+" --previous"),
	}
	return f, true
}

// selector is that of a Deployment's pods, for kubectl.
func selector(d explain.Deployment) string {
	if d.Deployment.Spec.Selector == nil {
		return ""
	}
	var parts []string
	for _, key := range sortedKeys(d.Deployment.Spec.Selector.MatchLabels) {
		parts = append(parts, key+"="+d.Deployment.Spec.Selector.MatchLabels[key])
	}
	return strings.Join(parts, ",")
}

// leaderGrace is how long after the end of its Lease a leader is missed: another replica needs some time to take over.
const leaderGrace = 30 * time.Second

// judgeLeader looks at the Lease that replicas of the hub agree through.
func judgeLeader(in Observation) []Finding {
	if len(in.Hub.Deployments) == 0 || in.LeaderElsewhere || in.Leader == nil && in.gapped(CheckHub) {
		return nil
	}
	object := "Lease " + in.Hub.Namespace + "/bellwether-hub"
	text := ""
	switch {
	case in.Leader == nil:
		text = "no replica of the hub has ever led: " + object + " does not exist"
	case ptr.Deref(in.Leader.Spec.HolderIdentity, "") == "" || in.Leader.Spec.RenewTime == nil:
		text = "no replica of the hub leads: nobody holds " + object
	default:
		valid := time.Duration(ptr.Deref(in.Leader.Spec.LeaseDurationSeconds, 0)) * time.Second
		if ends := in.Leader.Spec.RenewTime.Add(valid); in.Now.After(ends.Add(leaderGrace)) {
			text = fmt.Sprintf("no replica of the hub has led since %s: %s has not renewed %s",
				phrase.Time(ends), *in.Leader.Spec.HolderIdentity, object)
		}
	}
	if text == "" {
		return nil
	}
	name := in.Hub.Deployments[0].Name
	return []Finding{{Severity: Critical, Check: CheckHub, Text: text, Objects: []string{object},
		Remedies: []remedy.Action{
			run("Read why the replicas do not take the Lease",
				"kubectl -n "+in.Hub.Namespace+" logs deployment/"+name+" --tail=50"),
			run("If they hang, start them again",
				"kubectl -n "+in.Hub.Namespace+" rollout restart deployment "+name),
		}}}
}
