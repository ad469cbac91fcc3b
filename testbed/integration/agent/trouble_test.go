// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/catalogs/view"
	"github.com/bellwether-dev/bellwether/engines"
)

// TestTrouble puts installs into every kind of trouble that a cluster's own
// OLM can be in. Each is told what is wrong and what to do, and recovers by
// itself once that is done. Every scenario has a package and a namespace of
// its own, both named like its operator.
func TestTrouble(t *testing.T) {
	t.Parallel()
	c := quiet(t)
	shared := start(t, c, "trouble")
	// An agent may have so many Events in an hour, and the other scenarios use up those of theirs.
	eventful := start(t, c, "eventful")
	scenarios := map[string]func(*harness){
		"orphan":       orphanCSV,
		"stranger":     unadmittedPlan,
		"impostor":     dependencyFromElsewhere,
		"monitored":    planFails,
		"refused":      planFailsForGood,
		"needy":        requirementsNotMet,
		"losing":       definitionDeleted,
		"broken":       failedIsFixed,
		"wanting":      pendingIsFixed,
		"late":         pendingUpgradeIsFixed,
		"overtaken":    upgradeWaitsInVain,
		"holding":      notUpgradeable,
		"hops":         severalHops,
		"skipping":     skippedHops,
		"app":          dependencies,
		"unpacked":     unpackRoute,
		"huge":         tooLarge,
		"large":        largestInline,
		"wandering":    installedElsewhere,
		"grouped":      unfitOperatorGroup,
		"subscribed":   foreignSubscription,
		"disappearing": terminatingNamespace,
		"adopted":      adopted,
		"halfway":      deletedHalfway,
		"blocked":      blockedVersions,
		"unwanted":     blockedFromTheStart,
		"scaled":       scaledToZero,
		"corrected":    driftIsCorrected,
		"reconfigured": settingsAreCorrected,
		"signed":       signedCatalog,
	}
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "corrected" {
				scenario(eventful.of(t, name))
				return
			}
			scenario(shared.of(t, name))
		})
	}
}

// pin writes a package of the scenario's name into a catalog.
func (h *harness) pin(bundles ...bundle) v1alpha1.CatalogPin {
	h.t.Helper()
	return h.catalog(fbc(h.operator, bundles...))
}

// to admits the scenario's operator to a version.
func (h *harness) to(pin v1alpha1.CatalogPin, version string) {
	h.t.Helper()
	h.admit(releaseOf(h.operator, pin, version))
}

// create creates an object and returns it.
func (h *harness) create(o client.Object) client.Object {
	h.t.Helper()
	h.must(h.Create(h.t.Context(), o))
	return o
}

func (h *harness) delete(o client.Object) {
	h.t.Helper()
	h.must(h.Delete(h.t.Context(), o))
}

func (h *harness) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: h.operator, Name: name}
}

func (h *harness) makeNamespace() *corev1.Namespace {
	h.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.operator}}
	h.create(ns)
	return ns
}

// csv returns a CSV in the scenario's namespace, nil if there is none.
func (h *harness) csv(version string) *operatorsv1alpha1.ClusterServiceVersion {
	h.t.Helper()
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := h.Get(h.t.Context(), client.ObjectKey{Namespace: h.operator, Name: csvName(h.operator, version)},
		csv); err != nil {
		h.must(client.IgnoreNotFound(err))
		return nil
	}
	return csv
}

// plans are the InstallPlans of the scenario's namespace.
func (h *harness) plans() []operatorsv1alpha1.InstallPlan {
	h.t.Helper()
	var list operatorsv1alpha1.InstallPlanList
	h.must(h.List(h.t.Context(), &list, client.InNamespace(h.operator)))
	return list.Items
}

// says waits until the message of Ready holds these texts.
func (h *harness) says(texts ...string) {
	h.t.Helper()
	oi := h.until("wait until the status says "+strings.Join(texts, ", "), func(oi *v1alpha1.OperatorInstall) bool {
		message := conditions.Get(oi.Status.Conditions, v1alpha1.ConditionReady).Message
		for _, text := range texts {
			if !strings.Contains(message, text) {
				return false
			}
		}
		return true
	})
	h.t.Log(conditions.Get(oi.Status.Conditions, v1alpha1.ConditionReady).Message)
}

