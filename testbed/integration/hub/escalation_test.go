// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// asHub returns a client with the credentials of the hub's pod.
func (h *harness) asHub(t *testing.T) client.Client {
	t.Helper()
	config, err := h.cluster.UserConfig(hubUser, "system:serviceaccounts", "system:serviceaccounts:"+hubNamespace)
	must(t, err)
	return h.as(t, config)
}

// TestTheHubsCredentialsLeadToNoOthers tries to become another ServiceAccount with the credentials of the hub's pod.
// The hub's own namespace has an agent: the hub's cluster may be a member of the fleet.
func TestTheHubsCredentialsLeadToNoOthers(t *testing.T) {
	h := start(t)
	hub := h.asHub(t)
	cluster := fleetCluster("escalation")
	h.join(t, cluster)
	own := cluster.Status.Namespace
	privileged := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace,
		Name: v1alpha1.AgentServiceAccount}}
	must(t, h.Create(t.Context(), privileged))
	t.Cleanup(func() { _ = h.Delete(t.Context(), privileged) })

	meta := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.AgentServiceAccount}
	}
	tokenOf := func(namespace, name, account string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account}},
			Type: corev1.SecretTypeServiceAccountToken}
	}
	binding := func(namespace, role string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "made"},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hubNamespace,
				Name: "bellwether-hub"}}}
	}
	create := func(o client.Object) func() error {
		return func() error { return hub.Create(t.Context(), o) }
	}
	token := func(namespace, name string) func() error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		return func() error {
			return hub.SubResource("token").Create(t.Context(), account, &authenticationv1.TokenRequest{})
		}
	}
	for name, try := range map[string]func() error{
		"a token Secret in kube-system": create(tokenOf(metav1.NamespaceSystem, "bellwether-agent-token",
			"namespace-controller")),
		"a token Secret in its own namespace": create(tokenOf(hubNamespace, "bellwether-alertmanager",
			privileged.Name)),
		"a token Secret in a cluster's namespace": create(tokenOf(own, "bellwether-agent-token", privileged.Name)),
		"a token of an agent":                     token(own, v1alpha1.AgentServiceAccount),
		"a token of the agent beside it":          token(hubNamespace, privileged.Name),
		"a token of another ServiceAccount":       token(metav1.NamespaceSystem, "namespace-controller"),
		"a ServiceAccount in kube-system": create(
			&corev1.ServiceAccount{ObjectMeta: meta(metav1.NamespaceSystem)}),
		"a Role in kube-system": create(&rbacv1.Role{ObjectMeta: meta(metav1.NamespaceSystem),
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"},
				ResourceNames: []string{v1alpha1.AgentServiceAccount}, Verbs: []string{"create"}}}}),
		"a Role beyond its rights": create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "made"},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"},
				Verbs: []string{"get"}}}}),
		"cluster-admin in a cluster's namespace": create(binding(own, "cluster-admin")),
		"cluster-admin in kube-system":           create(binding(metav1.NamespaceSystem, "cluster-admin")),
		"a ClusterRoleBinding": create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "made"},
			RoleRef: binding("", "cluster-admin").RoleRef, Subjects: binding("", "").Subjects}),
		"another Secret": create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace,
			Name: "made"}}),
		"a quota that stops kube-system": create(&corev1.ResourceQuota{ObjectMeta: meta(metav1.NamespaceSystem),
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("0")}}}),
		"a namespace": create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "made"}}),
		"a namespace with a cluster's label": create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "made",
			Labels: map[string]string{v1alpha1.LabelCluster: "escalation"}}}),
		"the end of another namespace": func() error {
			return hub.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubNamespace}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := try(); !apierrors.IsForbidden(err) {
				t.Errorf("the hub gets it: %v", err)
			} else {
				t.Log(err)
			}
		})
	}
}

// takenBy are the verbs and resources by which somebody gets credentials of others: he reads them, has them made, runs
// something beside them, or is somebody else.
var takenBy = []string{"/secrets", "/configmaps", "/pods", "/serviceaccounts", "/nodes/proxy", "/services/proxy",
	"/users", "/groups", "/uids", "authentication.k8s.io/", "certificates.k8s.io/"}

