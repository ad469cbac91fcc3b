// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// begin gives the cluster what others have installed before, as an ordinary Subscription leaves it.
func (o *operator) begin(pkg *catalogs.Package, release v1alpha1.Release) {
	o.mu.Lock()
	defer o.mu.Unlock()
	bundle, known := pkg.Bundles[o.behaviour.existing(o.cluster)]
	if o.begun || !known {
		return
	}
	o.begun = true
	o.state.Namespace = plan.Namespace{Object: o.object(), Exists: true}
	group := plan.OperatorGroup{Object: o.object(), Name: "existing"}
	if release.Install.Mode == v1alpha1.InstallOwnNamespace {
		group.Targets = []string{release.TargetNamespace()}
	}
	o.state.OperatorGroups = []plan.OperatorGroup{group}
	o.state.Subscriptions = []plan.Subscription{{Object: o.object(), Name: "existing", Package: release.Package,
		InstalledCSV: bundle.Name, CurrentCSV: bundle.Name}}
	o.state.CSVs = []plan.CSV{{Object: o.object(), Name: bundle.Name, Version: bundle.VersionString(),
		Phase: string(operatorsv1alpha1.CSVPhaseSucceeded), Created: o.now(), Since: o.now(), IsOfPackage: true}}
	o.state.Deployments = []plan.Deployment{{Object: o.object(), Name: "operator", Replicas: 1, Configured: true}}
}

// scanOf reports what OLM has on a cluster, as an agent's Finder does.
func scanOf(release v1alpha1.Release, c plan.Cluster) *v1alpha1.OperatorScanStatus {
	scan := &v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMServed}
	namespace := v1alpha1.FoundNamespace{Name: release.TargetNamespace()}
	for _, g := range c.OperatorGroups {
		namespace.OperatorGroups = append(namespace.OperatorGroups,
			v1alpha1.FoundOperatorGroup{Name: g.Name, Targets: g.Targets})
	}
	for _, s := range c.Subscriptions {
		found := v1alpha1.FoundOperator{Namespace: namespace.Name, Managed: s.IsOwn,
			Subscription: &v1alpha1.FoundSubscription{Name: s.Name, Package: s.Package, Channel: release.Channel,
				Approval: string(operatorsv1alpha1.ApprovalAutomatic), InstalledCSV: s.InstalledCSV,
				CurrentCSV: s.CurrentCSV}}
		for _, csv := range c.CSVs {
			if csv.Name == s.InstalledCSV {
				found.CSV = &v1alpha1.FoundCSV{Name: csv.Name, Version: csv.Version, Phase: csv.Phase}
			}
		}
		scan.Operators, scan.Namespaces = append(scan.Operators, found), []v1alpha1.FoundNamespace{namespace}
	}
	return scan
}
