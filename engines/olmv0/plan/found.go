// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Inventory is everything of OLM on a cluster, as the caches have it.
type Inventory struct {
	Subscriptions  []Live[operatorsv1alpha1.Subscription]
	CSVs           []operatorsv1alpha1.ClusterServiceVersion
	InstallPlans   []operatorsv1alpha1.InstallPlan
	OperatorGroups []Live[operatorsv1.OperatorGroup]
	CatalogSources []Live[operatorsv1alpha1.CatalogSource]
	Deployments    []appsv1.Deployment
	Definitions    []metav1.PartialObjectMetadata
}

// packageServerCSV is the CSV by which OLM manages itself. It has no Subscription.
const packageServerCSV = "packageserver"

// ToScan returns the inventory in the form of a scan: one operator for each Subscription with its CSVs, and one
// operator for each CSV without a Subscription. It leaves out OLM's own CSV and copied CSVs. It applies no limits and
// does not set the time.
func (inventory *Inventory) ToScan() v1alpha1.OperatorScanStatus {
	out := v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMServed}
	assigned := map[types.NamespacedName]bool{}
	for i := range inventory.Subscriptions {
		o := inventory.describeOperator(&inventory.Subscriptions[i])
		for _, other := range o.Others {
			assigned[types.NamespacedName{Namespace: o.Namespace, Name: other.Name}] = true
		}
		if o.CSV != nil {
			assigned[types.NamespacedName{Namespace: o.Namespace, Name: o.CSV.Name}] = true
		}
		out.Operators = append(out.Operators, o)
	}
	for i := range inventory.CSVs {
		csv := &inventory.CSVs[i]
		if !assigned[types.NamespacedName{Namespace: csv.Namespace, Name: csv.Name}] && csv.Name != packageServerCSV &&
			!csv.IsCopied() {
			out.Operators = append(out.Operators, v1alpha1.FoundOperator{Namespace: csv.Namespace,
				CSV: inventory.describeCSV(csv)})
		}
	}
	slices.SortFunc(out.Operators, compareFound)
	for _, o := range out.Operators {
		out.Counts.Operators++
		if o.Managed {
			out.Counts.Managed++
		}
	}
	out.Namespaces = inventory.listNamespaces(out.Operators)
	out.CatalogSources = inventory.listCatalogSources()
	out.OwnerlessDefinitions = inventory.listOwnerlessDefinitions()
	return out
}

// compareFound orders operators by namespace and name.
func compareFound(a, b v1alpha1.FoundOperator) int {
	name := func(o v1alpha1.FoundOperator) string {
		if o.Subscription != nil {
			return o.Subscription.Name
		}
		return o.CSV.Name
	}
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(name(a), name(b)))
}

// describeOperator returns the operator of a Subscription with its CSVs.
func (inventory *Inventory) describeOperator(live *Live[operatorsv1alpha1.Subscription]) v1alpha1.FoundOperator {
	sub := &live.Decoded
	o := v1alpha1.FoundOperator{Namespace: sub.Namespace, Subscription: describeSubscription(live),
		Managed: isManaged(sub)}
	if name := sub.Labels[v1alpha1.LabelOperator]; o.Managed && name != "" {
		o.Operator = &v1alpha1.OperatorReference{Namespace: sub.Labels[v1alpha1.LabelOperatorNamespace], Name: name}
	}
	csv := cmp.Or(inventory.findCSV(sub.Namespace, sub.Status.InstalledCSV),
		inventory.findCSV(sub.Namespace, sub.Status.CurrentCSV))
	if csv == nil {
		return o
	}
	o.CSV = inventory.describeCSV(csv)
	for i := range inventory.CSVs {
		other := &inventory.CSVs[i] // a version before or after csv, during an upgrade
		if other.Namespace == sub.Namespace && other.Name != csv.Name && (other.Name == sub.Status.CurrentCSV ||
			other.Spec.Replaces == csv.Name || csv.Spec.Replaces == other.Name) {
			o.Others = append(o.Others, v1alpha1.FoundVersion{Name: other.Name, Phase: string(other.Status.Phase)})
		}
	}
	slices.SortFunc(o.Others, func(a, b v1alpha1.FoundVersion) int { return cmp.Compare(a.Name, b.Name) })
	return o
}