func unstructuredOf(o object) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: o}
}

func orphanCSV(h *harness) {
	h.makeNamespace()
	orphan := unstructuredOf(catalogtest.CSV("left.v0.1.0", "0.1.0", "left.example.com"))
	orphan.SetNamespace(h.operator)
	h.create(orphan)
	h.to(h.pin(line("1.0.0")...), "1.0.0")
	h.stalls(v1alpha1.ReasonOrphanCSV, "kubectl -n orphan delete csv left.v0.1.0")
	h.delete(orphan)
	h.runs()
}

// unadmittedPlan has a second Subscription in the namespace, so that OLM puts
// an operator that nobody admitted into the same plan.
func unadmittedPlan(h *harness) {
	pin := h.pin(line("1.0.0", "1.1.0")...)
	h.to(pin, "1.0.0")
	h.runs()
	_, theirs := h.subscribeElsewhere("intruder", line("2.0.0")...)
	h.to(pin, "1.1.0")
	h.stalls(v1alpha1.ReasonUnadmittedPlan, "intruder.v2.0.0", "not approved", "Remove the Subscription")
	for _, p := range h.plans() {
		if p.Spec.Approved && strings.Contains(strings.Join(p.Spec.ClusterServiceVersionNames, " "), "intruder") {
			h.t.Errorf("InstallPlan %s was approved with %v", p.Name, p.Spec.ClusterServiceVersionNames)
		}
	}
	h.delete(theirs)
	h.runs()
}

// subscribeElsewhere has somebody else subscribe to a package of a catalog of their own, in the operator's namespace.
func (h *harness) subscribeElsewhere(pkg string, bundles ...bundle) (source, subscription client.Object) {
	address := h.serveTo(h.newServer(), fbc(pkg, bundles...))
	source = h.create(&operatorsv1alpha1.CatalogSource{ObjectMeta: h.meta("theirs"),
		Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: address}})
	subscription = h.create(&operatorsv1alpha1.Subscription{ObjectMeta: h.meta(pkg),
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			CatalogSource: "theirs", CatalogSourceNamespace: h.operator, Package: pkg, Channel: "stable",
		}})
	return source, subscription
}

// newServer is a server of somebody's catalogs.
func (h *harness) newServer() *serve.Server {
	server := serve.New(serve.Options{})
	h.t.Cleanup(server.Close)
	return server
}

// serveTo has a server offer a catalog, and returns its address. It offers one at a time.
func (h *harness) serveTo(server *serve.Server, content []byte) (address string) {
	h.t.Helper()
	packages, err := catalogs.ReadAll(catalogs.SingleFile("catalog.json", bytes.NewReader(content)))
	h.must(err)
	all, err := view.All(packages)
	h.must(err)
	address, _, err = server.Set("theirs", all, 0)
	h.must(err)
	return address
}

// dependencyFromElsewhere has somebody else offer a dependency by the very name that was admitted, with other content.
func dependencyFromElsewhere(h *harness) {
	app := bundle{version: "1.1.0", replaces: "1.0.0", properties: []object{
		property("olm.package.required", object{"packageName": "base", "versionRange": ">=1.0.0"})}}
	content := append(fbc(h.operator, bundle{version: "1.0.0"}, app), fbc("base", line("1.0.0")...)...)
	pin := h.catalog(content)
	h.to(pin, "1.0.0")
	h.runs()
	source, subscription := h.subscribeElsewhere("base", line("1.0.0")...)
	h.to(pin, "1.1.0")
	h.stalls(v1alpha1.ReasonUnadmittedPlan, "base.v1.0.0", "from the CatalogSource "+h.operator+"/theirs",
		"not approved")
	for _, p := range h.plans() {
		if p.Spec.Approved && slices.Contains(p.Spec.ClusterServiceVersionNames, "base.v1.0.0") {
			h.t.Errorf("InstallPlan %s was approved with %v", p.Name, p.Spec.ClusterServiceVersionNames)
		}
	}
	h.delete(subscription)
	h.delete(source)
	for _, p := range h.plans() {
		if !p.Spec.Approved {
			h.delete(&p)
		}
	}
	h.runs()
}