// TestHubPodTakesNoCredentials asks for every verb on what holds or gives credentials, in every namespace of the hub's
// cluster, and then tries what an admission policy could not forbid.
func TestHubPodTakesNoCredentials(t *testing.T) {
	h := start(t)
	h.join(t, fleetCluster("credentials"))
	team := testenv.Namespace(t, h.cluster.RESTConfig(), "payments")
	names := []string{v1alpha1.AgentServiceAccount, "default", "kube-root-ca.crt", "bellwether-alertmanager",
		"bellwether-silences", "bellwether-slo", "bellwether-agent-token", "pagerduty", "other"}
	for _, namespace := range []string{hubNamespace, team} {
		other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}}
		must(t, h.Create(t.Context(), other))
		t.Cleanup(func() { _ = h.Delete(context.Background(), other) })
	}
	namespaces := []string{""}
	var all corev1.NamespaceList
	must(t, h.List(t.Context(), &all))
	for i := range all.Items {
		namespaces = append(namespaces, all.Items[i].Name)
	}
	hub := &agent{Client: h.asHub(t), namespace: hubNamespace}
	questions := slices.DeleteFunc(h.questions(t, namespaces, names), func(q question) bool {
		return !slices.ContainsFunc(takenBy, func(prefix string) bool {
			return strings.HasPrefix(q.group+"/"+q.resource, prefix)
		})
	})
	// Admission policies forbid it to write a ServiceAccount outside of the clusters' namespaces, to request tokens,
	// and to create another Secret than bellwether-alertmanager: see TestTheHubsCredentialsLeadToNoOthers.
	want := map[string]string{
		"/configmaps": "create", "/configmaps bellwether-silences": "get patch",
		"/configmaps bellwether-slo": "delete get patch", "/configmaps kube-root-ca.crt everybody": "get",
		"/secrets": "create", "/secrets bellwether-alertmanager": "get patch", "/secrets pagerduty": "get",
		"/serviceaccounts everybody":                         "create",
		"/serviceaccounts bellwether-agent everybody":        "get list patch watch",
		"/serviceaccounts/token bellwether-agent everybody":  "create",
		"authentication.k8s.io/selfsubjectreviews everybody": "create",
		"authentication.k8s.io/tokenreviews everybody":       "create", // it must know the token already
		"certificates.k8s.io/clustertrustbundles everybody":  "get list watch",
	}
	if diff := cmp.Diff(want, least(allowed(t, hub, questions))); diff != "" {
		t.Errorf("what the hub may do, after %d questions (-want +got):\n%s", len(questions), diff)
	}
	for _, namespace := range namespaces[1:] {
		h.takesNothingIn(t, hub, namespace)
	}
	t.Logf("%d questions about %d namespaces", len(questions), len(namespaces)-1)
}

// least leaves out of what is allowed what follows from the rest: rights to one object where there are rights to all,
// and those in one namespace that are rights in all.
func least(allowed map[string]string) map[string]string {
	out := map[string]string{}
	for what, verbs := range allowed {
		resource, rest, _ := strings.Cut(what, " ")
		name, place, isIn := strings.Cut(rest, "in ")
		name = strings.TrimSpace(strings.TrimSuffix(name, "everybody"))
		suffix := ""
		switch {
		case isIn:
			suffix = " in " + place
		case strings.HasSuffix(what, " everybody"):
			suffix = " everybody"
		}
		var known []string
		const everybody = " everybody"
		for _, other := range []string{resource + suffix, resource + everybody, resource + " " + name + everybody} {
			if other != what {
				known = append(known, strings.Fields(allowed[other])...)
			}
		}
		own := slices.DeleteFunc(strings.Fields(verbs), func(verb string) bool { return slices.Contains(known, verb) })
		if len(own) > 0 {
			out[what] = strings.Join(own, " ")
		}
	}
	return out
}

