// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package olmv0

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/olmv0/plan"
)

// Finder finds what operators OLM runs on a cluster, whoever installed them. It reads from the agent's caches and
// decides nothing: package adoption judges what it finds.
type Finder struct {
	// Local reads from the caches of the cluster.
	Local client.Reader
	// OLM tells whether the cluster serves OLM's API, if that is known already.
	OLM func() (served, known bool)
}

// inventory is everything of OLM on a cluster.
type inventory struct {
	subscriptions []*subscribed
	csvs          []operatorsv1alpha1.ClusterServiceVersion
	plans         []operatorsv1alpha1.InstallPlan
	groups        []operatorsv1.OperatorGroup
	sources       []operatorsv1alpha1.CatalogSource
	deployments   []appsv1.Deployment
	definitions   []metav1.PartialObjectMetadata
}

// subscribed is a Subscription with the names of the fields that its configuration sets.
type subscribed struct {
	operatorsv1alpha1.Subscription
	config []string
}

// Find returns what OLM has on the cluster, without any bound, and without the time. It returns engines.ErrNotReady
// while it is not known whether there is an OLM.
func (f *Finder) Find(ctx context.Context) (v1alpha1.OperatorScanStatus, error) {
	served, known := f.OLM()
	switch {
	case !known:
		return v1alpha1.OperatorScanStatus{}, engines.ErrNotReady
	case !served:
		return v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMNotServed}, nil
	}
	all, err := f.read(ctx)
	if err != nil {
		return v1alpha1.OperatorScanStatus{}, err
	}
	return all.found(), nil
}

func (f *Finder) read(ctx context.Context) (*inventory, error) {
	all := &inventory{}
	var (
		csvs        operatorsv1alpha1.ClusterServiceVersionList
		plans       operatorsv1alpha1.InstallPlanList
		deployments appsv1.DeploymentList
	)
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(definitionMeta().GroupVersionKind())
	for _, list := range []client.ObjectList{&csvs, &plans, &deployments, definitions} {
		// Nothing here is changed, and the copies would be the most expensive part.
		if err := f.Local.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	all.csvs, all.plans, all.deployments = csvs.Items, plans.Items, deployments.Items
	all.definitions = definitions.Items
	err := f.each(ctx, plan.KindSubscription, func(o *unstructured.Unstructured) error {
		sub := &subscribed{}
		config, _, _ := unstructured.NestedMap(o.Object, "spec", "config")
		sub.config = slices.Sorted(maps.Keys(config))
		all.subscriptions = append(all.subscriptions, sub)
		return decode(o, &sub.Subscription)
	})
	if err != nil {
		return nil, err
	}
	err = f.each(ctx, plan.KindOperatorGroup, func(o *unstructured.Unstructured) error {
		all.groups = append(all.groups, operatorsv1.OperatorGroup{})
		return decode(o, &all.groups[len(all.groups)-1])
	})
	if err != nil {
		return nil, err
	}
	return all, f.each(ctx, plan.KindCatalogSource, func(o *unstructured.Unstructured) error {
		all.sources = append(all.sources, operatorsv1alpha1.CatalogSource{})
		return decode(o, &all.sources[len(all.sources)-1])
	})
}

// each reads the objects of a kind that the agent caches as they are.
func (f *Finder) each(ctx context.Context, kind string, read func(*unstructured.Unstructured) error) error {
	list := &unstructured.UnstructuredList{}
	gvk := kinds[kind]
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(kind + "List"))
	if err := f.Local.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list %ss: %w", kind, err)
	}
	for i := range list.Items {
		if err := read(&list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func decode(from *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
		return fmt.Errorf("read %s %s/%s: %w", from.GetKind(), from.GetNamespace(), from.GetName(), err)
	}
	return nil
}

// ownCSV is the CSV by which OLM manages itself. It has no Subscription, and belongs to OLM.
const ownCSV = "packageserver"

// found puts together what belongs together.
func (all *inventory) found() v1alpha1.OperatorScanStatus {
	out := v1alpha1.OperatorScanStatus{OLM: v1alpha1.OLMServed}
	taken := map[client.ObjectKey]bool{}
	for _, sub := range all.subscriptions {
		o := all.operator(sub)
		for _, other := range o.Others {
			taken[client.ObjectKey{Namespace: o.Namespace, Name: other.Name}] = true
		}
		if o.CSV != nil {
			taken[client.ObjectKey{Namespace: o.Namespace, Name: o.CSV.Name}] = true
		}
		out.Operators = append(out.Operators, o)
	}
	for i := range all.csvs {
		csv := &all.csvs[i]
		if !taken[client.ObjectKeyFromObject(csv)] && csv.Name != ownCSV && !csv.IsCopied() {
			out.Operators = append(out.Operators, v1alpha1.FoundOperator{Namespace: csv.Namespace, CSV: all.csv(csv)})
		}
	}
	slices.SortFunc(out.Operators, compareFound)
	for _, o := range out.Operators {
		out.Counts.Operators++
		if o.Managed {
			out.Counts.Managed++
		}
	}
	out.Namespaces = all.namespaces(out.Operators)
	out.CatalogSources = all.catalogSources()
	out.OwnerlessDefinitions = all.ownerless()
	return out
}

func compareFound(a, b v1alpha1.FoundOperator) int {
	name := func(o v1alpha1.FoundOperator) string {
		if o.Subscription != nil {
			return o.Subscription.Name
		}
		return o.CSV.Name
	}
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(name(a), name(b)))
}

