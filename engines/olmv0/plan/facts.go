// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/engines/olmv0/templates"
	"github.com/bellwether-dev/bellwether/engines/workload"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Facts are the input of a decision, derived from the data that was read for an install.
type Facts struct {
	Input
	// Rendered has the objects of the templates by kind, without the templates that do not render.
	Rendered map[string]*unstructured.Unstructured
	// missingReads are the reads that are needed to complete the facts.
	missingReads []Action
	observed     *Observed
}

// factsBuilder derives facts from the data that was read.
type factsBuilder struct {
	*Facts
	templates *templates.Set
	data      templates.Data
}

// NewFacts derives the facts for an install from the data that was read for it. An install without an admission has
// no facts about the cluster, and a cluster without OLM only facts about the namespace.
func NewFacts(install *v1alpha1.OperatorInstall, observed *Observed, set *templates.Set, now time.Time) *Facts {
	f := &Facts{observed: observed, Rendered: map[string]*unstructured.Unstructured{},
		Input: Input{Now: now, Install: install, View: observed.View, Backups: observed.Backups}}
	if install.Spec.Admission == nil {
		return f
	}
	b := factsBuilder{Facts: f, templates: set, data: newTemplateData(install, observed.View.Address)}
	f.Cluster.OLM = observed.OLM
	b.addNamespace()
	if !observed.OLM {
		return f
	}
	b.addOperatorGroups()
	b.addCatalogSource()
	b.addSubscriptions()
	b.addInstallPlans()
	b.addCSVs()
	b.addMissingDefinitions()
	b.addMissingServices()
	b.addDeployments()
	if !install.DeletionTimestamp.IsZero() {
		b.addOccupant()
		return f
	}
	b.addFound()
	b.requestStoredVersions()
	return f
}

// newTemplateData returns the values for the templates of an install. address is the address of the view.
func newTemplateData(install *v1alpha1.OperatorInstall, address string) templates.Data {
	release := install.Spec.Admission.Release
	return templates.Data{
		Cluster: install.Spec.Cluster, Operator: install.Spec.Operator.Name,
		OperatorNamespace: install.Spec.Operator.Namespace,
		Namespace:         release.TargetNamespace(), Package: release.Package, Channel: release.Channel,
		Version: release.Version, Subscription: release.Package,
		Mode: release.Install.Mode, Config: release.Install.Config, ViewAddress: address,
	}
}

// requestRead adds a read that the facts depend on. purpose says what the data is needed for.
func (b factsBuilder) requestRead(kind, name, purpose string) {
	b.missingReads = append(b.missingReads, Action{Verb: Read, Kind: kind, Name: name, Value: purpose})
}

// lookUp reports whether the API server has an object that the caches did not have. If the answer is not known yet,
// it requests the read.
func (b factsBuilder) lookUp(kind, name, purpose string) (exists, isKnown bool) {
	exists, isKnown = b.observed.Exists[Reference{kind, name}]
	if !isKnown {
		b.requestRead(kind, name, purpose)
	}
	return exists, isKnown
}

// renderAndCompare renders the template of a kind into Rendered, and reports whether the live object matches it. live
// is nil if the object does not exist. A template that does not render becomes the problem of the offer, and the result
// is true, so that the object is not applied.
func (b factsBuilder) renderAndCompare(kind string, live *unstructured.Unstructured) bool {
	rendered, err := b.templates.Render(kind, b.data)
	if err != nil {
		b.Offer.Problem = &Problem{Reason: v1alpha1.ReasonTemplateInvalid, Message: err.Error() +
			". Correct the agent's template."}
		return true
	}
	b.Rendered[kind] = rendered
	return live != nil && templates.InSync(rendered, live)
}

// addNamespace adds the operator's namespace.
func (b factsBuilder) addNamespace() {
	live := b.observed.Namespace
	isInSync := b.renderAndCompare(KindNamespace, live)
	if live == nil {
		return
	}
	b.Cluster.Namespace = Namespace{
		Object: ObjectOf(live), Exists: true, Managed: isManaged(live),
		Terminating: !live.GetDeletionTimestamp().IsZero(),
		InSync:      isInSync, Kept: live.GetAnnotations()[AnnotationKeep] != "",
	}
}