// findCSV returns a CSV; nil if it does not exist.
func (inventory *Inventory) findCSV(namespace, name string) *operatorsv1alpha1.ClusterServiceVersion {
	for i := range inventory.CSVs {
		if inventory.CSVs[i].Namespace == namespace && inventory.CSVs[i].Name == name {
			return &inventory.CSVs[i]
		}
	}
	return nil
}

// supportedConfig are the fields of a Subscription's configuration that a ManagedOperator can have
// too (OperatorConfig).
var supportedConfig = []string{"env", "resources", "nodeSelector", "tolerations"}

// describeSubscription returns a Subscription in the form of a scan.
func describeSubscription(live *Live[operatorsv1alpha1.Subscription]) *v1alpha1.FoundSubscription {
	sub := &live.Decoded
	config, _, _ := unstructured.NestedMap(live.Raw.Object, "spec", "config")
	out := &v1alpha1.FoundSubscription{
		Name: sub.Name, InstalledCSV: sub.Status.InstalledCSV, CurrentCSV: sub.Status.CurrentCSV,
		Config: slices.Sorted(maps.Keys(config)), GitOps: findGitOpsTool(sub.Labels, sub.Annotations),
		Writers:    listWriters(sub),
		Finalizers: sub.Finalizers, Deleting: sub.DeletionTimestamp != nil,
		NotResolved: cmp.Or(readConditionMessage(sub, operatorsv1alpha1.SubscriptionResolutionFailed),
			readConditionMessage(sub, operatorsv1alpha1.SubscriptionBundleUnpackFailed)),
	}
	for _, field := range out.Config {
		if !slices.Contains(supportedConfig, field) {
			out.ConfigNotSupported = append(out.ConfigNotSupported, field)
		}
	}
	if sub.Status.InstallPlanRef != nil {
		out.InstallPlan = sub.Status.InstallPlanRef.Name
	}
	if spec := sub.Spec; spec != nil {
		out.Package, out.Channel, out.StartingCSV = spec.Package, spec.Channel, spec.StartingCSV
		out.Source, out.SourceNamespace = spec.CatalogSource, spec.CatalogSourceNamespace
		out.Approval = string(cmp.Or(spec.InstallPlanApproval, operatorsv1alpha1.ApprovalAutomatic))
		out.Settings = v1alpha1.SettingsOf(readSettings(spec.Config))
		// OLM names the Subscriptions that it makes for dependencies like this (NewSubscriptionStepResource).
		out.Dependency = sub.Name == strings.Join([]string{spec.Package, spec.Channel, spec.CatalogSource,
			spec.CatalogSourceNamespace}, "-")
	}
	return out
}

// readSettings returns the settings that a ManagedOperator can have too; nil if there are none.
func readSettings(c *operatorsv1alpha1.SubscriptionConfig) *v1alpha1.OperatorConfig {
	if c == nil || len(c.Env) == 0 && c.Resources == nil && len(c.NodeSelector) == 0 && len(c.Tolerations) == 0 {
		return nil
	}
	return &v1alpha1.OperatorConfig{Env: c.Env, Resources: c.Resources, NodeSelector: c.NodeSelector,
		Tolerations: c.Tolerations}
}

