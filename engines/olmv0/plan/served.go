// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// checkOLM reports a cluster without OLM.
func (d *decision) checkOLM(in Input) *finding {
	if in.Cluster.OLM {
		return nil
	}
	return &finding{stalled: true, reason: v1alpha1.ReasonOLMMissing, recheck: recheckProblem,
		message: "The cluster does not serve operators.coreos.com/v1alpha1. Install the Operator Lifecycle Manager " +
			"on it."}
}

// checkOtherNamespaces reports an operator that already runs for all namespaces from another namespace. The agent
// does not change it (olm.md, fact 14).
func (d *decision) checkOtherNamespaces(in Input) *finding {
	if len(in.Cluster.OtherNamespaces) == 0 {
		return nil
	}
	if _, isInstalled := in.Cluster.Installed(); isInstalled {
		return nil
	}
	return &finding{stalled: true, reason: v1alpha1.ReasonInstalledElsewhere, recheck: recheckProblem,
		message: fmt.Sprintf(
			"The operator already runs for all namespaces, installed by %s. Set spec.install.namespace to that "+
				"namespace to manage it there, or remove it there.",
			strings.Join(in.Cluster.OtherNamespaces, ", "))}
}

// checkCatalog reports the problem of the offer.
func (d *decision) checkCatalog(in Input) *finding {
	if in.Offer.Problem == nil {
		return nil
	}
	return &finding{stalled: true, reason: in.Offer.Problem.Reason, message: in.Offer.Problem.Message,
		recheck: recheckProblem}
}

// serveView serves the offered view if another view is served, and returns a finding until the next pass, because the
// CatalogSource needs the address of the view. If the admitted version is blocked and no bundle is installed, there is
// no view to offer, and the served view is stopped.
func (d *decision) serveView(in Input) *finding {
	if in.Offer.Blocked != "" && in.Offer.ViewHash == "" {
		if in.View.Hash != "" {
			d.add(StopServing, "", "", Object{})
		}
		return reportBlocked(in)
	}
	if in.View.Hash == in.Offer.ViewHash {
		return nil
	}
	d.add(Serve, "", "", Object{})
	return &finding{reason: v1alpha1.ReasonProgressing, message: "The catalog view is being served.",
		recheck: recheckSoon}
}

// reportBlocked returns the finding for a blocked version.
func reportBlocked(in Input) *finding {
	return &finding{stalled: true, reason: v1alpha1.ReasonVersionBlocked, message: in.Offer.Blocked,
		recheck: recheckProblem}
}

// ensureNamespace applies the namespace if it is missing, or if Bellwether created it and it is out of sync. It waits
// while the namespace is being deleted.
func (d *decision) ensureNamespace(in Input) *finding {
	name := in.Install.Spec.Admission.Release.TargetNamespace()
	switch ns := in.Cluster.Namespace; {
	case ns.Terminating:
		return &finding{reason: v1alpha1.ReasonNamespaceTerminating, recheck: recheckProblem,
			message: fmt.Sprintf("Namespace %s is being deleted; it is created again once it is gone.", name)}
	case !ns.Exists, ns.Managed && !ns.InSync:
		d.planApply(KindNamespace, name)
	}
	return nil
}

// ensureOperatorGroup applies the OperatorGroup if it is missing, or if Bellwether created it and it is out of sync. It
// accepts a suitable group of another owner, and reports an unsuitable group or several groups. It never deletes a
// group (olm.md, fact 13).
func (d *decision) ensureOperatorGroup(in Input) *finding {
	groups := in.Cluster.OperatorGroups
	release := in.Install.Spec.Admission.Release
	switch {
	case len(groups) == 0:
		d.planApply(KindOperatorGroup, "")
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
		d.planApply(KindOperatorGroup, groups[0].Name)
		return nil
	case !groups[0].Managed && !groups[0].isSuitable(release):
		return &finding{stalled: true, reason: v1alpha1.ReasonOperatorGroupConflict, recheck: recheckProblem,
			message: fmt.Sprintf(
				"OperatorGroup %s/%s does not select the namespaces of install mode %s. Change spec.install.mode, or "+
					"delete that OperatorGroup.",
				release.TargetNamespace(), groups[0].Name, release.Install.Mode)}
	}
	return nil
}

// isSuitable reports whether the group selects the namespaces of the install mode.
func (g OperatorGroup) isSuitable(release v1alpha1.Release) bool {
	if g.Selector {
		return false
	}
	if release.Install.Mode == v1alpha1.InstallOwnNamespace {
		return len(g.Targets) == 1 && g.Targets[0] == release.TargetNamespace()
	}
	return len(g.Targets) == 0
}

// ensureCatalogSource applies the CatalogSource if it is missing or out of sync, and returns a finding until OLM is
// connected to the view. While OLM connects, it already applies the Subscription.
func (d *decision) ensureCatalogSource(in Input) *finding {
	source := in.Cluster.CatalogSource
	switch {
	case source == nil, !source.InSync:
		d.planApply(KindCatalogSource, "")
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

// subscribeEarly applies the Subscription before OLM is connected to the view, so that OLM resolves once it is
// connected. An adopted Subscription keeps its previous catalog until then.
func (d *decision) subscribeEarly(in Input) {
	if sub, ok := in.Cluster.findSubscription(); !ok || !sub.AwaitsView {
		d.ensureSubscription(in)
	}
}

// isViewUnreachable reports whether OLM tries to connect to the view and cannot. Three conditions must hold:
//   - OLM reports for the address of the view that it connects or that it failed. This alone is not enough, because OLM
//     does not update the state at once.
//   - The view has had no connection for longer than viewGrace. This alone is not enough, because OLM may not have
//     begun to connect to a new view.
//   - OLM recorded the state after the last connection ended. Otherwise the state is about an earlier attempt.
func (in Input) isViewUnreachable() bool {
	source := in.Cluster.CatalogSource
	isFailing := source.State == connectionConnecting || source.State == connectionFailed
	// OLM records times in whole seconds, and may fail in the second in which the view was created.
	idleSince := in.Now.Add(-in.View.Idle).Truncate(time.Second)
	return isFailing && source.Address == in.View.Address && in.View.Idle > viewGrace &&
		!source.StateAt.Before(idleSince)
}