// operator is a Subscription with its CSVs.
func (all *inventory) operator(sub *subscribed) v1alpha1.FoundOperator {
	o := v1alpha1.FoundOperator{Namespace: sub.Namespace, Subscription: sub.found(),
		Managed: managed(&sub.Subscription)}
	if name := sub.Labels[v1alpha1.LabelOperator]; o.Managed && name != "" {
		o.Operator = &v1alpha1.OperatorReference{Namespace: sub.Labels[v1alpha1.LabelOperatorNamespace], Name: name}
	}
	csv := cmp.Or(all.findCSV(sub.Namespace, sub.Status.InstalledCSV),
		all.findCSV(sub.Namespace, sub.Status.CurrentCSV))
	if csv == nil {
		return o
	}
	o.CSV = all.csv(csv)
	for i := range all.csvs {
		other := &all.csvs[i]
		if other.Namespace == sub.Namespace && other.Name != csv.Name && (other.Name == sub.Status.CurrentCSV ||
			other.Spec.Replaces == csv.Name || csv.Spec.Replaces == other.Name) {
			o.Others = append(o.Others, v1alpha1.FoundVersion{Name: other.Name, Phase: string(other.Status.Phase)})
		}
	}
	slices.SortFunc(o.Others, func(a, b v1alpha1.FoundVersion) int { return cmp.Compare(a.Name, b.Name) })
	return o
}

func (all *inventory) findCSV(namespace, name string) *operatorsv1alpha1.ClusterServiceVersion {
	for i := range all.csvs {
		if all.csvs[i].Namespace == namespace && all.csvs[i].Name == name {
			return &all.csvs[i]
		}
	}
	return nil
}

// supportedConfig are the fields of a Subscription's configuration that a ManagedOperator has too (OperatorConfig).
var supportedConfig = []string{"env", "resources", "nodeSelector", "tolerations"}

func (sub *subscribed) found() *v1alpha1.FoundSubscription {
	out := &v1alpha1.FoundSubscription{
		Name: sub.Name, InstalledCSV: sub.Status.InstalledCSV, CurrentCSV: sub.Status.CurrentCSV,
		Config: sub.config, GitOps: gitOps(sub.Labels, sub.Annotations), Writers: writers(&sub.Subscription),
		Finalizers: sub.Finalizers, Deleting: sub.DeletionTimestamp != nil,
		NotResolved: cmp.Or(conditionMessage(&sub.Subscription, operatorsv1alpha1.SubscriptionResolutionFailed),
			conditionMessage(&sub.Subscription, operatorsv1alpha1.SubscriptionBundleUnpackFailed)),
	}
	for _, field := range sub.config {
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
		out.Settings = v1alpha1.SettingsOf(settingsOf(spec.Config))
		// OLM names the Subscriptions that it makes for dependencies like this (NewSubscriptionStepResource).
		out.Dependency = sub.Name == strings.Join([]string{spec.Package, spec.Channel, spec.CatalogSource,
			spec.CatalogSourceNamespace}, "-")
	}
	return out
}

// settingsOf are the settings that a ManagedOperator has too; nil where there are none.
func settingsOf(c *operatorsv1alpha1.SubscriptionConfig) *v1alpha1.OperatorConfig {
	if c == nil || len(c.Env) == 0 && c.Resources == nil && len(c.NodeSelector) == 0 && len(c.Tolerations) == 0 {
		return nil
	}
	return &v1alpha1.OperatorConfig{Env: c.Env, Resources: c.Resources, NodeSelector: c.NodeSelector,
		Tolerations: c.Tolerations}
}