func serviceMonitor(namespace string) object {
	return object{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor",
		"metadata": object{"name": "operator", "namespace": namespace},
		"spec":     object{"selector": object{}, "endpoints": []any{object{"port": "metrics"}}},
	}
}

func serviceMonitorCRD() *unstructured.Unstructured {
	crd := unstructuredOf(catalogtest.CRD("monitoring.coreos.com", 0))
	crd.SetName("servicemonitors.monitoring.coreos.com")
	spec := crd.Object["spec"].(object)
	spec["names"] = object{"kind": "ServiceMonitor", "listKind": "ServiceMonitorList", "plural": "servicemonitors",
		"singular": "servicemonitor"}
	spec["versions"].([]any)[0].(object)["schema"] = object{"openAPIV3Schema": object{"type": "object",
		"x-kubernetes-preserve-unknown-fields": true}}
	return crd
}

// planFails needs a kind that the cluster does not have; OLM fails the plan and
// does not try again by itself.
func planFails(h *harness) {
	h.to(h.pin(bundle{version: "1.0.0", objects: []object{serviceMonitor(h.operator)}}), "1.0.0")
	h.stalls(v1alpha1.ReasonPlanFailed, "ServiceMonitor", "tried again")
	crd := h.create(serviceMonitorCRD())
	h.runs()
	h.uninstall(v1alpha1.RemovalUninstall)
	h.delete(crd)
}

// planFailsForGood has a CRD that the API server refuses; a version that
// corrects it takes its place.
func planFailsForGood(h *harness) {
	bad := bundle{version: "1.0.0", change: func(_, crd object) {
		crd["spec"].(object)["versions"].([]any)[0].(object)["schema"] = object{
			"openAPIV3Schema": object{"type": "nonsense"},
		}
	}}
	pin := h.pin(bad, bundle{version: "1.0.1", replaces: "1.0.0"})
	h.to(pin, "1.0.0")
	h.stalls(v1alpha1.ReasonPlanFailed, "CustomResourceDefinition", "things.refused.example.com")
	h.to(pin, "1.0.1")
	h.runs()
}

func requirementsNotMet(h *harness) {
	h.to(h.pin(bundle{version: "1.0.0", change: needsCRD("needed")}), "1.0.0")
	h.stalls(v1alpha1.ReasonRequirementsNotMet, "things.needed.example.com")
	h.create(unstructuredOf(catalogtest.CRD(group("needed"), 0)))
	h.runs()
}

// definitionDeleted runs, and the definition that came with it is deleted.
func definitionDeleted(h *harness) {
	h.to(h.pin(line("1.0.0")...), "1.0.0")
	h.runs()
	definition := unstructuredOf(catalogtest.CRD(group(h.operator), 0))
	h.delete(definition)
	h.stalls(v1alpha1.ReasonObjectsLost, "lost what came with it", definition.GetName())
	h.delete(h.csv("1.0.0"))
	h.runs()
	h.must(h.Get(h.t.Context(), client.ObjectKeyFromObject(definition), definition))
}

// failedIsFixed has an upgrade whose Deployment OLM gives up, and a newer
// version that mends it.
func failedIsFixed(h *harness) {
	pin := h.pin(bundle{version: "1.0.0"}, bundle{version: "1.1.0", replaces: "1.0.0", change: neverReadyUpgrade(5)},
		bundle{version: "1.1.1", replaces: "1.1.0"})
	h.to(pin, "1.0.0")
	h.runs()
	h.to(pin, "1.1.0")
	h.until("it is said why no pod is made", func(oi *v1alpha1.OperatorInstall) bool {
		return slices.ContainsFunc(oi.Status.Problems, func(p v1alpha1.WorkloadProblem) bool {
			return p.Reason == v1alpha1.ProblemFailedCreate && strings.Contains(p.Message, "serviceaccount")
		})
	})
	h.says(csvName(h.operator, "1.1.0"), "Failed")
	h.to(pin, "1.1.1")
	h.runs()
	h.only("1.1.1")
}

// pendingIsFixed never gets beyond Pending with its first version.
func pendingIsFixed(h *harness) {
	pin := h.pin(bundle{version: "1.0.0", change: needsCRD("nowhere")}, bundle{version: "1.0.1", replaces: "1.0.0"})
	h.to(pin, "1.0.0")
	h.stalls(v1alpha1.ReasonRequirementsNotMet, "things.nowhere.example.com")
	h.to(pin, "1.0.1")
	h.runs()
	h.only("1.0.1")
}