// listWriters returns the field managers of an object, sorted. The caches have only the field managers of the spec.
func listWriters(o metav1.Object) []string {
	var out []string
	for _, f := range o.GetManagedFields() {
		out = append(out, f.Manager)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// findGitOpsTool returns the name of the tool that writes an object from a repository or a release, and in parentheses
// the tool's own object. It finds the tool by labels and annotations; the result is empty if there are none.
func findGitOpsTool(labels, annotations map[string]string) string {
	switch {
	case annotations["argocd.argoproj.io/tracking-id"] != "":
		app, _, _ := strings.Cut(annotations["argocd.argoproj.io/tracking-id"], ":")
		return "Argo CD (" + app + ")"
	case labels["argocd.argoproj.io/instance"] != "":
		return "Argo CD (" + labels["argocd.argoproj.io/instance"] + ")"
	case labels["kustomize.toolkit.fluxcd.io/name"] != "":
		return "Flux (Kustomization " + labels["kustomize.toolkit.fluxcd.io/namespace"] + "/" +
			labels["kustomize.toolkit.fluxcd.io/name"] + ")"
	case labels["helm.toolkit.fluxcd.io/name"] != "":
		return "Flux (HelmRelease " + labels["helm.toolkit.fluxcd.io/namespace"] + "/" +
			labels["helm.toolkit.fluxcd.io/name"] + ")"
	case annotations["meta.helm.sh/release-name"] != "":
		return "Helm (release " + annotations["meta.helm.sh/release-namespace"] + "/" +
			annotations["meta.helm.sh/release-name"] + ")"
	case labels["app.kubernetes.io/managed-by"] == "Helm":
		return "Helm"
	case labels["hive.openshift.io/managed"] == "true":
		return "a SyncSet of Hive"
	}
	return ""
}

// olmWriters are OLM's field managers: the names of its programs.
var olmWriters = []string{"catalog", "olm", "package-server"}

// cleanupFinalizer is the finalizer that OLM puts on each CSV.
const cleanupFinalizer = "operators.coreos.com/csv-cleanup"

// describeCSV returns a CSV in the form of a scan. It lists only the field managers and finalizers that are neither
// OLM's nor the agent's.
func (inventory *Inventory) describeCSV(csv *operatorsv1alpha1.ClusterServiceVersion) *v1alpha1.FoundCSV {
	out := &v1alpha1.FoundCSV{Name: csv.Name, Version: csv.Spec.Version.String(), Phase: string(csv.Status.Phase),
		Replaces: csv.Spec.Replaces, Deleting: csv.DeletionTimestamp != nil,
		Deployments: inventory.listDeployments(csv)}
	if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
		out.Reason, out.Message = string(csv.Status.Reason), csv.Status.Message
	}
	for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
		out.Owned = append(out.Owned, v1alpha1.FoundDefinition{Name: d.Name, Version: d.Version, Kind: d.Kind})
		if !inventory.isDefined(d.Name) && !slices.Contains(out.Missing, d.Name) {
			out.Missing = append(out.Missing, d.Name)
		}
	}
	for _, d := range csv.Spec.CustomResourceDefinitions.Required {
		out.Required = append(out.Required, d.Name)
	}
	for _, w := range listWriters(csv) {
		if !slices.Contains(olmWriters, w) && w != FieldOwner {
			out.EditedBy = append(out.EditedBy, w)
		}
	}
	for _, f := range csv.Finalizers {
		if f != cleanupFinalizer {
			out.Finalizers = append(out.Finalizers, f)
		}
	}
	return out
}

// isDefined reports whether the cluster has a CustomResourceDefinition.
func (inventory *Inventory) isDefined(name string) bool {
	return slices.ContainsFunc(inventory.Definitions,
		func(m metav1.PartialObjectMetadata) bool { return m.Name == name })
}