// addOperatorGroups adds the OperatorGroups of the namespace.
func (b factsBuilder) addOperatorGroups() {
	if len(b.observed.OperatorGroups) == 0 {
		b.renderAndCompare(KindOperatorGroup, nil) // only renders, so that the group can be created
	}
	for _, group := range b.observed.OperatorGroups {
		spec := group.Decoded.Spec
		b.Cluster.OperatorGroups = append(b.Cluster.OperatorGroups, OperatorGroup{
			Object: ObjectOf(group.Raw), Name: group.Raw.GetName(), Managed: isManaged(group.Raw),
			InSync:  b.renderAndCompare(KindOperatorGroup, group.Raw),
			Targets: spec.TargetNamespaces, Selector: spec.Selector != nil,
		})
	}
}

// addCatalogSource adds the CatalogSource that has the name in its template.
func (b factsBuilder) addCatalogSource() {
	b.renderAndCompare(KindCatalogSource, nil) // only renders, to get the name
	rendered := b.Rendered[KindCatalogSource]
	for _, source := range b.observed.CatalogSources {
		if rendered == nil || source.Raw.GetName() != rendered.GetName() {
			continue
		}
		address := source.Decoded.Spec.Address
		observed := &CatalogSource{Object: ObjectOf(source.Raw), Name: source.Raw.GetName(), Address: address,
			Managed: isManaged(source.Raw), InSync: b.renderAndCompare(KindCatalogSource, source.Raw)}
		// A state with another address is about an earlier view.
		if state := source.Decoded.Status.GRPCConnectionState; state != nil && state.Address == address {
			observed.State, observed.StateAt = state.LastObservedState, state.LastConnectTime.Time
		}
		b.Cluster.CatalogSource = observed
	}
}

// addSubscriptions adds the Subscriptions of the namespace. It also renders the operator's Subscription, under the
// name that it has on the cluster.
func (b *factsBuilder) addSubscriptions() {
	own := findOwnSubscription(b.observed.Subscriptions, b.Install)
	if own != nil {
		b.data.Subscription = own.GetName()
	}
	b.renderAndCompare(KindSubscription, nil)
	for _, sub := range b.observed.Subscriptions {
		observed := readSubscription(sub.Decoded)
		observed.Object = ObjectOf(sub.Raw)
		if sub.Raw == own {
			observed.IsOwn, observed.InSync = true, b.renderAndCompare(KindSubscription, sub.Raw)
			setRecordFlags(&observed, sub.Raw, b.Install)
			observed.setAdopted(sub.Raw, b.Rendered[KindSubscription])
		}
		b.Cluster.Subscriptions = append(b.Cluster.Subscriptions, observed)
	}
	b.addRecord()
}

// findOwnSubscription returns the operator's Subscription; nil if there is none. If there are several, it returns the
// Subscription with the name of the package, or else the first.
func findOwnSubscription(subscriptions []Live[operatorsv1alpha1.Subscription],
	install *v1alpha1.OperatorInstall) *unstructured.Unstructured {
	var own *unstructured.Unstructured
	for _, sub := range subscriptions {
		pkg, _, _ := unstructured.NestedString(sub.Raw.Object, "spec", "name")
		if isOwnSubscription(sub.Raw, pkg, install) &&
			(own == nil || sub.Raw.GetName() == install.Spec.Admission.Release.Package) {
			own = sub.Raw
		}
	}
	return own
}

// setRecordFlags sets whether the install's Subscription has a record of an admission, and whether the record
// is outdated.
func setRecordFlags(observed *Subscription, live *unstructured.Unstructured, install *v1alpha1.OperatorInstall) {
	record := ReadRecord(live)
	observed.Keeps = record != nil
	observed.Outdated = record == nil || !equality.Semantic.DeepEqual(*record, RecordOf(install))
}

// The maximum lengths in the API.
const maxName, maxApproval = 253, 32