// pendingUpgradeIsFixed runs, and never gets beyond Pending with an upgrade;
// what ran keeps running until the fix is there.
func pendingUpgradeIsFixed(h *harness) {
	pin := h.pin(bundle{version: "1.0.0"}, bundle{version: "1.1.0", replaces: "1.0.0", change: needsCRD("nowhere")},
		bundle{version: "1.1.1", replaces: "1.1.0"})
	h.to(pin, "1.0.0")
	h.runs()
	h.to(pin, "1.1.0")
	h.stalls(v1alpha1.ReasonRequirementsNotMet, "things.nowhere.example.com")
	h.to(pin, "1.1.1")
	h.runs()
	h.only("1.1.1")
}

// upgradeWaitsInVain has OLM process what is replaced again, as it does where the operator's Deployment or certificate
// changed a moment before, when a definition that only the older version needs is gone. Neither of the two goes on.
func upgradeWaitsInVain(h *harness) {
	pin := h.pin(bundle{version: "1.0.0", change: needsCRD("former")},
		bundle{version: "1.1.0", replaces: "1.0.0", change: needsCRD("latter")})
	former := h.create(unstructuredOf(catalogtest.CRD(group("former"), 0)))
	h.to(pin, "1.0.0")
	h.runs()
	h.to(pin, "1.1.0")
	h.stalls(v1alpha1.ReasonRequirementsNotMet, "things.latter.example.com")
	h.delete(former)
	pending := client.RawPatch(types.MergePatchType, []byte(`{"status": {"phase": "Pending"}}`))
	h.eventually("1.0.0 misses its definition", func() bool {
		csv := h.csv("1.0.0")
		if csv.Status.Phase == operatorsv1alpha1.CSVPhaseReplacing { // OLM may not know yet that the definition is gone
			h.must(h.Status().Patch(h.t.Context(), csv, pending))
		}
		return csv.Status.Reason == operatorsv1alpha1.CSVReasonRequirementsNotMet
	})
	h.create(unstructuredOf(catalogtest.CRD(group("latter"), 0)))
	h.runs()
	h.only("1.1.0")
}

// only waits until one CSV is left, that of a version.
func (h *harness) only(version string) {
	h.t.Helper()
	var names []string
	h.eventually("only "+version+" is left", func() bool {
		var csvs operatorsv1alpha1.ClusterServiceVersionList
		h.must(h.List(h.t.Context(), &csvs, client.InNamespace(h.operator)))
		names = nil
		for _, csv := range csvs.Items {
			if !csv.IsCopied() {
				names = append(names, csv.Name)
			}
		}
		return len(names) == 1 && names[0] == csvName(h.operator, version)
	})
}

func notUpgradeable(h *harness) {
	pin := h.pin(line("1.0.0", "1.1.0")...)
	h.to(pin, "1.0.0")
	h.runs()
	condition := &operatorsv2.OperatorCondition{}
	key := client.ObjectKey{Namespace: h.operator, Name: csvName(h.operator, "1.0.0")}
	h.eventually("OLM makes the OperatorCondition", func() bool { return h.Get(h.t.Context(), key, condition) == nil })
	set := func(status metav1.ConditionStatus) {
		h.t.Helper()
		patch := client.MergeFrom(condition.DeepCopy())
		condition.Spec.Conditions = []metav1.Condition{{
			Type: "Upgradeable", Status: status, Reason: "Migration", Message: "migrating the store, 40% done",
			LastTransitionTime: metav1.Now(),
		}}
		h.must(h.Patch(h.t.Context(), condition, patch))
	}
	set(metav1.ConditionFalse)
	h.eventually("OLM has taken the condition up", func() bool {
		return h.Get(h.t.Context(), key, condition) == nil &&
			meta.IsStatusConditionFalse(condition.Status.Conditions, "Upgradeable")
	})
	h.to(pin, "1.1.0")
	h.stalls(v1alpha1.ReasonNotUpgradeable, "holding.v1.0.0", "migrating the store, 40% done", "spec.overrides")
	set(metav1.ConditionTrue)
	h.runs()
}

