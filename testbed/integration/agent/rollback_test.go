// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/echo"
	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// goBack plays a rollback: it admits the cluster to an older release.
func (h *harness) goBack(r v1alpha1.Release, force bool) {
	h.t.Helper()
	h.revision++
	oi := &v1alpha1.OperatorInstall{}
	h.must(h.Get(h.t.Context(), h.key(), oi))
	patch := client.MergeFrom(oi.DeepCopy())
	oi.Spec.Admission = &v1alpha1.Admission{
		Rollout: fmt.Sprintf("%s-%d", h.operator, h.revision), RolloutUID: "test", Revision: h.revision,
		Wave: "rollback", Hash: fmt.Sprintf("%s-%d", r.Hash()[:8], h.revision), AdmittedAt: metav1.Now(), Release: r,
		Rollback: &v1alpha1.AdmissionRollback{Force: force},
	}
	h.must(h.Patch(h.t.Context(), oi, patch))
}

// restart kills the agent and starts another one.
func (h *harness) restart() {
	h.t.Helper()
	h.agent.Kill()
	h.startAgent()
}

// TestRollback goes back from versions of synthetic packages.
func TestRollback(t *testing.T) {
	t.Parallel()
	c := quiet(t)
	for name, scenario := range map[string]func(*harness){
		"backward":  backAndForward,
		"leaving":   backFromPending,
		"failing":   backFromFailed,
		"returning": backOverTwo,
		"lossy":     backWithLoss,
		"stranded":  backIsImpossible,
		"lost":      backWhenTheSubscriptionNamesNothing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, c, name)
			h.operator = name
			scenario(h)
		})
	}
}

// withField has a definition with another field of spec.
func withField(names ...string) func(csv, crd object) {
	return func(_, crd object) {
		properties := object{}
		for _, name := range names {
			properties[name] = object{"type": "string"}
		}
		crd["spec"].(object)["versions"].([]any)[0].(object)["schema"] = object{"openAPIV3Schema": object{
			"type": "object", "properties": object{"spec": object{"type": "object", "properties": properties}}}}
	}
}

// stored makes a custom resource with the fields set, and returns what reads it.
func (h *harness) stored(fields object) func() object {
	h.t.Helper()
	thing := &unstructured.Unstructured{Object: object{"spec": fields}}
	thing.SetGroupVersionKind(schema.GroupVersionKind{Group: group(h.operator), Version: "v1", Kind: "Thing"})
	thing.SetNamespace("default")
	thing.SetName("mine")
	h.eventually("the custom resource is made", func() bool { return h.Create(h.t.Context(), thing) == nil })
	return func() object {
		h.t.Helper()
		h.must(h.Get(h.t.Context(), client.ObjectKeyFromObject(thing), thing))
		spec, _, _ := unstructured.NestedMap(thing.Object, "spec")
		return spec
	}
}

// backAndForward upgrades, goes back in place, and upgrades again, to the same
// version and to a newer one. The agent is killed on the way.
func backAndForward(h *harness) {
	pin := h.pin(bundle{version: "1.0.0", change: withField("a")},
		bundle{version: "1.1.0", replaces: "1.0.0", change: withField("a", "b")},
		bundle{version: "1.2.0", replaces: "1.1.0", change: withField("a", "b", "c")})
	h.to(pin, "1.0.0")
	h.runs()
	h.to(pin, "1.1.0")
	h.runs()
	h.only("1.1.0")
	read := h.stored(object{"a": "old", "b": "new"})
	uid := h.deployment().UID

	h.to(pin, "1.0.0")
	h.stalls(v1alpha1.ReasonNoUpgradePath, "from 1.1.0 to 1.0.0")
	h.goBack(releaseOf(h.operator, pin, "1.0.0"), false)
	h.eventually("spec.replaces is removed", func() bool {
		csv := h.csv("1.1.0")
		return csv == nil || csv.Spec.Replaces == ""
	})
	h.restart()
	h.runs()
	h.only("1.0.0")
	h.unharmed(uid)
	if got := read(); got["a"] != "old" || got["b"] != "new" {
		h.t.Errorf("the custom resource has %v after going back", got)
	}

	h.to(pin, "1.1.0")
	h.restart()
	h.runs()
	h.only("1.1.0")
	h.goBack(releaseOf(h.operator, pin, "1.0.0"), false)
	h.eventually("OLM goes back", func() bool { return h.csv("1.0.0") != nil })
	h.restart()
	h.runs()
	h.only("1.0.0")
	h.to(pin, "1.2.0")
	h.runs()
	h.only("1.2.0")
	h.unharmed(uid)
	if got := read(); got["b"] != "new" {
		h.t.Errorf("the custom resource has %v at the end", got)
	}
	for _, p := range h.plans() {
		if !p.Spec.Approved {
			h.t.Errorf("InstallPlan %s with %v is left", p.Name, p.Spec.ClusterServiceVersionNames)
		}
	}
}