// takesNothingIn tries to read Secrets of a namespace, to get into its pods, and to get tokens of its accounts.
func (h *harness) takesNothingIn(t *testing.T, hub client.Client, namespace string) {
	t.Helper()
	ctx := t.Context()
	config, err := h.cluster.UserConfig(hubUser, "system:serviceaccounts", "system:serviceaccounts:"+hubNamespace)
	must(t, err)
	watching, err := client.NewWithWatch(config, client.Options{Scheme: h.scheme})
	must(t, err)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "other"}
	pod := &corev1.Pod{ObjectMeta: meta}
	for name, err := range map[string]error{
		"get a Secret": hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "other"}, &corev1.Secret{}),
		"list Secrets": hub.List(ctx, &corev1.SecretList{}, client.InNamespace(namespace)),
		"list pods":    hub.List(ctx, &corev1.PodList{}, client.InNamespace(namespace)),
		"run a pod":    hub.Create(ctx, pod.DeepCopy()),
		"exec":         hub.SubResource("exec").Create(ctx, pod.DeepCopy(), pod.DeepCopy()),
		"debug":        hub.SubResource("ephemeralcontainers").Update(ctx, pod.DeepCopy()),
		"get a token": hub.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "default"}}, &authenticationv1.TokenRequest{}),
		"watch Secrets": func() error {
			w, err := watching.Watch(ctx, &corev1.SecretList{}, client.InNamespace(namespace))
			if err == nil {
				w.Stop()
			}
			return err
		}(),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s in %s: %v, want it to be forbidden", name, namespace, err)
		}
	}
}

// TestTheHubLeavesForeignObjectsAlone tries to change and delete routes and rules of others, and what agents say of
// their backups, with the credentials of the hub's pod.
func TestTheHubLeavesForeignObjectsAlone(t *testing.T) {
	h := start(t)
	hub := h.asHub(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "foreign")
	for _, crd := range []*unstructured.Unstructured{alertmanagerConfigCRD(), prometheusRuleCRD()} {
		must(t, h.Create(t.Context(), crd))
		t.Cleanup(func() { _ = h.Delete(context.Background(), crd) })
	}
	backup := &v1alpha1.OperatorBackup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"},
		Spec: v1alpha1.OperatorBackupSpec{Operator: v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}}}
	must(t, h.Create(t.Context(), backup))
	located, another := backup.DeepCopy(), backup.DeepCopy()
	located.Status.Location = "s3://backups/victim/team.echo/one"
	another.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: "another"}
	cluster := fleetCluster("scanned-by-its-agent")
	h.join(t, cluster)
	found := &v1alpha1.OperatorScan{}
	must(t, h.Get(t.Context(), client.ObjectKey{Namespace: cluster.Status.Namespace, Name: v1alpha1.ScanName}, found))
	found.Status.OLM = v1alpha1.OLMServed
	tries := map[string]func() error{
		"what an agent found": func() error { return hub.Status().Update(t.Context(), found.DeepCopy()) },
		"where a backup is": func() error {
			return hub.Status().Patch(t.Context(), located, client.MergeFrom(backup))
		},
		"another backup":      func() error { return hub.Create(t.Context(), another) },
		"the end of a backup": func() error { return hub.Delete(t.Context(), backup.DeepCopy()) },
	}
	for kind, labels := range map[string]map[string]string{
		"AlertmanagerConfig": {v1alpha1.LabelPaging: "true", v1alpha1.LabelPagingHub: hubNamespace},
		"PrometheusRule":     {v1alpha1.LabelRules: "true"},
	} {
		object := func(name string, labels map[string]string) *unstructured.Unstructured {
			o := &unstructured.Unstructured{Object: map[string]any{"kind": kind,
				"apiVersion": map[string]string{"AlertmanagerConfig": "monitoring.coreos.com/v1alpha1",
					"PrometheusRule": "monitoring.coreos.com/v1"}[kind]}}
			o.SetNamespace(hubNamespace)
			o.SetName(name)
			o.SetLabels(labels)
			return o
		}
		foreign := object("foreign", nil)
		eventually(t, func() error { return h.Create(t.Context(), foreign.DeepCopy()) })
		own := object("own", labels)
		must(t, hub.Create(t.Context(), own))
		must(t, hub.Delete(t.Context(), own))
		tries["adopting "+kind] = func() error {
			return hub.Patch(t.Context(), object("foreign", labels), client.MergeFrom(foreign))
		}
		tries["the end of "+kind] = func() error { return hub.Delete(t.Context(), object("foreign", nil)) }
		tries["creating "+kind+" without a label"] = func() error { return hub.Create(t.Context(), object("new", nil)) }
	}
	for name, try := range tries {
		t.Run(name, func(t *testing.T) {
			if err := try(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "bellwether-hub-") {
				t.Errorf("no policy of the hub forbids it: %v", err)
			} else {
				t.Log(err)
			}
		})
	}
}