// severalHops goes from one version to the next but one; the one between must
// have succeeded before the last is on offer.
func severalHops(h *harness) {
	pin := h.pin(line("1.0.0", "1.1.0", "1.2.0")...)
	h.to(pin, "1.0.0")
	h.runs()
	h.to(pin, "1.2.0")
	h.runs()
	h.only("1.2.0")
	var succeeded, planned metav1.Time
	h.eventually("OLM's Event that 1.1.0 succeeded", func() bool { // OLM sends them slowly
		var events corev1.EventList
		if err := h.List(h.t.Context(), &events, client.InNamespace(h.operator)); err != nil {
			return false
		}
		for _, event := range events.Items {
			if event.InvolvedObject.Name == csvName(h.operator, "1.1.0") &&
				event.Reason == string(operatorsv1alpha1.CSVReasonInstallSuccessful) &&
				strings.Contains(event.Message, "completed") {
				succeeded = event.FirstTimestamp
			}
		}
		return !succeeded.IsZero()
	})
	for _, p := range h.plans() {
		if strings.Join(p.Spec.ClusterServiceVersionNames, " ") == csvName(h.operator, "1.2.0") {
			planned = p.CreationTimestamp
		}
	}
	if planned.IsZero() || planned.Before(&succeeded) {
		h.t.Errorf("1.1.0 succeeded at %v, 1.2.0 was planned at %v", succeeded, planned)
	}
}

// skippedHops goes from a version to the one that skips it.
func skippedHops(h *harness) {
	pin := h.pin(bundle{version: "1.0.0"}, bundle{version: "1.1.0", replaces: "1.0.0"},
		bundle{version: "1.2.0", replaces: "1.0.0", skips: []string{"1.1.0"}})
	h.to(pin, "1.1.0")
	h.runs()
	h.to(pin, "1.2.0")
	h.runs()
	h.only("1.2.0")
	if n := len(h.plans()); n != 2 {
		h.t.Errorf("%d InstallPlans, want one for each of two versions", n)
	}
}

// dependencies come along in the same plan, by package and by API.
func dependencies(h *harness) {
	app := bundle{version: "1.0.0", properties: []object{
		property("olm.package.required", object{"packageName": "lib", "versionRange": ">=1.1.0"}),
		property("olm.gvk.required", object{"group": group("store"), "version": "v1", "kind": "Thing"}),
	}}
	content := append(fbc(h.operator, app), fbc("lib", line("1.0.0", "1.1.0")...)...)
	pin := h.catalog(append(content, fbc("store", line("3.0.0")...)...))
	h.to(pin, "1.0.0")
	h.runs()
	for _, p := range h.plans() {
		if got := len(p.Spec.ClusterServiceVersionNames); got != 3 {
			h.t.Errorf("InstallPlan %s has %v", p.Name, p.Spec.ClusterServiceVersionNames)
		}
	}
	for _, name := range []string{"lib.v1.1.0", "store.v3.0.0"} {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		h.eventually(name+" succeeds", func() bool {
			err := h.Get(h.t.Context(), client.ObjectKey{Namespace: h.operator, Name: name}, csv)
			return err == nil && csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded
		})
	}
}

// image is one that no cluster of the testbed can pull.
const image = "registry.example.com/bundles/unpacked@sha256:" + zeros

// unpackRoute leaves a bundle that is too large for an InstallPlan to OLM's own
// Job. There is nothing to run the Job's containers here.
func unpackRoute(h *harness) {
	h.to(h.pin(bundle{version: "1.0.0", image: image, schemaBytes: 2 << 20}), "1.0.0")
	h.until("the route is Unpack",
		func(oi *v1alpha1.OperatorInstall) bool { return oi.Status.OLMDetails().Route == v1alpha1.RouteUnpack })
	h.says("OLM unpacks unpacked.v1.0.0", "Job in namespace unpacked", "too large")
	h.eventually("OLM starts its Job", func() bool {
		var jobs unstructured.UnstructuredList
		jobs.SetAPIVersion("batch/v1")
		jobs.SetKind("JobList")
		h.must(h.List(h.t.Context(), &jobs, client.InNamespace(h.operator)))
		return len(jobs.Items) == 1
	})
}