// writers are the field managers of the spec, as far as the caches have them.
func writers(o client.Object) []string {
	var out []string
	for _, f := range o.GetManagedFields() {
		out = append(out, f.Manager)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// gitOps names what writes an object from a repository or a release, by the marks that it leaves.
func gitOps(labels, annotations map[string]string) string {
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

// ownWriters are OLM's field managers: the names of its programs.
var ownWriters = []string{"catalog", "olm", "package-server"}

// cleanupFinalizer is the one that OLM itself puts on each CSV.
const cleanupFinalizer = "operators.coreos.com/csv-cleanup"

func (all *inventory) csv(csv *operatorsv1alpha1.ClusterServiceVersion) *v1alpha1.FoundCSV {
	out := &v1alpha1.FoundCSV{Name: csv.Name, Version: csv.Spec.Version.String(), Phase: string(csv.Status.Phase),
		Replaces: csv.Spec.Replaces, Deleting: csv.DeletionTimestamp != nil, Deployments: all.deploymentsOf(csv)}
	if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
		out.Reason, out.Message = string(csv.Status.Reason), csv.Status.Message
	}
	for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
		out.Owned = append(out.Owned, v1alpha1.FoundDefinition{Name: d.Name, Version: d.Version, Kind: d.Kind})
		if !all.isDefined(d.Name) && !slices.Contains(out.Missing, d.Name) {
			out.Missing = append(out.Missing, d.Name)
		}
	}
	for _, d := range csv.Spec.CustomResourceDefinitions.Required {
		out.Required = append(out.Required, d.Name)
	}
	for _, w := range writers(csv) {
		if !slices.Contains(ownWriters, w) && w != string(fieldOwner) {
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

// isDefined tells whether the cluster has a CustomResourceDefinition.
func (all *inventory) isDefined(name string) bool {
	return slices.ContainsFunc(all.definitions, func(m metav1.PartialObjectMetadata) bool { return m.Name == name })
}

// deploymentsOf are those that OLM made for a CSV.
func (all *inventory) deploymentsOf(csv *operatorsv1alpha1.ClusterServiceVersion) []v1alpha1.FoundDeployment {
	asked := map[string]int32{}
	for _, d := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		asked[d.Name] = replicas(d.Spec.Replicas)
	}
	var out []v1alpha1.FoundDeployment
	for i := range all.deployments {
		d := &all.deployments[i]
		bundle, ok := asked[d.Name]
		if !ok || d.Namespace != csv.Namespace || d.Labels[plan.LabelOwner] != csv.Name {
			continue
		}
		out = append(out, v1alpha1.FoundDeployment{Name: d.Name, Replicas: replicas(d.Spec.Replicas),
			Ready: d.Status.AvailableReplicas, Bundle: bundle})
	}
	slices.SortFunc(out, func(a, b v1alpha1.FoundDeployment) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// replicas are 1 where a Deployment does not say.
func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// namespaces are those of operators.
func (all *inventory) namespaces(operators []v1alpha1.FoundOperator) []v1alpha1.FoundNamespace {
	var out []v1alpha1.FoundNamespace
	used := map[string]bool{} // InstallPlans that Subscriptions refer to
	for _, o := range operators {
		if len(out) == 0 || out[len(out)-1].Name != o.Namespace {
			out = append(out, v1alpha1.FoundNamespace{Name: o.Namespace})
		}
		if o.Subscription != nil {
			used[o.Namespace+"/"+o.Subscription.InstallPlan] = true
		}
	}
	for i := range out {
		all.fillNamespace(&out[i], used)
	}
	return out
}

// fillNamespace adds OperatorGroups, and InstallPlans of which something can still come. Used are those, as
// namespace/name, that Subscriptions refer to.
func (all *inventory) fillNamespace(n *v1alpha1.FoundNamespace, used map[string]bool) {
	for _, g := range all.groups {
		if g.Namespace == n.Name {
			n.OperatorGroups = append(n.OperatorGroups, v1alpha1.FoundOperatorGroup{Name: g.Name,
				Targets: slices.Sorted(slices.Values(g.Spec.TargetNamespaces)), Selector: g.Spec.Selector != nil,
				ServiceAccount: g.Spec.ServiceAccountName})
		}
	}
	for j := range all.plans {
		p := &all.plans[j]
		if p.Namespace == n.Name && isOpen(p, used[n.Name+"/"+p.Name]) {
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

// isOpen tells whether something can still come of an InstallPlan. OLM keeps some that failed; those that no
// Subscription refers to any more are past.
func isOpen(p *operatorsv1alpha1.InstallPlan, referred bool) bool {
	switch p.Status.Phase {
	case operatorsv1alpha1.InstallPlanPhaseComplete:
		return false
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		return referred
	}
	return true
}

func (all *inventory) catalogSources() []v1alpha1.FoundCatalogSource {
	var out []v1alpha1.FoundCatalogSource
	for i := range all.sources {
		c := &all.sources[i]
		found := v1alpha1.FoundCatalogSource{Namespace: c.Namespace, Name: c.Name, Image: c.Spec.Image,
			Managed: managed(c)}
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

// labelOLMManaged is on the definitions that OLM made.
const labelOLMManaged = "olm.managed"

// ownerless are definitions that OLM made and no CSV owns.
func (all *inventory) ownerless() []string {
	owned := map[string]bool{}
	for _, csv := range all.csvs {
		for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
			owned[d.Name] = true
		}
	}
	var out []string
	for _, d := range all.definitions {
		if d.Labels[labelOLMManaged] == "true" && !owned[d.Name] {
			out = append(out, d.Name)
		}
	}
	slices.Sort(out)
	return out
}
