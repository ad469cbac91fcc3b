// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestAgentMayNoMore does with an agent's token what an agent must be able to
// do, and then what it must not.
func TestAgentMayNoMore(t *testing.T) {
	h := start(t)
	cluster, other := fleetCluster("least"), fleetCluster("least-other")
	a := h.join(t, cluster)
	h.join(t, other)
	operator := v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}
	install, foreign := h.install(t, cluster.Name, operator), h.install(t, other.Name, operator)
	ctx, own := t.Context(), cluster.Status.Namespace
	edit := func(change func(o *v1alpha1.OperatorInstall)) error {
		o := install.DeepCopy()
		if err := h.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		before := o.DeepCopy()
		change(o)
		return a.Patch(ctx, o, client.MergeFrom(before))
	}
	allowed := map[string]func() error{
		"read its installs": func() error {
			return a.List(ctx, &v1alpha1.OperatorInstallList{}, client.InNamespace(own))
		},
		"add its finalizer": func() error {
			o := install.DeepCopy()
			if err := a.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			return kit.AddFinalizer(ctx, a, o, v1alpha1.FinalizerAgent)
		},
		"report": func() error {
			o := install.DeepCopy()
			if err := a.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			before := o.DeepCopy()
			o.Status.SucceededHash = "abc"
			return a.Status().Patch(ctx, o, client.MergeFrom(before))
		},
		"renew its Lease": func() error { return a.renew(ctx) },
		"tell Events": func() error {
			return a.Create(ctx, &eventsv1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "agent-001"}, EventTime: metav1.NowMicro(),
				ReportingController: "bellwether.dev/agent", ReportingInstance: "test", Action: "Test", Reason: "Test",
				Type: "Normal",
				Regarding: corev1.ObjectReference{APIVersion: "bellwether.dev/v1alpha1", Kind: "OperatorInstall",
					Namespace: own, Name: install.Name},
			})
		},
	}
	for name, do := range allowed {
		if err := do(); err != nil {
			t.Errorf("an agent cannot %s: %v", name, err)
		}
	}
	forbidden := map[string]func() error{
		"admit itself": func() error {
			return edit(func(o *v1alpha1.OperatorInstall) { o.Spec.RemovalPolicy = v1alpha1.RemovalUninstall })
		},
		"change its labels": func() error {
			return edit(func(o *v1alpha1.OperatorInstall) { o.Labels[v1alpha1.LabelWave] = "canary" })
		},
		"remove a foreign finalizer": func() error {
			return edit(func(o *v1alpha1.OperatorInstall) { controllerutil.AddFinalizer(o, "example.com/other") })
		},
		"have an install collected as garbage": func() error {
			return edit(func(o *v1alpha1.OperatorInstall) {
				o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "nobody",
					UID: "x"}}
			})
		},
		"take what another writer owns": func() error {
			return edit(func(o *v1alpha1.OperatorInstall) { takeFields(o) })
		},
		"own the spec by its own name": func() error {
			return edit(func(o *v1alpha1.OperatorInstall) {
				o.ManagedFields = append(o.ManagedFields, metav1.ManagedFieldsEntry{
					Manager:   string(kit.FinalizersManager),
					Operation: metav1.ManagedFieldsOperationApply, APIVersion: v1alpha1.SchemeGroupVersion.String(),
					FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:cluster":{}}}`)})
			})
		},
		"hide what another writer owns": func() error {
			return edit(func(o *v1alpha1.OperatorInstall) { entryOf(o).Subresource = "x" })
		},
		"give a finalizer to another writer": func() error {
			return edit(func(o *v1alpha1.OperatorInstall) {
				text := string(entryOf(o).FieldsV1.GetRawBytes())
				entryOf(o).FieldsV1.SetRawString(strings.Replace(text, `"f:metadata":{`,
					`"f:metadata":{"f:finalizers":{"v:\"example.com/other\"":{}},`, 1))
			})
		},
		"make an install": func() error {
			o := install.DeepCopy()
			o.ObjectMeta = metav1.ObjectMeta{Namespace: own, Name: "made"}
			return a.Create(ctx, o)
		},
		"delete an install": func() error { return a.Delete(ctx, install.DeepCopy()) },
		"read another cluster's install": func() error {
			return a.Get(ctx, client.ObjectKeyFromObject(foreign),
				foreign.DeepCopy())
		},
		"read all installs": func() error { return a.List(ctx, &v1alpha1.OperatorInstallList{}) },
		"read clusters":     func() error { return a.List(ctx, &v1alpha1.FleetClusterList{}) },
		"read rollouts": func() error {
			return a.List(ctx, &v1alpha1.OperatorRolloutList{},
				client.InNamespace(own))
		},
		"read Secrets": func() error {
			return a.List(ctx, &corev1.SecretList{},
				client.InNamespace(own))
		},
		"read a token of an earlier version": func() error {
			return a.Get(ctx, client.ObjectKey{Namespace: own, Name: "bellwether-agent-token"},
				&corev1.Secret{})
		},
		"take another Lease": func() error {
			return a.Get(ctx, client.ObjectKey{Namespace: own, Name: "another"}, &coordinationv1.Lease{})
		},
		"renew another cluster's Lease": func() error {
			return a.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: other.Status.Namespace,
				Name: v1alpha1.LeaseName}})
		},
		"widen its Role": func() error {
			return a.Delete(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: own,
				Name: v1alpha1.AgentServiceAccount}})
		},
	}
	for name, do := range forbidden {
		if err := do(); !apierrors.IsForbidden(err) {
			t.Errorf("an agent can %s: %v", name, err)
		}
	}
	must(t, a.Get(ctx, client.ObjectKeyFromObject(install), install))
	before := install.DeepCopy()
	takeFields(install)
	install.Status.SucceededHash = "other"
	must(t, a.Status().Patch(ctx, install, client.MergeFrom(before)))
	if entry := entryOf(before); !reflect.DeepEqual(entry, entryOf(install)) {
		t.Errorf("with the status an agent took fields of %s: %s", entry.Manager, entryOf(install).FieldsV1)
	}
	// Somebody who restored the object owns its finalizers, which the agent takes out of that entry with its own.
	for _, finalizers := range [][]string{nil, {v1alpha1.FinalizerAgent}} {
		must(t, h.Get(ctx, client.ObjectKeyFromObject(install), install))
		before := install.DeepCopy()
		install.Finalizers = finalizers
		must(t, h.Patch(ctx, install, client.MergeFrom(before), client.FieldOwner("velero")))
	}
	a.letGo(t, install)
}