// listDeployments returns the Deployments that OLM made for a CSV, sorted by name.
func (inventory *Inventory) listDeployments(csv *operatorsv1alpha1.ClusterServiceVersion) []v1alpha1.FoundDeployment {
	specified := map[string]int32{}
	for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		specified[d.Name] = countReplicas(d.Spec.Replicas)
	}
	var out []v1alpha1.FoundDeployment
	for i := range inventory.Deployments {
		d := &inventory.Deployments[i]
		bundle, ok := specified[d.Name]
		if !ok || d.Namespace != csv.Namespace || d.Labels[LabelOwner] != csv.Name {
			continue
		}
		out = append(out, v1alpha1.FoundDeployment{Name: d.Name, Replicas: countReplicas(d.Spec.Replicas),
			Ready: d.Status.AvailableReplicas, Bundle: bundle})
	}
	slices.SortFunc(out, func(a, b v1alpha1.FoundDeployment) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// countReplicas returns the replicas of a Deployment; 1 if they are not set.
func countReplicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// listNamespaces returns the namespaces of operators, which must be sorted by namespace.
func (inventory *Inventory) listNamespaces(operators []v1alpha1.FoundOperator) []v1alpha1.FoundNamespace {
	var out []v1alpha1.FoundNamespace
	usedPlans := map[string]bool{} // the InstallPlans that Subscriptions refer to, as namespace/name
	for _, o := range operators {
		if len(out) == 0 || out[len(out)-1].Name != o.Namespace {
			out = append(out, v1alpha1.FoundNamespace{Name: o.Namespace})
		}
		if o.Subscription != nil {
			usedPlans[o.Namespace+"/"+o.Subscription.InstallPlan] = true
		}
	}
	for i := range out {
		inventory.fillNamespace(&out[i], usedPlans)
	}
	return out
}

// fillNamespace adds the OperatorGroups of a namespace and its open InstallPlans. used has the InstallPlans, as
// namespace/name, that Subscriptions refer to.
func (inventory *Inventory) fillNamespace(n *v1alpha1.FoundNamespace, usedPlans map[string]bool) {
	for i := range inventory.OperatorGroups {
		if g := &inventory.OperatorGroups[i].Decoded; g.Namespace == n.Name {
			n.OperatorGroups = append(n.OperatorGroups, v1alpha1.FoundOperatorGroup{Name: g.Name,
				Targets: slices.Sorted(slices.Values(g.Spec.TargetNamespaces)), Selector: g.Spec.Selector != nil,
				ServiceAccount: g.Spec.ServiceAccountName})
		}
	}
	for j := range inventory.InstallPlans {
		p := &inventory.InstallPlans[j]
		if p.Namespace == n.Name && isOpen(p, usedPlans[n.Name+"/"+p.Name]) {
			n.InstallPlans = append(n.InstallPlans, v1alpha1.FoundInstallPlan{Name: p.Name,
				Phase: string(p.Status.Phase), Approved: p.Spec.Approved,
				CSVs: slices.Sorted(slices.Values(p.Spec.ClusterServiceVersionNames))})
		}
	}
	slices.SortFunc(n.OperatorGroups, func(a, b v1alpha1.FoundOperatorGroup) int {
		return cmp.Compare(a.Name, b.Name)
	})
	slices.SortFunc(n.InstallPlans, func(a, b v1alpha1.FoundInstallPlan) int { return cmp.Compare(a.Name, b.Name) })
}

// isOpen reports whether OLM may still carry out an InstallPlan. OLM keeps failed plans; a failed plan is open only
// while a Subscription refers to it.
func isOpen(p *operatorsv1alpha1.InstallPlan, isReferenced bool) bool {
	switch p.Status.Phase {
	case operatorsv1alpha1.InstallPlanPhaseComplete:
		return false
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		return isReferenced
	}
	return true
}

// listCatalogSources returns the CatalogSources in the form of a scan, sorted.
func (inventory *Inventory) listCatalogSources() []v1alpha1.FoundCatalogSource {
	var out []v1alpha1.FoundCatalogSource
	for i := range inventory.CatalogSources {
		c := &inventory.CatalogSources[i].Decoded
		found := v1alpha1.FoundCatalogSource{Namespace: c.Namespace, Name: c.Name, Image: c.Spec.Image,
			Managed: isManaged(c)}
		if state := c.Status.GRPCConnectionState; state != nil {
			found.State = state.LastObservedState
		}
		out = append(out, found)
	}
	slices.SortFunc(out, func(a, b v1alpha1.FoundCatalogSource) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// labelOLMManaged is the label on the CustomResourceDefinitions that OLM made.
const labelOLMManaged = "olm.managed"

// listOwnerlessDefinitions returns the CustomResourceDefinitions that OLM made and no CSV owns, sorted.
func (inventory *Inventory) listOwnerlessDefinitions() []string {
	owned := map[string]bool{}
	for _, csv := range inventory.CSVs {
		for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
			owned[d.Name] = true
		}
	}
	var out []string
	for _, d := range inventory.Definitions {
		if d.Labels[labelOLMManaged] == "true" && !owned[d.Name] {
			out = append(out, d.Name)
		}
	}
	slices.Sort(out)
	return out
}