func tooLarge(h *harness) {
	h.to(h.pin(bundle{version: "1.0.0", schemaBytes: 2 << 20}), "1.0.0")
	h.stalls(v1alpha1.ReasonBundleTooLarge, "KiB", "at most 1024 KiB fit", "image")
}

// largestInline is just below the limit of what is inlined.
func largestInline(h *harness) {
	b := bundle{version: "1.0.0", schemaBytes: 970 << 10}
	packages, err := catalogs.ReadAll(catalogs.SingleFile("catalog.json", bytes.NewReader(fbc(h.operator, b))))
	h.must(err)
	v, err := view.Build(view.Input{Package: packages[0], Next: csvName(h.operator, b.version)})
	h.must(err)
	if v.InlineBytes < bundles.MaxInlineBytes*95/100 {
		h.t.Errorf("the bundle takes %d bytes of %d: too small for this test", v.InlineBytes, bundles.MaxInlineBytes)
	}
	h.to(h.pin(b), "1.0.0")
	if oi := h.runs(); oi.Status.OLMDetails().Route != v1alpha1.RouteInline {
		h.t.Errorf("route %q", oi.Status.OLMDetails().Route)
	}
}

// installedElsewhere finds the operator in another namespace, watching all.
func installedElsewhere(h *harness) {
	pin := h.pin(line("1.0.0")...)
	r := releaseOf(h.operator, pin, "1.0.0")
	r.Install.Mode, r.Install.Namespace = v1alpha1.InstallAllNamespaces, "wandering-before"
	h.admit(r)
	h.runs()
	h.uninstall(v1alpha1.RemovalOrphan)
	h.revision = 0
	r.Install.Namespace = h.operator
	h.admit(r)
	h.stalls(v1alpha1.ReasonInstalledElsewhere, "wandering-before/wandering.v1.0.0", "spec.install.namespace")
	before := metav1.ObjectMeta{Namespace: "wandering-before", Name: h.operator}
	h.delete(&operatorsv1alpha1.Subscription{ObjectMeta: before})
	before.Name = csvName(h.operator, "1.0.0")
	h.delete(&operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: before})
	h.runs()
	h.uninstall(v1alpha1.RemovalUninstall)
}

func unfitOperatorGroup(h *harness) {
	h.makeNamespace()
	theirs := h.create(&operatorsv1.OperatorGroup{ObjectMeta: h.meta("theirs"),
		Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"default"}}})
	h.to(h.pin(line("1.0.0")...), "1.0.0")
	h.stalls(v1alpha1.ReasonOperatorGroupConflict, "grouped/theirs", "OwnNamespace", "delete that OperatorGroup")
	h.delete(theirs)
	h.runs()
}

func foreignSubscription(h *harness) {
	h.makeNamespace()
	theirs := h.create(&operatorsv1alpha1.Subscription{ObjectMeta: h.meta("theirs"),
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			CatalogSource: "theirs", CatalogSourceNamespace: h.operator, Package: h.operator, Channel: "stable",
		}})
	h.to(h.pin(line("1.0.0")...), "1.0.0")
	h.stalls(v1alpha1.ReasonSubscriptionConflict, "subscribed/theirs", "spec.adopt", "delete it")
	h.delete(theirs)
	h.runs()
}

func terminatingNamespace(h *harness) {
	ns := h.makeNamespace()
	kept := &corev1.ConfigMap{ObjectMeta: h.meta("kept")}
	kept.Finalizers = []string{"example.com/kept"}
	h.create(kept)
	h.delete(ns)
	h.to(h.pin(line("1.0.0")...), "1.0.0")
	h.says("being deleted", "created again")
	patch := client.MergeFrom(kept.DeepCopy())
	kept.Finalizers = nil
	h.must(h.Patch(context.Background(), kept, patch))
	h.runs()
}

// adopted was installed before, and its Subscription is gone: it is taken up as
// it runs.
func adopted(h *harness) {
	pin := h.pin(line("1.0.0", "1.1.0")...)
	h.to(pin, "1.0.0")
	h.runs()
	h.uninstall(v1alpha1.RemovalOrphan)
	h.delete(&operatorsv1alpha1.Subscription{ObjectMeta: h.meta(h.operator)})
	before := h.csv("1.0.0")
	h.revision = 0
	h.to(pin, "1.0.0")
	h.runs()
	if after := h.csv("1.0.0"); after == nil || after.UID != before.UID {
		h.t.Errorf("the CSV was made anew")
	}
	h.to(pin, "1.1.0")
	h.runs()
	h.only("1.1.0")
}

