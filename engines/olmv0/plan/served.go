// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func (d *decision) olm(in Input) *finding {
	if in.Cluster.OLM {
		return nil
	}
	return &finding{stalled: true, reason: v1alpha1.ReasonOLMMissing, recheck: recheckProblem,
		message: "The cluster does not serve operators.coreos.com/v1alpha1. Install the Operator Lifecycle Manager " +
			"on it."}
}

// otherNamespaces reports an operator that already runs for all namespaces. It is
// left alone (olm.md, fact 14).
func (d *decision) otherNamespaces(in Input) *finding {
	if len(in.Cluster.Elsewhere) == 0 {
		return nil
	}
	if _, here := in.Cluster.Installed(); here {
		return nil
	}
	return &finding{stalled: true, reason: v1alpha1.ReasonInstalledElsewhere, recheck: recheckProblem,
		message: fmt.Sprintf(
			"The operator already runs for all namespaces, installed by %s. Set spec.install.namespace to that "+
				"namespace to manage it there, or remove it there.",
			strings.Join(in.Cluster.Elsewhere, ", "))}
}

func (d *decision) catalog(in Input) *finding {
	if in.Offer.Problem == nil {
		return nil
	}
	return &finding{stalled: true, reason: in.Offer.Problem.Reason, message: in.Offer.Problem.Message,
		recheck: recheckProblem}
}

// serve brings the view up to date. The CatalogSource needs its address, so
// what comes after waits for the next pass.
func (d *decision) serve(in Input) *finding {
	if in.Offer.Blocked != "" && in.Offer.ViewHash == "" {
		if in.View.Hash != "" {
			d.add(StopServing, "", "", Object{})
		}
		return blocked(in)
	}
	if in.View.Hash == in.Offer.ViewHash {
		return nil
	}
	d.add(Serve, "", "", Object{})
	return &finding{reason: v1alpha1.ReasonProgressing, message: "The catalog view is being served.",
		recheck: recheckSoon}
}

func blocked(in Input) *finding {
	return &finding{stalled: true, reason: v1alpha1.ReasonVersionBlocked, message: in.Offer.Blocked,
		recheck: recheckProblem}
}

func (d *decision) namespace(in Input) *finding {
	name := in.Install.Spec.Admission.Release.TargetNamespace()
	switch ns := in.Cluster.Namespace; {
	case ns.Terminating:
		return &finding{reason: v1alpha1.ReasonNamespaceTerminating, recheck: recheckProblem,
			message: fmt.Sprintf("Namespace %s is being deleted; it is created again once it is gone.", name)}
	case !ns.Exists, ns.Managed && !ns.InSync:
		d.apply(KindNamespace, name)
	}
	return nil
}

// operatorGroup accepts a fitting group that was there before and never deletes
// one (olm.md, fact 13).
func (d *decision) operatorGroup(in Input) *finding {
	groups := in.Cluster.OperatorGroups
	release := in.Install.Spec.Admission.Release
	switch {
	case len(groups) == 0:
		d.apply(KindOperatorGroup, "")
		return nil
	case len(groups) > 1:
		names := make([]string, len(groups))
		for i, g := range groups {
			names[i] = g.Name
		}
		return &finding{stalled: true, reason: v1alpha1.ReasonOperatorGroupConflict, recheck: recheckProblem,
			message: fmt.Sprintf(
				"Namespace %s has %d OperatorGroups (%s) and OLM allows exactly one. Delete all but one.",
				release.TargetNamespace(), len(groups), strings.Join(names, ", "))}
	case groups[0].Managed && !groups[0].InSync:
		d.apply(KindOperatorGroup, groups[0].Name)
		return nil
	case !groups[0].Managed && !groups[0].fits(release):
		return &finding{stalled: true, reason: v1alpha1.ReasonOperatorGroupConflict, recheck: recheckProblem,
			message: fmt.Sprintf(
				"OperatorGroup %s/%s does not select the namespaces of install mode %s. Change spec.install.mode, or "+
					"delete that OperatorGroup.",
				release.TargetNamespace(), groups[0].Name, release.Install.Mode)}
	}
	return nil
}

// fits tells whether the group selects what the install mode watches.
func (g OperatorGroup) fits(release v1alpha1.Release) bool {
	if g.Selector {
		return false
	}
	if release.Install.Mode == v1alpha1.InstallOwnNamespace {
		return len(g.Targets) == 1 && g.Targets[0] == release.TargetNamespace()
	}
	return len(g.Targets) == 0
}

func (d *decision) catalogSource(in Input) *finding {
	source := in.Cluster.CatalogSource
	switch {
	case source == nil, !source.InSync:
		d.apply(KindCatalogSource, "")
		return &finding{reason: v1alpha1.ReasonProgressing, message: "The CatalogSource is being applied.",
			recheck: recheckProblem}
	case in.isViewUnreachable():
		d.subscribeEarly(in)
		return &finding{stalled: true, reason: v1alpha1.ReasonViewUnreachable, recheck: recheckProblem,
			message: fmt.Sprintf("OLM cannot reach the catalog view at %s: it keeps trying, and for more than %s no "+
				"connection has arrived. Until it can, the operator is not upgraded. Check the address from the "+
				"cluster: NetworkPolicies, DNS, the agent's Service, and for a hosted agent firewalls and the load "+
				"balancer.",
				in.View.Address, viewGrace)}
	case source.State != ConnectionReady:
		state := source.State
		if state == "" {
			state = "not made yet"
		}
		d.subscribeEarly(in)
		return &finding{reason: v1alpha1.ReasonCatalogNotReady, recheck: recheckProblem, message: fmt.Sprintf(
			"OLM's connection to the catalog view at %s is %s. If this lasts, OLM's catalog-operator cannot reach "+
				"the agent: check NetworkPolicies and the agent's Service.",
			in.View.Address, state)}
	}
	return nil
}

// subscribeEarly applies the Subscription before OLM is connected to the view: OLM resolves once it is. One that was
// adopted keeps its own catalog until then.
func (d *decision) subscribeEarly(in Input) {
	if sub, ok := in.Cluster.subscription(); !ok || !sub.AwaitsView {
		d.subscription(in)
	}
}

// isViewUnreachable rests on what both ends say: OLM, that it failed to connect while
// nobody was connected, and the view, that nobody has been for long. The one
// alone may be outdated, or the other about a view that OLM has no reason to connect to yet.
// OLM tells times in whole seconds, and may fail in the second in which the view was made.
func (in Input) isViewUnreachable() bool {
	source := in.Cluster.CatalogSource
	return (source.State == connectionConnecting || source.State == connectionFailed) &&
		source.Address == in.View.Address && in.View.Idle > viewGrace &&
		!source.StateAt.Before(in.Now.Add(-in.View.Idle).Truncate(time.Second))
}