// TestTheHubMayNoMore asks the API server what the hub may do.
func TestTheHubMayNoMore(t *testing.T) {
	h := start(t)
	hub := h.asHub(t)
	const rbac = rbacv1.GroupName
	for name, test := range map[string]struct {
		attributes authorizationv1.ResourceAttributes
		want       bool
	}{
		"its own Secret": {authorizationv1.ResourceAttributes{Namespace: hubNamespace, Verb: "patch",
			Resource: "secrets", Name: "bellwether-alertmanager"}, true},
		"a token of an earlier version": {authorizationv1.ResourceAttributes{Namespace: "bellwether-a", Verb: "get",
			Resource: "secrets", Name: "bellwether-agent-token"}, false},
		"another Secret": {authorizationv1.ResourceAttributes{Namespace: "bellwether-a", Verb: "get",
			Resource: "secrets", Name: "other"}, false},
		"creating Secrets": {authorizationv1.ResourceAttributes{Namespace: "bellwether-a", Verb: "create",
			Resource: "secrets"}, false},
		"all Secrets": {authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets"}, false},
		"any Role": {authorizationv1.ResourceAttributes{Namespace: "default", Verb: "patch", Group: rbac,
			Resource: "roles", Name: "other"}, false},
		"ClusterRoles": {authorizationv1.ResourceAttributes{Verb: "create", Group: rbac, Resource: "clusterroles"},
			false},
		"rights beyond its own": {authorizationv1.ResourceAttributes{Namespace: "default", Verb: "escalate",
			Group: rbac, Resource: "roles", Name: "bellwether-agent"}, false},
		"roles beyond its own": {authorizationv1.ResourceAttributes{Namespace: "default", Verb: "bind", Group: rbac,
			Resource: "clusterroles", Name: "cluster-admin"}, false},
		"being a user":  {authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "users"}, false},
		"being a group": {authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "groups"}, false},
		"being a ServiceAccount": {authorizationv1.ResourceAttributes{Verb: "impersonate", Namespace: "bellwether-a",
			Resource: "serviceaccounts", Name: "bellwether-agent"}, false},
		"reading pods": {authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}, false},
		"making pods":  {authorizationv1.ResourceAttributes{Namespace: "a", Verb: "create", Resource: "pods"}, false},
		"nodes": {authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes",
			Subresource: "proxy"}, false},
		"its own policy": {authorizationv1.ResourceAttributes{Verb: "delete", Group: "admissionregistration.k8s.io",
			Resource: "validatingadmissionpolicies", Name: "bellwether-hub"}, false},
		"certificates": {authorizationv1.ResourceAttributes{Verb: "update", Group: "certificates.k8s.io",
			Resource: "certificatesigningrequests", Subresource: "approval"}, false},
		"labels of a namespace": {authorizationv1.ResourceAttributes{Verb: "patch", Resource: "namespaces",
			Name: "kube-system"}, false},
		"overriding a gate of its own rollout": {authorizationv1.ResourceAttributes{Verb: "override",
			Group: "bellwether.dev", Resource: "operatorrollouts"}, false},
		"approving its own rollout": {authorizationv1.ResourceAttributes{Verb: "approve", Group: "bellwether.dev",
			Resource: "operatorrollouts"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			review := &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &test.attributes},
			}
			must(t, hub.Create(t.Context(), review))
			if review.Status.Allowed != test.want {
				t.Errorf("allowed = %v, want %v (%s)", review.Status.Allowed, test.want, review.Status.Reason)
			}
		})
	}
}