// unharmed checks that the operator's Deployment was never made anew.
func (h *harness) unharmed(uid types.UID) {
	h.t.Helper()
	if got := h.deployment().UID; got != uid {
		h.t.Errorf("Deployment %s is another one: %s, was %s", h.operator, got, uid)
	}
}

// backFromPending goes back from an upgrade that lacks what it needs; the version
// before keeps running, and what it brought stays, as it was.
func backFromPending(h *harness) {
	pin := h.pin(bundle{version: "1.0.0", change: withField("a"), objects: h.common("1.0.0")},
		bundle{version: "1.1.0", replaces: "1.0.0", objects: h.common("1.1.0"), change: func(csv, crd object) {
			withField("a", "b")(csv, crd)
			needsCRD("nowhere")(csv, crd)
		}},
		bundle{version: "1.2.0", replaces: "1.0.0", skips: []string{"1.1.0"}})
	h.to(pin, "1.0.0")
	h.runs()
	uid, uids := h.deployment().UID, h.keeps("1.0.0")
	h.to(pin, "1.1.0")
	h.stalls(v1alpha1.ReasonRequirementsNotMet, "things.nowhere.example.com")
	h.keeps("1.1.0")
	read := h.stored(object{"a": "old", "b": "new"})
	h.goBack(releaseOf(h.operator, pin, "1.0.0"), false)
	h.restart()
	h.runs()
	h.only("1.0.0")
	h.unharmed(uid)
	if got := h.keeps("1.0.0"); !slices.Equal(got, uids) {
		h.t.Errorf("what both versions bring was made anew: %v, was %v", got, uids)
	}
	if got := read(); got["b"] != "new" {
		h.t.Errorf("the custom resource has %v after going back", got)
	}
	h.to(pin, "1.2.0")
	h.runs()
	h.only("1.2.0")
	h.unharmed(uid)
}

// common returns what each version of a package brings, in the content of this one.
func (h *harness) common(version string) []object {
	objects := []object{
		{"apiVersion": "v1", "kind": "Service", "spec": object{"ports": []any{object{"port": 80}}}},
		{"apiVersion": "v1", "kind": "ConfigMap"},
		{"apiVersion": "v1", "kind": "Secret"},
		{"apiVersion": "v1", "kind": "ServiceAccount"},
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"},
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "roleRef": object{
			"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": h.operator + "-common"}},
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"},
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "roleRef": object{
			"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": h.operator + "-common"}},
		{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": object{"maxUnavailable": 1}},
	}
	for _, o := range objects {
		o["metadata"] = object{"name": h.operator + "-common", "labels": object{"version": version}}
	}
	return objects
}

