// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// remove carries out the removal policy, then lets the OperatorInstall go.
//
// Uninstall takes the Subscription first, so that OLM does not install again,
// then the CSVs, since OLM leaves them (olm.md, fact 21), then what Bellwether
// made. The namespace goes only if Bellwether made it and nothing else is in
// it; CRDs and their objects are kept.
func (d *Decision) remove(in Input) {
	if !slices.Contains(in.Install.Finalizers, v1alpha1.FinalizerAgent) {
		return
	}
	if in.Install.Spec.RemovalPolicy != v1alpha1.RemovalUninstall || in.Install.Spec.Admission == nil {
		d.do(Unserve, "", "")
		d.do(LetGo, "", "")
		return
	}
	if f := d.uninstall(in); f != nil {
		d.summarize(*f)
		return
	}
	d.do(Unserve, "", "")
	d.do(LetGo, "", "")
}

func (d *Decision) uninstall(in Input) *finding {
	ns := in.Cluster.Namespace
	if !in.Cluster.OLM || !ns.Exists || ns.Terminating {
		return nil
	}
	if ns.Managed && !ns.Kept && ns.Occupied != "" {
		d.do(Keep, KindNamespace, in.Install.Spec.Admission.Release.TargetNamespace())
		return uninstalling("The namespace is kept, because %s is in it.", ns.Occupied)
	}
	if sub, ok := in.Cluster.subscription(); ok {
		d.do(Delete, KindSubscription, sub.Name)
		return uninstalling("Subscription %s is being deleted.", sub.Name)
	}
	if f := d.uninstallCSVs(in); f != nil {
		return f
	}
	if source := in.Cluster.CatalogSource; source != nil && source.Managed {
		d.do(Delete, KindCatalogSource, source.Name)
	}
	for _, group := range in.Cluster.OperatorGroups {
		if group.Managed && len(in.Cluster.Subscriptions) == 0 {
			d.do(Delete, KindOperatorGroup, group.Name)
		}
	}
	if ns.Managed && !ns.Kept {
		d.do(Delete, KindNamespace, in.Install.Spec.Admission.Release.TargetNamespace())
	}
	return nil
}

// uninstallCSVs deletes what the removed Subscription left behind: the CSVs
// of the package that no other Subscription refers to.
func (d *Decision) uninstallCSVs(in Input) *finding {
	var f *finding
	for _, csv := range in.Cluster.CSVs {
		if !csv.Ours || slices.ContainsFunc(in.Cluster.Subscriptions, func(s Subscription) bool {
			return s.InstalledCSV == csv.Name || s.CurrentCSV == csv.Name
		}) {
			continue
		}
		if !csv.Deleting {
			d.do(Delete, KindCSV, csv.Name)
		}
		f = uninstalling("ClusterServiceVersion %s is being deleted.", csv.Name)
	}
	return f
}

func uninstalling(format string, args ...any) *finding {
	return &finding{reason: v1alpha1.ReasonUninstalling, message: fmt.Sprintf(format, args...), recheck: recheckSoon}
}