// takeFields has the writer of an install own nothing but its cluster.
func takeFields(o *v1alpha1.OperatorInstall) {
	entryOf(o).FieldsV1.SetRawString(`{"f:spec":{"f:cluster":{}}}`)
}

// entryOf is that of the writer of an install.
func entryOf(o *v1alpha1.OperatorInstall) *metav1.ManagedFieldsEntry {
	return &o.ManagedFields[slices.IndexFunc(o.ManagedFields, func(m metav1.ManagedFieldsEntry) bool {
		return m.Subresource == "" && m.Manager != string(kit.FinalizersManager)
	})]
}

// approveVersions approves a version of a ManagedOperator as people with different roles.
func approveVersions(t *testing.T, h *harness, namespace string, operator client.Client,
	person func(name, role string) client.Client) {
	both := person("ada", "bellwether-approve")
	testenv.Grant(t, h, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ada-operates"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bellwether-operate"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ada"}},
	})
	o := &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "echo"},
		Spec: v1alpha1.ManagedOperatorSpec{Package: "echo", Catalog: v1alpha1.LocalReference{Name: "main"},
			Version: "1.x", Updates: &v1alpha1.VersionUpdates{Minor: v1alpha1.UpdateApproval}}}
	must(t, operator.Create(t.Context(), o.DeepCopy()))
	approve := func(c client.Client, by string) error {
		if err := h.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		before := o.DeepCopy()
		o.Spec.Updates.Approved = nil
		if by != "" {
			o.Spec.Updates.Approved = &v1alpha1.VersionApproval{Version: "1.2.0", By: by, Reason: "tested",
				At: metav1.Now()}
		}
		return c.Patch(t.Context(), o, client.MergeFrom(before))
	}
	refused := func(what string, err error, want string) {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a refusal with %q", what, err, want)
		}
	}
	refused("who operates approves", approve(operator, "olga"), "olga may not approve a version")
	refused("in another's name", approve(both, "olga"), "by must be 'ada'")
	must(t, approve(both, "ada"))
	must(t, approve(operator, "")) // who operates may withdraw it
	must(t, h.Delete(t.Context(), o))
}

