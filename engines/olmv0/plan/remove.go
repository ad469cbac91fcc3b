// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// planRemoval plans to carry out the removal policy. Policy Restore is in takeover.go.
//
// Policy Uninstall deletes the Subscription first, so that OLM does not install the operator again, then the CSVs,
// because OLM does not delete them (olm.md, fact 21), and then the objects that Bellwether created. It deletes the
// namespace only if Bellwether created it and it has no other objects. It keeps CRDs and their objects. The agent
// itself stays; see v1alpha1.AgentPackage.
func (d *decision) planRemoval(in Input) {
	admission := in.Install.Spec.Admission
	if in.Install.Spec.RemovalPolicy == v1alpha1.RemovalUninstall && admission != nil &&
		!v1alpha1.IsAgent(admission.Release.Package) {
		if f := d.uninstall(in); f != nil {
			d.Report.Progress = f.toFinding()
			d.scheduleRecheck(f.recheck)
			return
		}
	}
	if in.Install.Spec.RemovalPolicy == v1alpha1.RemovalRestore && admission != nil {
		if f := d.restore(in); f != nil {
			d.Report.Progress = f.toFinding()
			d.scheduleRecheck(f.recheck)
			return
		}
	}
	// The record is removed, because a hub takes over an operator that has a record.
	if sub, ok := in.Cluster.findSubscription(); ok && sub.Keeps {
		d.add(Forget, KindSubscription, sub.Name, sub.Object)
	}
	d.add(StopServing, "", "", Object{})
	d.Report.Removed = true
}

// uninstall plans the next step of policy Uninstall. It returns nil once the last step is planned, and also if OLM or
// the namespace is missing, because there is nothing to uninstall then. A namespace with other objects is first marked
// to be kept, so that it stays even if these objects disappear during the removal.
func (d *decision) uninstall(in Input) *finding {
	ns := in.Cluster.Namespace
	if !in.Cluster.OLM || !ns.Exists || ns.Terminating {
		return nil
	}
	if ns.Managed && !ns.Kept && ns.Occupied != "" {
		name := in.Install.Spec.Admission.Release.TargetNamespace()
		d.Actions = append(d.Actions, Action{Verb: Keep, Kind: KindNamespace, Name: name, Object: ns.Object,
			Value: ns.Occupied})
		return reportUninstalling("Namespace %s is kept, because %s is in it.", name, ns.Occupied)
	}
	if sub, ok := in.Cluster.findSubscription(); ok {
		d.add(Delete, KindSubscription, sub.Name, sub.Object)
		return reportUninstalling("Subscription %s is being deleted.", sub.Name)
	}
	if f := d.uninstallCSVs(in); f != nil {
		return f
	}
	if source := in.Cluster.CatalogSource; source != nil && source.Managed {
		d.add(Delete, KindCatalogSource, source.Name, source.Object)
	}
	for _, group := range in.Cluster.OperatorGroups {
		if group.Managed && len(in.Cluster.Subscriptions) == 0 { // other Subscriptions would still need the group
			d.add(Delete, KindOperatorGroup, group.Name, group.Object)
		}
	}
	if ns.Managed && !ns.Kept {
		d.add(Delete, KindNamespace, in.Install.Spec.Admission.Release.TargetNamespace(), ns.Object)
	}
	return nil
}

// uninstallCSVs deletes the CSVs of the package that no Subscription refers to. It returns a finding until the CSVs are
// gone, and nil after that. If the operator has no CatalogSource of Bellwether, Bellwether never subscribed to the
// package: then others installed the CSVs, and the CSVs stay.
func (d *decision) uninstallCSVs(in Input) *finding {
	if source := in.Cluster.CatalogSource; source == nil || !source.Managed {
		return nil
	}
	var f *finding
	for _, csv := range in.Cluster.CSVs {
		if !csv.IsOfPackage || slices.ContainsFunc(in.Cluster.Subscriptions, func(s Subscription) bool {
			return s.InstalledCSV == csv.Name || s.CurrentCSV == csv.Name
		}) {
			continue
		}
		if !csv.Deleting {
			d.add(Delete, KindCSV, csv.Name, csv.Object)
		}
		f = reportUninstalling("ClusterServiceVersion %s is being deleted.", csv.Name)
	}
	return f
}

// reportUninstalling returns a finding for a removal that continues soon.
func reportUninstalling(format string, args ...any) *finding {
	return &finding{reason: v1alpha1.ReasonUninstalling, message: fmt.Sprintf(format, args...), recheck: recheckSoon}
}