// scaledToZero has its Deployment scaled down by hand: it is Succeeded for OLM,
// and nothing of it runs.
func scaledToZero(h *harness) {
	h.to(h.pin(line("1.0.0")...), "1.0.0")
	h.runs()
	h.inSync()
	h.until("it is scaled to zero", func(oi *v1alpha1.OperatorInstall) bool {
		h.scaleTo(0)
		return conditions.Get(oi.Status.Conditions, v1alpha1.ConditionStalled).Reason == v1alpha1.ReasonScaledToZero
	})
	h.stalls(v1alpha1.ReasonScaledToZero, "Deployment scaled/scaled", "the bundle asks for 1")
	h.drifts("Deployment scaled spec.replicas")
	h.scale(1)
	h.inSync()
	h.runs()
}

// driftIsCorrected has a Deployment and a CSV changed by hand, and the policy to put
// that back. OLM by itself follows the CSV, and does not look at the Deployment.
func driftIsCorrected(h *harness) {
	h.to(h.pin(line("1.0.0")...), "1.0.0")
	oi := h.runs()
	patch := client.MergeFrom(oi.DeepCopy())
	oi.Spec.Drift = v1alpha1.DriftCorrect
	h.must(h.Patch(h.t.Context(), oi, patch))

	// OLM may set the replicas itself, once. Each time that the agent does counts, also before it is recorded, and it
	// does so five times in an hour.
	scaled := 0
	h.until("the Deployment is scaled up again, and that is recorded", func(now *v1alpha1.OperatorInstall) bool {
		if now.Status.Correction == nil && scaled < 2 && h.replicas() != 0 {
			h.scaleTo(0)
			scaled++
		}
		oi = now
		return now.Status.Correction != nil && h.replicas() == 1
	})
	first := oi.Status.Correction.Count
	h.inSync()
	h.runs()

	csv := h.csv("1.0.0")
	change := client.MergeFrom(csv.DeepCopy())
	three := int32(3)
	csv.Spec.DisplayName = "changed by hand"
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Replicas = &three
	h.must(h.Patch(h.t.Context(), csv, change))
	h.eventually("CSV and Deployment are as before", func() bool {
		csv := h.csv("1.0.0")
		replicas := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Replicas
		return csv.Spec.DisplayName != "changed by hand" && (replicas == nil || *replicas == 1) && h.replicas() == 1
	})
	oi = h.until("both corrections are recorded", func(oi *v1alpha1.OperatorInstall) bool {
		c := oi.Status.Correction
		return c != nil && c.Count > first && c.Count <= engines.MaxCorrections
	})
	h.inSync()
	h.runs()
	h.eventually("an Event tells of it", func() bool {
		var list eventsv1.EventList
		h.must(h.List(h.t.Context(), &list, client.InNamespace(h.namespace)))
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "DriftCorrected" && e.Regarding.Name == oi.Name &&
				strings.Contains(e.Note, "Deployment corrected spec.replicas")
		})
	})

	lowest := int32(1)
	h.create(&autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: h.meta(h.operator),
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{MinReplicas: &lowest, MaxReplicas: 3,
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
				Name: h.operator}}})
	h.until("the agent has seen the autoscaler's replicas", func(*v1alpha1.OperatorInstall) bool {
		h.scaleTo(2)
		return h.replicas() == 2 && h.available() == 2
	})
	oi = h.inSync()
	if h.replicas() != 2 {
		h.t.Errorf("the agent scaled down what an autoscaler scaled up: %+v", oi.Status.Correction)
	}
}

// inSync waits until nothing differs.
func (h *harness) inSync() *v1alpha1.OperatorInstall {
	h.t.Helper()
	return h.until("nothing differs", func(oi *v1alpha1.OperatorInstall) bool {
		return conditions.Get(oi.Status.Conditions, v1alpha1.ConditionDrifted).Reason == v1alpha1.ReasonInSync
	})
}