// TestApprovals plays an SRE who may operate and one who may approve.
func TestApprovals(t *testing.T) {
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "approve")
	person := func(name, role string) client.Client {
		config, err := h.cluster.UserConfig(name)
		must(t, err)
		testenv.Grant(t, h, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		})
		return h.as(t, config)
	}
	operator, approver := person("olga", "bellwether-operate"), person("anna", "bellwether-approve")
	overrider := person("otto", "bellwether-override")
	rollout := &v1alpha1.OperatorRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "echo-1"},
		Spec: v1alpha1.OperatorRolloutSpec{
			Operator: v1alpha1.LocalReference{Name: "echo"}, Revision: 1, Release: goodRelease(),
			Strategy: v1alpha1.RolloutStrategy{},
		},
	}
	must(t, h.Create(t.Context(), rollout))
	patch := func(c client.Client, edit func(*v1alpha1.OperatorRolloutSpec)) error {
		r := rollout.DeepCopy()
		if err := h.Get(t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		before := r.DeepCopy()
		edit(&r.Spec)
		return c.Patch(t.Context(), r, client.MergeFrom(before))
	}
	approve := func(by, wave string) func(*v1alpha1.OperatorRolloutSpec) {
		return func(s *v1alpha1.OperatorRolloutSpec) {
			s.Approvals = append(s.Approvals, v1alpha1.Approval{Wave: wave, Gate: "sre", By: by, Reason: "looks good",
				At: metav1.Now()})
		}
	}
	overrideWindows := func(by string) func(*v1alpha1.OperatorRolloutSpec) {
		return func(s *v1alpha1.OperatorRolloutSpec) {
			s.WindowOverride = &v1alpha1.WindowOverride{By: by, Reason: "emergency"}
		}
	}
	override := func(by, wave string) func(*v1alpha1.OperatorRolloutSpec) {
		return func(s *v1alpha1.OperatorRolloutSpec) {
			s.Overrides = append(s.Overrides, v1alpha1.GateOverride{Wave: wave, Gate: "budget", By: by,
				Reason: "known noise", At: metav1.Now()})
		}
	}
	steps := []struct {
		name string
		as   client.Client
		edit func(*v1alpha1.OperatorRolloutSpec)
		want string // in the refusal; empty: allowed
	}{
		{"who operates may pause", operator, func(s *v1alpha1.OperatorRolloutSpec) { s.Paused = true }, ""},
		{"but not approve", operator, approve("olga", "canary"),
			"the ClusterRole bellwether-approve has the permission"},
		{"who approves may not sign for another", approver, approve("olga", "canary"),
			"signed by who gives it: by must be 'anna'"},
		{"and may approve", approver, approve("anna", "canary"), ""},
		{"a second one leaves the first", approver, approve("anna", "prod"), ""},
		{"who operates may go on", operator, func(s *v1alpha1.OperatorRolloutSpec) { s.Paused = false }, ""},
		{"but not withdraw an approval", operator,
			func(s *v1alpha1.OperatorRolloutSpec) { s.Approvals = s.Approvals[1:] }, "may not approve"},
		{"nor sign one anew", operator, func(s *v1alpha1.OperatorRolloutSpec) { s.Approvals[0].By = "olga" },
			"may not approve"},
		{"who approves may withdraw", approver, func(s *v1alpha1.OperatorRolloutSpec) { s.Approvals = nil }, ""},
		{"who operates may not override", operator, override("olga", "canary"),
			"the ClusterRole bellwether-override has the permission"},
		{"nor may who approves", approver, override("anna", "canary"), "anna may not override gates"},
		{"who overrides may not sign for another", overrider, override("olga", "canary"),
			"signed by who gives it: by must be 'otto'"},
		{"and may override", overrider, override("otto", "canary"), ""},
		{"but not approve", overrider, approve("otto", "canary"), "otto may not approve"},
		{"who operates may not withdraw an override", operator,
			func(s *v1alpha1.OperatorRolloutSpec) { s.Overrides = nil }, "may not override gates"},
		{"nor change its reason", operator, func(s *v1alpha1.OperatorRolloutSpec) { s.Overrides[0].Reason = "fine" },
			"may not override gates"},
		{"but may pause without touching it", operator, func(s *v1alpha1.OperatorRolloutSpec) { s.Paused = true }, ""},
		{"who overrides may withdraw", overrider, func(s *v1alpha1.OperatorRolloutSpec) { s.Overrides = nil }, ""},
		{"who approves may not override windows", approver, overrideWindows("anna"),
			"the ClusterRole bellwether-override has the permission"},
		{"who overrides may not sign for another", overrider, overrideWindows("anna"),
			"signed by who gives it: by must be 'otto'"},
		{"and may override", overrider, overrideWindows("otto"), ""},
		{"who operates may go on with it", operator, func(s *v1alpha1.OperatorRolloutSpec) { s.Paused = true }, ""},
		{"but not take it back", operator, func(s *v1alpha1.OperatorRolloutSpec) { s.WindowOverride = nil },
			"olga may not override windows"},
		{"who overrides may", overrider, func(s *v1alpha1.OperatorRolloutSpec) { s.WindowOverride = nil }, ""},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			err := patch(step.as, step.edit)
			if step.want == "" {
				must(t, err)
				return
			}
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), step.want) {
				t.Errorf("%v, want a refusal with %q", err, step.want)
			}
		})
	}
	t.Run("a version of an operator", func(t *testing.T) { approveVersions(t, h, namespace, operator, person) })
	t.Run("nor bring an approval along", func(t *testing.T) {
		r := rollout.DeepCopy()
		r.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: "echo-2"}
		approve("hub", "canary")(&r.Spec)
		config, err := h.cluster.UserConfig(hubUser)
		must(t, err)
		if err := h.as(t, config).Create(t.Context(), r); !apierrors.IsForbidden(err) {
			t.Errorf("the hub approved by itself: %v", err)
		}
	})
}