// keeps checks that what common returns is there as of a version, and belongs to its CSV where it belongs to any: what
// a bundle brings of rights has no owner. It returns the UIDs.
func (h *harness) keeps(version string) []types.UID {
	h.t.Helper()
	var uids []types.UID
	for _, o := range h.common(version) {
		live := &unstructured.Unstructured{Object: object{"apiVersion": o["apiVersion"], "kind": o["kind"]}}
		key := client.ObjectKey{Name: h.operator + "-common"}
		if !strings.HasPrefix(live.GetKind(), "Cluster") {
			key.Namespace = h.operator
		}
		if err := h.Get(h.t.Context(), key, live); err != nil {
			h.t.Errorf("%s of %s: %v", live.GetKind(), version, err)
			continue
		}
		uids = append(uids, live.GetUID())
		if got := live.GetLabels()["version"]; got != version {
			h.t.Errorf("%s is that of %s, want %s", live.GetKind(), got, version)
		}
		owners := live.GetOwnerReferences()
		isOwned := slices.Contains([]string{"Service", "ConfigMap", "Secret", "PodDisruptionBudget"}, live.GetKind())
		if isOwned != (len(owners) == 1) || isOwned && owners[0].Name != csvName(h.operator, version) {
			h.t.Errorf("the owners of %s are %v", live.GetKind(), owners)
		}
	}
	return uids
}

// backFromFailed goes back from an upgrade whose Deployment never becomes ready.
func backFromFailed(h *harness) {
	pin := h.pin(bundle{version: "1.0.0"}, bundle{version: "1.1.0", replaces: "1.0.0", change: neverReady(5)},
		bundle{version: "1.2.0", replaces: "1.0.0", skips: []string{"1.1.0"}})
	h.to(pin, "1.0.0")
	h.runs()
	uid := h.deployment().UID
	h.to(pin, "1.1.0")
	h.says(csvName(h.operator, "1.1.0"), "Failed")
	h.goBack(releaseOf(h.operator, pin, "1.0.0"), false)
	h.restart()
	h.runs()
	h.only("1.0.0")
	h.t.Logf("the Deployment was made anew: %t", h.deployment().UID != uid)
	h.to(pin, "1.2.0")
	h.runs()
	h.only("1.2.0")
}

// backOverTwo goes back over two versions in one hop.
func backOverTwo(h *harness) {
	pin := h.pin(line("1.0.0", "1.1.0", "1.2.0")...)
	h.to(pin, "1.0.0")
	h.runs()
	h.to(pin, "1.2.0")
	h.runs()
	h.only("1.2.0")
	uid := h.deployment().UID
	h.goBack(releaseOf(h.operator, pin, "1.0.0"), false)
	h.runs()
	h.only("1.0.0")
	h.unharmed(uid)
	h.to(pin, "1.2.0")
	h.runs()
	h.only("1.2.0")
	h.unharmed(uid)
}

// backWhenTheSubscriptionNamesNothing goes back where an upgrade was withdrawn, but
// the Subscription still names what was deleted: an agent that was killed in between,
// or OLM with an old copy, leaves it so. OLM resolves nothing then.
func backWhenTheSubscriptionNamesNothing(h *harness) {
	pin := h.pin(line("1.0.0", "1.1.0", "1.2.0")...)
	h.to(pin, "1.0.0")
	h.runs()
	h.to(pin, "1.1.0")
	h.runs()
	h.only("1.1.0")
	h.agent.Kill()
	sub := &operatorsv1alpha1.Subscription{}
	h.must(h.Get(h.t.Context(), client.ObjectKey{Namespace: h.operator, Name: h.operator}, sub))
	names, err := json.Marshal(object{"status": object{"installedCSV": csvName(h.operator, "1.2.0"),
		"currentCSV": nil}})
	h.must(err)
	h.must(h.Status().Patch(h.t.Context(), sub, client.RawPatch(types.MergePatchType, names)))
	h.goBack(releaseOf(h.operator, pin, "1.0.0"), false)
	h.startAgent()
	h.runs()
	h.only("1.0.0")
}

// backWithLoss goes back from a version that dropped a field only where a person
// forces it.
func backWithLoss(h *harness) {
	pin := h.pin(bundle{version: "1.0.0", change: withField("a", "b")},
		bundle{version: "1.1.0", replaces: "1.0.0", change: withField("a")})
	h.to(pin, "1.0.0")
	h.runs()
	h.to(pin, "1.1.0")
	h.runs()
	h.goBack(releaseOf(h.operator, pin, "1.0.0"), false)
	h.stalls(v1alpha1.ReasonRollbackNeedsBackup, "things.lossy.example.com", "spec.b", "Nothing was changed")
	if csv := h.csv("1.1.0"); csv == nil || csv.Spec.Replaces == "" ||
		csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
		h.t.Errorf("%+v although the rollback was refused", csv)
	}
	h.goBack(releaseOf(h.operator, pin, "1.0.0"), true)
	h.runs()
	h.only("1.0.0")
}