func (h *harness) deployment() *appsv1.Deployment {
	h.t.Helper()
	d := &appsv1.Deployment{ObjectMeta: h.meta(h.operator)}
	h.must(h.Get(h.t.Context(), client.ObjectKeyFromObject(d), d))
	return d
}

// scaleTo scales the operator's Deployment by hand where it is not so. OLM may still be installing, and then it sets
// the replicas itself, once.
func (h *harness) scaleTo(replicas int32) {
	h.t.Helper()
	if h.replicas() != replicas {
		h.scale(replicas)
	}
}

// scale scales the operator's Deployment by hand.
func (h *harness) scale(replicas int32) {
	h.t.Helper()
	d := h.deployment()
	patch := client.MergeFrom(d.DeepCopy())
	d.Spec.Replicas = &replicas
	h.must(h.Patch(h.t.Context(), d, patch))
}

func (h *harness) replicas() int32 { return *h.deployment().Spec.Replicas }

func (h *harness) available() int32 { return h.deployment().Status.AvailableReplicas }

// settingsAreCorrected has pods that never come up with the first settings. OLM
// waits five minutes for them; corrected ones reach the Deployment before that.
func settingsAreCorrected(h *harness) {
	r := releaseOf(h.operator, h.pin(bundle{version: "1.0.0", change: neverReady(3600)}), "1.0.0")
	with := func(level string) v1alpha1.Release {
		r := r
		r.Install.Config = &v1alpha1.OperatorConfig{Env: []corev1.EnvVar{{Name: "LEVEL", Value: level}}}
		return r
	}
	level := func() string {
		d := &appsv1.Deployment{ObjectMeta: h.meta(h.operator)}
		if err := h.Get(h.t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			h.must(client.IgnoreNotFound(err))
			return ""
		}
		for _, v := range d.Spec.Template.Spec.Containers[0].Env {
			if v.Name == "LEVEL" {
				return v.Value
			}
		}
		return ""
	}
	h.admit(with("wrong"))
	h.says(csvName(h.operator, "1.0.0"), "Installing")
	h.eventually("the Deployment has the first settings", func() bool { return level() == "wrong" })
	began := h.csv("1.0.0").Status.LastTransitionTime
	h.admit(with("right"))
	h.eventually("the Deployment has the corrected settings", func() bool { return level() == "right" })
	h.t.Logf("corrected %s after OLM began to install", metav1.Now().Sub(began.Time))
	for _, event := range h.csv("1.0.0").Status.Conditions {
		if event.Phase == operatorsv1alpha1.CSVPhaseFailed {
			h.t.Errorf("OLM failed the installation first: %s", event.Message)
		}
	}
}

// drifts waits until the condition Drifted names a field.
func (h *harness) drifts(field string) {
	h.t.Helper()
	h.until("Drifted names "+field, func(oi *v1alpha1.OperatorInstall) bool {
		drifted := conditions.Get(oi.Status.Conditions, v1alpha1.ConditionDrifted)
		return drifted.Status == metav1.ConditionTrue && strings.Contains(drifted.Message, field)
	})
}

// deletedHalfway has an upgrade that waits for something, and is deleted by
// somebody meanwhile. OLM is left with a CSV that is being replaced by nothing;
// one of its operators crashes on that.
func deletedHalfway(h *harness) {
	pin := h.pin(bundle{version: "1.0.0"}, bundle{version: "1.1.0", replaces: "1.0.0",
		change: needsCRD("halfway-needs")})
	h.to(pin, "1.0.0")
	h.runs()
	h.to(pin, "1.1.0")
	h.stalls(v1alpha1.ReasonRequirementsNotMet, "things.halfway-needs.example.com")
	first := h.csv("1.1.0")
	h.delete(first)
	h.eventually("1.1.0 is tried again", func() bool {
		again := h.csv("1.1.0")
		return again != nil && again.UID != first.UID
	})
	h.create(unstructuredOf(catalogtest.CRD(group("halfway-needs"), 0)))
	h.runs()
	h.only("1.1.0")
	for _, p := range h.cluster.Processes() {
		if p.Restarts > 0 {
			h.t.Logf("%s was restarted %d times", p.Name, p.Restarts)
		}
	}
}
