// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/own"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// remove carries out the removal policy. Restore is in takeover.go.
//
// Uninstall deletes the Subscription first, so that OLM does not install again,
// then the CSVs, since OLM leaves them (olm.md, fact 21), then what Bellwether
// created. The namespace is deleted only if Bellwether created it and nothing
// else is in it; CRDs and their objects are kept. The agent itself stays: see package own.
func (d *decision) remove(in Input) {
	admission := in.Install.Spec.Admission
	if in.Install.Spec.RemovalPolicy == v1alpha1.RemovalUninstall && admission != nil &&
		!own.IsAgent(admission.Release.Package) {
		if f := d.uninstall(in); f != nil {
			d.Report.Progress = f.report()
			d.recheck(f.recheck)
			return
		}
	}
	if in.Install.Spec.RemovalPolicy == v1alpha1.RemovalRestore && admission != nil {
		if f := d.restore(in); f != nil {
			d.Report.Progress = f.report()
			d.recheck(f.recheck)
			return
		}
	}
	// What nobody manages any more is not to be adopted by another hub.
	if sub, ok := in.Cluster.subscription(); ok && sub.Keeps {
		d.add(Forget, KindSubscription, sub.Name, sub.Object)
	}
	d.add(StopServing, "", "", Object{})
	d.Report.Removed = true
}

func (d *decision) uninstall(in Input) *finding {
	ns := in.Cluster.Namespace
	if !in.Cluster.OLM || !ns.Exists || ns.Terminating {
		return nil
	}
	if ns.Managed && !ns.Kept && ns.Occupied != "" {
		name := in.Install.Spec.Admission.Release.TargetNamespace()
		d.Actions = append(d.Actions, Action{Verb: Keep, Kind: KindNamespace, Name: name, Object: ns.Object,
			Value: ns.Occupied})
		return uninstalling("Namespace %s is kept, because %s is in it.", name, ns.Occupied)
	}
	if sub, ok := in.Cluster.subscription(); ok {
		d.add(Delete, KindSubscription, sub.Name, sub.Object)
		return uninstalling("Subscription %s is being deleted.", sub.Name)
	}
	if f := d.uninstallCSVs(in); f != nil {
		return f
	}
	if source := in.Cluster.CatalogSource; source != nil && source.Managed {
		d.add(Delete, KindCatalogSource, source.Name, source.Object)
	}
	for _, group := range in.Cluster.OperatorGroups {
		if group.Managed && len(in.Cluster.Subscriptions) == 0 {
			d.add(Delete, KindOperatorGroup, group.Name, group.Object)
		}
	}
	if ns.Managed && !ns.Kept {
		d.add(Delete, KindNamespace, in.Install.Spec.Admission.Release.TargetNamespace(), ns.Object)
	}
	return nil
}

// uninstallCSVs deletes what the removed Subscription left behind: the CSVs
// of the package that no other Subscription refers to. Where there is no CatalogSource of the operator, Bellwether has
// never had a Subscription to it: then others installed the CSVs, and they stay.
func (d *decision) uninstallCSVs(in Input) *finding {
	if source := in.Cluster.CatalogSource; source == nil || !source.Managed {
		return nil
	}
	var f *finding
	for _, csv := range in.Cluster.CSVs {
		if !csv.Ours || slices.ContainsFunc(in.Cluster.Subscriptions, func(s Subscription) bool {
			return s.InstalledCSV == csv.Name || s.CurrentCSV == csv.Name
		}) {
			continue
		}
		if !csv.Deleting {
			d.add(Delete, KindCSV, csv.Name, csv.Object)
		}
		f = uninstalling("ClusterServiceVersion %s is being deleted.", csv.Name)
	}
	return f
}

func uninstalling(format string, args ...any) *finding {
	return &finding{reason: v1alpha1.ReasonUninstalling, message: fmt.Sprintf(format, args...), recheck: recheckSoon}
}