// setAdopted sets what the operator's Subscription was before it was adopted, and whether its source is not yet the
// view. It changes nothing if the Subscription was not adopted. rendered is nil if the template does not render;
// another check reports the template.
func (s *Subscription) setAdopted(live, rendered *unstructured.Unstructured) {
	o := ReadOriginal(live)
	if o == nil {
		return
	}
	readField := func(field string, maxLength int) string {
		value, _, _ := unstructured.NestedString(o.Spec, field)
		return phrase.Truncate(value, maxLength)
	}
	s.Adopted = &v1alpha1.AdoptedSubscription{Name: live.GetName(), Since: o.At,
		Bundle: phrase.Truncate(o.Bundle, maxName), Channel: readField("channel", maxName),
		Source:          readField("source", maxName),
		SourceNamespace: readField("sourceNamespace", maxLabelName),
		Approval:        readField("installPlanApproval", maxApproval)}
	if s.Adopted.Approval == "" {
		s.Adopted.Approval = string(operatorsv1alpha1.ApprovalAutomatic)
	}
	if rendered == nil {
		return
	}
	for _, field := range []string{"source", "sourceNamespace"} {
		current, _, _ := unstructured.NestedString(live.Object, "spec", field)
		want, _, _ := unstructured.NestedString(rendered.Object, "spec", field)
		s.AwaitsView = s.AwaitsView || current != want
	}
}

// addRecord adds the record of the admission to the rendered Subscription.
func (b factsBuilder) addRecord() {
	rendered := b.Rendered[KindSubscription]
	if rendered == nil {
		return // the template does not render; the problem of the offer reports that
	}
	text, err := json.Marshal(RecordOf(b.Install))
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal record: %v", err))
	}
	annotations := rendered.GetAnnotations()
	annotations[v1alpha1.AnnotationKept] = string(text)
	rendered.SetAnnotations(annotations)
}

// addInstallPlans adds the InstallPlans of the namespace, with their differences from what is served. If a Subscription
// waits for a plan that the cache does not have, it requests the plan, because the caches of different kinds are not in
// step.
func (b factsBuilder) addInstallPlans() {
	for j := range b.observed.InstallPlans {
		p := InstallPlanOf(&b.observed.InstallPlans[j])
		if steps := b.observed.Steps[p.UID]; steps.IsKnown {
			p.Compared, p.Difference, p.IsRepeated = true, steps.Difference, steps.IsRepeated
		}
		b.Cluster.InstallPlans = append(b.Cluster.InstallPlans, p)
	}
	for _, sub := range b.Cluster.Subscriptions {
		if sub.Awaits != "" && !b.hasPlan(sub.Awaits) {
			b.lookUp(KindInstallPlan, sub.Awaits, "look for what Subscription "+sub.Name+" waits for")
		}
	}
}

// addCSVs adds the ClusterServiceVersions of the namespace. It requests the installed CSV if the cache does not have
// it: the caches of different kinds are not in step, and the operator must not be treated as deleted.
func (b factsBuilder) addCSVs() {
	label := formatComponentLabel(b.data.Package, b.data.Namespace)
	for j := range b.observed.CSVs {
		b.Cluster.CSVs = append(b.Cluster.CSVs, readCSV(&b.observed.CSVs[j], label))
	}
	for _, sub := range b.Cluster.Subscriptions {
		if _, isInstalled := b.Cluster.Installed(); sub.IsOwn && !isInstalled && sub.InstalledCSV != "" {
			b.lookUp(KindCSV, sub.InstalledCSV, "look for what Subscription "+sub.Name+" has installed")
		}
	}
}

// addMissingDefinitions adds the CustomResourceDefinitions that the installed CSV owns and the cluster does not have.
func (b factsBuilder) addMissingDefinitions() {
	csv, ok := b.Cluster.Installed()
	if !ok {
		return
	}
	names := slices.Sorted(slices.Values(listOwnedDefinitions(b.observed.CSVs, csv.Name)))
	for _, name := range slices.Compact(names) {
		if exists, isKnown := b.lookUp(KindDefinition, name, csv.Name+" owns it"); isKnown && !exists {
			b.Cluster.MissingDefinitions = append(b.Cluster.MissingDefinitions, name)
		}
	}
}

// listOwnedDefinitions returns the names of the CustomResourceDefinitions that a CSV owns. If csv is empty, it returns
// the names of the CustomResourceDefinitions of all CSVs.
func listOwnedDefinitions(all []operatorsv1alpha1.ClusterServiceVersion, csv string) []string {
	var names []string
	for i := range all {
		for _, owned := range all[i].Spec.CustomResourceDefinitions.Owned {
			if csv == "" || all[i].Name == csv {
				names = append(names, owned.Name)
			}
		}
	}
	return names
}

