// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	echov1alpha1 "github.com/bellwether-dev/bellwether/testbed/echo/api/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestLifeOfAnInstall goes through the life of one operator on one cluster:
// each step starts from where the one before it ended.
func TestLifeOfAnInstall(t *testing.T) {
	t.Parallel()
	c := testenv.Cluster(t, cluster.Options{OLM: true, Pods: true, Images: echoImages(t)})
	testenv.InstallCRDs(t, c)
	h := start(t, c, "life")
	pin := h.echoCatalog()
	const namespace = "echo-operator"
	step := func(name string, do func(h *harness)) {
		if t.Failed() {
			return
		}
		t.Run(name, func(t *testing.T) {
			inner := *h
			inner.t = t
			do(&inner)
			h.revision = inner.revision
		})
	}

	step("a fresh install", func(h *harness) {
		h.admit(release(pin, "1.0.0"))
		oi := h.runs()
		if oi.Status.Installed.Bundle != v1 || oi.Status.OLMDetails().Route != v1alpha1.RouteInline {
			t.Errorf("installed %+v by route %q", oi.Status.Installed, oi.Status.OLMDetails().Route)
		}
	})
	step("an upgrade", func(h *harness) {
		h.must(h.Create(h.t.Context(), &echov1alpha1.EchoServer{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hello"},
			Spec:       echov1alpha1.EchoServerSpec{Message: "hello"},
		}))
		h.admit(release(pin, "1.1.0"))
		if oi := h.runs(); oi.Status.Installed.Bundle != v2 || len(oi.Status.Path) != 0 {
			t.Errorf("installed %+v, path %v", oi.Status.Installed, oi.Status.Path)
		}
	})
	step("drift of a Subscription is corrected", func(h *harness) {
		sub := &operatorsv1alpha1.Subscription{}
		key := client.ObjectKey{Namespace: namespace, Name: "echo-operator"}
		h.must(h.Get(h.t.Context(), key, sub))
		patch := client.MergeFrom(sub.DeepCopy())
		sub.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalAutomatic
		h.must(h.Patch(h.t.Context(), sub, patch))
		h.eventually("the approval is Manual again", func() bool {
			return h.Get(h.t.Context(), key, sub) == nil &&
				sub.Spec.InstallPlanApproval == operatorsv1alpha1.ApprovalManual
		})
	})
	step("a CSV that somebody deletes comes back", func(h *harness) {
		csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v2}}
		h.must(h.Get(h.t.Context(), client.ObjectKeyFromObject(csv), csv))
		uid := csv.UID
		h.must(h.Delete(h.t.Context(), csv))
		h.eventually("another CSV succeeds", func() bool {
			err := h.Get(h.t.Context(), client.ObjectKeyFromObject(csv), csv)
			return err == nil && csv.UID != uid && csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded
		})
		h.runs()
	})
	step("an older stamp is refused", func(h *harness) {
		h.admitAs(release(pin, "1.0.0"), 1)
		h.stalls(v1alpha1.ReasonStaleAdmission, "revision 1")
		h.admit(release(pin, "1.1.0"))
		h.runs()
	})
	step("two OperatorGroups", func(h *harness) {
		second := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "theirs"}}
		h.must(h.Create(h.t.Context(), second))
		h.stalls(v1alpha1.ReasonOperatorGroupConflict, "theirs", "Delete all but one")
		h.must(h.Delete(h.t.Context(), second))
		h.runs()
	})
	step("wrong targets say what is wrong and recover", func(h *harness) {
		wrong := map[string]struct {
			change func(*v1alpha1.Release)
			says   string
		}{
			v1alpha1.ReasonUnknownPackage: {func(r *v1alpha1.Release) {
				r.Package,
					r.Install.Namespace = "echo-operatr", namespace
			}, "echo-operator"},
			v1alpha1.ReasonUnknownChannel: {func(r *v1alpha1.Release) { r.Channel = "stabel" }, "stable"},
			v1alpha1.ReasonUnknownVersion: {func(r *v1alpha1.Release) {
				r.Version, r.Bundle = "9.9.9",
					"echo-operator.v9.9.9"
			}, "1.1.0"},
			v1alpha1.ReasonNoUpgradePath: {func(r *v1alpha1.Release) { r.Version, r.Bundle = "1.0.0", v1 },
				"from 1.1.0 to 1.0.0"},
			v1alpha1.ReasonDigestMismatch: {func(r *v1alpha1.Release) { r.Catalog.Digest = "sha256:" + zeros },
				"digest"},
			v1alpha1.ReasonCatalogUnreachable: {func(r *v1alpha1.Release) { r.Catalog = unreachable }, "127.0.0.1:1"},
			v1alpha1.ReasonNotACatalog: {func(r *v1alpha1.Release) { r.Catalog = h.catalog([]byte("hello")) },
				"catalog"},
		}
		for reason, w := range wrong {
			r := release(pin, "1.1.0")
			w.change(&r)
			// Another config, so that what runs is not the target.
			r.Install.Config = &v1alpha1.OperatorConfig{Env: []corev1.EnvVar{{Name: "WRONG", Value: reason}}}
			h.admit(r)
			h.stalls(reason, w.says)
		}
		h.admit(release(pin, "1.1.0"))
		h.runs()
	})
	step("settings reach the Deployment", func(h *harness) {
		r := release(pin, "1.1.0")
		r.Install.Config = &v1alpha1.OperatorConfig{Env: []corev1.EnvVar{{Name: "GREETING", Value: "set from the hub"}}}
		h.admit(r)
		h.runs()
		var pods corev1.PodList
		h.must(h.List(h.t.Context(), &pods, client.InNamespace(namespace)))
		h.eventually("a pod has the variable", func() bool {
			h.must(h.List(h.t.Context(), &pods, client.InNamespace(namespace)))
			for _, pod := range pods.Items {
				for _, container := range pod.Spec.Containers {
					for _, variable := range container.Env {
						if variable.Name == "GREETING" {
							return true
						}
					}
				}
			}
			return false
		})
	})
	step("an agent that was killed goes on", func(h *harness) {
		h.agent.Kill()
		h.startAgent()
		h.admit(release(pin, "1.1.0"))
		h.runs()
	})
	step("uninstall keeps custom resources and the namespace they are in", func(h *harness) {
		h.uninstall(v1alpha1.RemovalUninstall)
		var csvs operatorsv1alpha1.ClusterServiceVersionList
		h.must(h.List(h.t.Context(), &csvs, client.InNamespace(namespace)))
		if len(csvs.Items) != 0 {
			t.Errorf("%d CSVs are left", len(csvs.Items))
		}
		h.must(h.Get(h.t.Context(), client.ObjectKey{Namespace: namespace, Name: "hello"}, &echov1alpha1.EchoServer{}))
	})
	step("a namespace with nothing else goes with its operator", func(h *harness) {
		r := release(pin, "1.0.0")
		r.Install.Namespace = "echo-alone"
		h.revision = 0
		h.admit(r)
		h.runs()
		h.uninstall(v1alpha1.RemovalUninstall)
		h.gone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "echo-alone"}})
	})
	step("orphan leaves the operator", func(h *harness) {
		r := release(pin, "1.0.0")
		r.Install.Namespace = "echo-orphan"
		h.revision = 0
		h.admit(r)
		h.runs()
		h.uninstall(v1alpha1.RemovalOrphan)
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		h.must(h.Get(h.t.Context(), client.ObjectKey{Namespace: "echo-orphan", Name: v1}, csv))
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			t.Errorf("the orphaned CSV is %s", csv.Status.Phase)
		}
	})
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

var unreachable = v1alpha1.CatalogPin{
	Source: v1alpha1.CatalogSource{Image: "127.0.0.1:1/catalogs/echo:latest"}, Digest: "sha256:" + zeros,
}