// backIsImpossible has a field that changed its type.
func backIsImpossible(h *harness) {
	pin := h.pin(bundle{version: "1.0.0", change: withField("a")},
		bundle{version: "1.1.0", replaces: "1.0.0", change: func(csv, crd object) {
			withField("a")(csv, crd)
			spec := crd["spec"].(object)["versions"].([]any)[0].(object)["schema"].(object)["openAPIV3Schema"].(object)
			spec["properties"].(object)["spec"].(object)["properties"].(object)["a"] = object{"type": "integer"}
		}})
	h.to(pin, "1.0.0")
	h.runs()
	h.to(pin, "1.1.0")
	h.runs()
	h.goBack(releaseOf(h.operator, pin, "1.0.0"), true)
	h.stalls(v1alpha1.ReasonRollbackImpossible, "impossible", "spec.a")
	h.to(pin, "1.1.0")
	h.runs()
}

// TestRollbackOfTheSampleOperator goes back with a program in the pods, whose
// custom resources answer all the time.
func TestRollbackOfTheSampleOperator(t *testing.T) {
	t.Parallel()
	// On a cluster of its own: OLM installs one operator of a CRD for all namespaces.
	c := testenv.Cluster(t, cluster.Options{OLM: true, Pods: true, Images: echoImages(t)})
	testenv.InstallCRDs(t, c)
	h := start(t, c, "back")
	content, err := echo.FBC("1.0.0", "1.1.0", "1.2.0", "1.3.0")
	h.must(err)
	pin := h.catalog(content)
	const namespace = "echo-back"
	to := func(version string) v1alpha1.Release {
		r := release(pin, version)
		r.Install.Namespace = namespace
		return r
	}
	h.admit(to("1.0.0"))
	h.runs()
	h.admit(to("1.1.0"))
	h.runs()
	server := &echov1alpha1.EchoServer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "back"},
		Spec: echov1alpha1.EchoServerSpec{Message: "hello", Uppercase: true}}
	h.must(h.Create(t.Context(), server))
	operator, served := &appsv1.Deployment{}, &appsv1.Deployment{}
	operatorKey := client.ObjectKey{Namespace: namespace, Name: "echo-operator"}
	servedKey := client.ObjectKey{Namespace: "default", Name: "back-echo"}
	h.must(h.Get(t.Context(), operatorKey, operator))
	h.eventually("the server is there", func() bool { return h.Get(t.Context(), servedKey, served) == nil })
	uids := []types.UID{operator.UID, served.UID, server.UID}
	check := func(version string) {
		t.Helper()
		h.must(h.Get(t.Context(), operatorKey, operator))
		h.must(h.Get(t.Context(), servedKey, served))
		h.must(h.Get(t.Context(), client.ObjectKeyFromObject(server), server))
		for i, uid := range []types.UID{operator.UID, served.UID, server.UID} {
			if uid != uids[i] {
				t.Errorf("%s: object %d was made anew", version, i)
			}
		}
		if !server.Spec.Uppercase || server.Spec.Message != "hello" {
			t.Errorf("%s: the EchoServer has %+v", version, server.Spec)
		}
		image := operator.Spec.Template.Spec.Containers[0].Image
		if want := "example.com/bellwether/echo-operator:" + version; image != want {
			t.Errorf("the operator runs %s, want %s", image, want)
		}
	}
	check("1.1.0")
	for _, step := range []struct {
		version string
		back    bool
	}{{"1.0.0", true}, {"1.1.0", false}, {"1.2.0", false}, {"1.1.0", true}, {"1.3.0", false}} {
		if step.back {
			h.goBack(to(step.version), false)
		} else {
			h.admit(to(step.version))
		}
		h.runs()
		check(step.version)
	}
	h.uninstall(v1alpha1.RemovalUninstall)
}