// addMissingServices adds the Services that were created with the installed CSV and that the cluster does not have,
// because OLM does not check later whether they exist. It adds no Service until the InstallPlan is Complete.
func (b factsBuilder) addMissingServices() {
	csv, ok := b.Cluster.Installed()
	p := b.Cluster.FindExecutedPlan(csv.Name)
	if !ok || p == nil || p.Phase != string(operatorsv1alpha1.InstallPlanPhaseComplete) {
		return
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(p.Services[csv.Name]))) {
		if exists, isKnown := b.lookUp(KindService, name, "it came with "+csv.Name); isKnown && !exists {
			b.Cluster.MissingServices = append(b.Cluster.MissingServices, name)
		}
	}
}

// addDeployments adds the Deployments of the installed CSV, sorted by name, and the problems of incomplete Deployments.
func (b factsBuilder) addDeployments() {
	for _, live := range DeploymentsOf(b.observed, b.Cluster) {
		wanted := int32(1)
		if live.Spec.Replicas != nil {
			wanted = *live.Spec.Replicas
		}
		observed := Deployment{
			Object: ObjectOf(live), Name: live.Name, Replicas: wanted,
			Unavailable: max(wanted-live.Status.AvailableReplicas, 0),
			// Otherwise the pods might still be the pods of an earlier template.
			Configured: live.Status.ObservedGeneration >= live.Generation &&
				isConfigured(live.Spec.Template.Spec, b.data.Config),
		}
		if !workload.IsComplete(live) {
			observed.Problems = b.findProblems(live)
		}
		b.Cluster.Deployments = append(b.Cluster.Deployments, observed)
	}
	slices.SortFunc(b.Cluster.Deployments, func(a, b Deployment) int { return strings.Compare(a.Name, b.Name) })
}

// DeploymentsOf returns the Deployments that OLM made for the installed CSV.
func DeploymentsOf(observed *Observed, c Cluster) []*appsv1.Deployment {
	csv, ok := c.Installed()
	var out []*appsv1.Deployment
	for i := range observed.Deployments {
		if d := &observed.Deployments[i]; ok && d.Labels[LabelOwner] == csv.Name {
			out = append(out, d)
		}
	}
	return out
}

// findProblems returns why pods of a Deployment are not available. It requests the pods if they were not read.
func (b factsBuilder) findProblems(d *appsv1.Deployment) []v1alpha1.WorkloadProblem {
	if _, err := metav1.LabelSelectorAsSelector(d.Spec.Selector); err != nil {
		return []v1alpha1.WorkloadProblem{workload.NewNotReadProblem(d, err)}
	}
	pods, isRead := b.observed.Pods[d.Name]
	switch {
	case !isRead:
		b.requestRead(KindPods, d.Name, "see why Deployment "+d.Name+" is not available")
		return nil
	case pods.Err != nil:
		return append(workload.Problems(d, nil), workload.NewNotReadProblem(d, pods.Err))
	}
	return workload.Problems(d, pods.Items)
}

// addFound adds everything that OLM has on the cluster, if an operator of another owner may be adopted.
func (b factsBuilder) addFound() {
	isOwn := func(s Subscription) bool { return s.IsOwn }
	if !isAdoption(b.Install.Spec.Admission.Release) || slices.ContainsFunc(b.Cluster.Subscriptions, isOwn) {
		return
	}
	if b.observed.Inventory == nil {
		b.requestRead(KindInventory, "", "look for what is to be adopted")
		return
	}
	found := b.observed.Inventory.ToScan()
	b.Cluster.Found = &found
}

// requestStoredVersions requests the versions that custom resources are stored in, for a rollback to an older
// version: the cluster may have run versions that are not between the installed and the older version. It requests
// nothing once the rollback has succeeded (SucceededHash), or if a template is invalid, because no catalog is read
// then.
func (b factsBuilder) requestStoredVersions() {
	admission := b.Install.Spec.Admission
	if admission.Rollback != nil && b.Install.Status.SucceededHash != admission.Hash && b.observed.Stored == nil &&
		b.Offer.Problem == nil {
		b.requestRead(KindStored, "", "see which versions custom resources are stored in")
	}
}
