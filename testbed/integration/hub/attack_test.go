// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycoordinationv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/kit"
)

// granted is everything that an agent may do on the hub, by group/resource/name. All but what is granted to everybody
// is in its own namespace.
var granted = map[string]string{
	"bellwether.dev/operatorinstalls":                         "get list patch update watch",
	"bellwether.dev/operatorinstalls/status":                  "get patch update",
	"bellwether.dev/operatorbackups":                          "create delete get list watch",
	"bellwether.dev/operatorbackups/status":                   "get patch update",
	"bellwether.dev/operatorscans bellwether-agent":           "get",
	"bellwether.dev/operatorscans/status bellwether-agent":    "update",
	"coordination.k8s.io/leases":                              "create",
	"coordination.k8s.io/leases bellwether-agent":             "get patch update",
	"events.k8s.io/events":                                    "create patch",
	"/serviceaccounts/token bellwether-agent":                 "create",
	"/configmaps kube-root-ca.crt":                            "get",
	"bellwether.dev/fleetfreezes everybody":                   "get list watch",
	"certificates.k8s.io/clustertrustbundles everybody":       "get list watch", // since Kubernetes 1.37
	"authentication.k8s.io/selfsubjectreviews everybody":      "create",
	"authorization.k8s.io/selfsubjectaccessreviews everybody": "create",
	"authorization.k8s.io/selfsubjectrulesreviews everybody":  "create",
}

// verbs are those of the API, and those that RBAC knows beside them.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate",
	"bind", "escalate", "approve", "sign", "attest", "override", "remove", "use", "proxy"}

// usual are the verbs that every resource has.
const usual = 8

// question is one thing to try.
type question struct {
	group, resource, namespace, name, verb string
}

// TestAnAgentReachesNothingElse asks for every verb on every resource that the hub's API server has: in the agent's
// namespace, in another cluster's, in the hub's and in that of Kubernetes, and in all at once.
func TestAnAgentReachesNothingElse(t *testing.T) {
	h := start(t)
	mine, other := fleetCluster("attacker"), fleetCluster("victim")
	a := h.join(t, mine)
	h.join(t, other)
	namespaces := []string{mine.Status.Namespace, other.Status.Namespace, hubNamespace, metav1.NamespaceSystem, ""}
	questions := h.questions(t, namespaces, names)
	// What is granted for every name is granted for each one.
	want := maps.Clone(granted)
	for _, name := range names {
		const leases = "coordination.k8s.io/leases"
		verbs := strings.Fields(granted[leases] + " " + granted[leases+" "+name])
		slices.Sort(verbs)
		want[leases+" "+name] = strings.Join(verbs, " ")
	}
	if diff := cmp.Diff(want, allowed(t, a, questions)); diff != "" {
		t.Errorf("what an agent may do, after %d questions (-want +got):\n%s", len(questions), diff)
	}
	t.Logf("%d questions", len(questions))
}

// allowed asks, and returns what is allowed as in granted.
func allowed(t *testing.T, a *agent, questions []question) map[string]string {
	t.Helper()
	var mu sync.Mutex
	verbs := map[string][]string{}
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for _, q := range questions {
		group.Go(func() error {
			resource, sub, _ := strings.Cut(q.resource, "/")
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Group: q.group, Resource: resource,
					Subresource: sub, Namespace: q.namespace, Name: q.name, Verb: q.verb}}}
			if err := a.Create(ctx, review); err != nil {
				return fmt.Errorf("ask for %+v: %w", q, err)
			}
			if review.Status.Allowed {
				mu.Lock()
				defer mu.Unlock()
				verbs[q.where(a.namespace)] = append(verbs[q.where(a.namespace)], q.verb)
			}
			return nil
		})
	}
	must(t, group.Wait())
	out := map[string]string{}
	for what, verbs := range verbs {
		slices.Sort(verbs)
		out[what] = strings.Join(verbs, " ")
	}
	return out
}

// names are those that Roles of agents grant something for.
var names = []string{v1alpha1.AgentServiceAccount, "kube-root-ca.crt"}

// where says what a question is about. What is granted to everybody is granted for all of the cluster.
func (q question) where(own string) string {
	text := q.group + "/" + q.resource
	if q.name != "" {
		text += " " + q.name
	}
	switch q.namespace {
	case own:
		return text
	case "":
		return text + " everybody"
	default:
		return text + " in " + q.namespace
	}
}

// questions are all that can be asked about the resources that the hub's API server has.
func (h *harness) questions(t *testing.T, namespaces, names []string) []question {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(h.cluster.RESTConfig())
	must(t, err)
	_, lists, err := d.ServerGroupsAndResources()
	must(t, err)
	out := []question{}
	for _, resource := range []string{"users", "groups", "uids"} {
		out = append(out, question{resource: resource, verb: "impersonate"})
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for _, r := range list.APIResources {
			for _, namespace := range namespaces {
				if r.Namespaced || namespace == "" {
					out = append(out, questionsAbout(version.Group, r.Name, namespace, names)...)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b question) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return slices.Compact(out) // a resource may be served in several versions
}

// byName are the resources of which a Role may grant single objects.
var byName = []string{"/serviceaccounts/token", "/serviceaccounts", "/configmaps", "/secrets", "/resourcequotas",
	"bellwether.dev/operatorscans", "bellwether.dev/operatorscans/status", "coordination.k8s.io/leases",
	"rbac.authorization.k8s.io/roles", "rbac.authorization.k8s.io/rolebindings"}

func questionsAbout(group, resource, namespace string, names []string) []question {
	asked, verbs := []string{""}, verbs
	if slices.Contains(byName, group+"/"+resource) {
		asked = append(asked, names...)
	}
	if strings.Contains(resource, "/") {
		verbs = verbs[:usual]
	}
	var out []question
	for _, verb := range verbs {
		for _, name := range asked {
			out = append(out, question{group, resource, namespace, name, verb})
		}
	}
	return out
}

// TestAnAgentGetsNoOtherToken requests tokens with the credentials of an agent.
func TestAnAgentGetsNoOtherToken(t *testing.T) {
	h := start(t)
	mine, other := fleetCluster("renewer"), fleetCluster("renewed-by-another")
	a := h.join(t, mine)
	h.join(t, other)
	must(t, h.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: mine.Status.Namespace, Name: "another"}}))
	request := func(namespace, name string) error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		return a.SubResource("token").Create(t.Context(), account, &authenticationv1.TokenRequest{})
	}
	must(t, request(mine.Status.Namespace, v1alpha1.AgentServiceAccount))
	for _, key := range []client.ObjectKey{
		{Namespace: mine.Status.Namespace, Name: "another"}, {Namespace: mine.Status.Namespace, Name: "default"},
		{Namespace: other.Status.Namespace, Name: v1alpha1.AgentServiceAccount},
		{Namespace: hubNamespace, Name: "bellwether-hub"}, {Namespace: metav1.NamespaceSystem, Name: "default"},
	} {
		if err := request(key.Namespace, key.Name); !apierrors.IsForbidden(err) {
			t.Errorf("a token of %s: %v", key, err)
		}
	}
}

// TestAnAgentCannotFillTheHub creates objects without end and makes them large, while the hub works.
func TestAnAgentCannotFillTheHub(t *testing.T) {
	h := start(t)
	cluster := fleetCluster("flood")
	a := h.join(t, cluster)
	own := cluster.Status.Namespace
	install := h.install(t, cluster.Name, v1alpha1.OperatorReference{Namespace: "team", Name: "echo"})
	must(t, a.renew(t.Context()))
	a.isCounted(t) // before it is, a quota refuses everything
	huge := strings.Repeat("x", 100<<10)
	changeLease := func(edit func(*coordinationv1.Lease)) error {
		lease := &coordinationv1.Lease{}
		if err := a.Get(t.Context(), client.ObjectKey{Namespace: own, Name: v1alpha1.LeaseName}, lease); err != nil {
			return err
		}
		edit(lease)
		return a.Update(t.Context(), lease)
	}
	event := func(name string, edit func(*eventsv1.Event)) error {
		e := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: name}, EventTime: metav1.NowMicro(),
			ReportingController: "bellwether.dev/agent", ReportingInstance: "test", Action: "Test", Reason: "Test",
			Type: "Normal", Note: "fine", Regarding: corev1.ObjectReference{Namespace: own, Name: install.Name}}
		if edit != nil {
			edit(e)
		}
		return a.Create(t.Context(), e)
	}
	must(t, event("agent-03f", nil))
	backup := func(edit func(*v1alpha1.OperatorBackup)) error {
		b := &v1alpha1.OperatorBackup{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "attack"},
			Spec: v1alpha1.OperatorBackupSpec{Operator: v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}}}
		edit(b)
		return a.Create(t.Context(), b)
	}
	for name, do := range map[string]func() error{
		"a large annotation on its Lease": func() error {
			return changeLease(func(l *coordinationv1.Lease) { l.Annotations[v1alpha1.AnnotationVeto] = huge })
		},
		"an annotation of another name on its Lease": func() error {
			return changeLease(func(l *coordinationv1.Lease) { l.Annotations["example.com/a"] = "b" })
		},
		"a finalizer on its Lease": func() error {
			return changeLease(func(l *coordinationv1.Lease) { l.Finalizers = []string{"example.com/a"} })
		},
		"a large holder of its Lease": func() error {
			return changeLease(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = &huge })
		},
		"an annotation on an install": func() error {
			o := install.DeepCopy()
			o.Annotations = map[string]string{"example.com/a": huge}
			return a.Patch(t.Context(), o, client.MergeFrom(install))
		},
		"an Event of any name": func() error { return event("echo.17f", nil) },
		"a large Event": func() error {
			return event("agent-001", func(e *eventsv1.Event) { e.Regarding.FieldPath = huge })
		},
		"an Event about a large name": func() error {
			return event("agent-001", func(e *eventsv1.Event) { e.Regarding.Name = huge })
		},
		"an Event with a large label": func() error {
			return event("agent-001", func(e *eventsv1.Event) { e.Annotations = map[string]string{"a": huge} })
		},
		"a backup that nothing can delete": func() error {
			return backup(func(b *v1alpha1.OperatorBackup) { b.Finalizers = []string{"example.com/a"} })
		},
		"a backup of Secrets by a large selector": func() error {
			return backup(func(b *v1alpha1.OperatorBackup) {
				b.Spec.Recipients = []string{"age1a"}
				b.Spec.Secrets = &metav1.LabelSelector{MatchLabels: map[string]string{"a": huge}}
			})
		},
		"a backup of Secrets by many empty values": func() error {
			return backup(func(b *v1alpha1.OperatorBackup) {
				b.Spec.Recipients = []string{"age1a"}
				b.Spec.Secrets = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: make([]string, 10_000)}}}
			})
		},
	} {
		if err := do(); !apierrors.IsForbidden(err) {
			t.Errorf("an agent can make %s: %v", name, err)
		}
	}
	for name, owned := range largeFields() {
		for what, do := range map[string]func() error{
			"an Event": func() error {
				return event("agent-001", func(e *eventsv1.Event) { e.ManagedFields = owned("events.k8s.io/v1") })
			},
			"its Lease": func() error {
				return changeLease(func(l *coordinationv1.Lease) { l.ManagedFields = owned("coordination.k8s.io/v1") })
			},
			"a backup": func() error {
				return backup(func(b *v1alpha1.OperatorBackup) {
					b.ManagedFields = owned(v1alpha1.SchemeGroupVersion.String())
				})
			},
			"an install": func() error {
				o := install.DeepCopy()
				o.ManagedFields = append(o.ManagedFields, owned(v1alpha1.SchemeGroupVersion.String())...)
				return a.Update(t.Context(), o)
			},
		} {
			if err := do(); !apierrors.IsForbidden(err) {
				t.Errorf("an agent can write %s with %s: %v", what, name, err)
			}
		}
	}
	a.reportsNoFields(t, install)
	for name, status := range largeStatuses() {
		o := install.DeepCopy()
		o.Status = status
		if err := a.Status().Patch(t.Context(), o, client.MergeFrom(install)); !apierrors.IsInvalid(err) {
			t.Errorf("an agent can report %s: %v", name, err)
		}
	}
	a.hasFewManagers(t, install)
	h.works(t, "beside-a-flood", func(ctx context.Context, i int) error {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: fmt.Sprintf("flood-%d", i)}}
		if err := a.Create(ctx, lease); !apierrors.IsForbidden(err) {
			return fmt.Errorf("Lease %d is created: %w", i, err)
		}
		return nil
	})
}

// largeFields are names of fields that a writer says it owns, of which the API server looks at none.
func largeFields() map[string]func(apiVersion string) []metav1.ManagedFieldsEntry {
	huge := strings.Repeat("x", 100<<10)
	var many, managers []string
	for i := range 5000 {
		many = append(many, fmt.Sprintf(`"f:field-%d":{}`, i))
	}
	for i := range 30 { // the API server puts the fields of all but ten together
		managers = append(managers, fmt.Sprintf(`{"f:spec":{"f:%s-%d":{}}}`, huge[:4<<10], i))
	}
	out := map[string]func(string) []metav1.ManagedFieldsEntry{}
	for name, texts := range map[string][]string{
		"a large name":              {`{"f:` + huge + `":{}}`},
		"a large finalizer":         {`{"f:metadata":{"f:finalizers":{"v:\"` + huge + `\"":{}}}}`},
		"a large name further down": {`{"f:metadata":{"f:finalizers":{"v:\"bellwether.dev/agent\"":{"f:` + huge + `":{}}}}}`},
		"many names":                {"{" + strings.Join(many, ",") + "}"},
		"much in all":               managers,
	} {
		out[name] = func(apiVersion string) []metav1.ManagedFieldsEntry {
			var entries []metav1.ManagedFieldsEntry
			for i, text := range texts {
				entries = append(entries, metav1.ManagedFieldsEntry{Manager: fmt.Sprintf("agent-%d", i),
					Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: apiVersion, FieldsType: "FieldsV1",
					FieldsV1: &metav1.FieldsV1{Raw: []byte(text)}, Time: &metav1.Time{Time: time.Now()}})
			}
			return entries
		}
	}
	return out
}

// largeStatuses are reports that would fill the hub.
func largeStatuses() map[string]v1alpha1.OperatorInstallStatus {
	huge := strings.Repeat("x", 100<<10)
	quantities := corev1.ResourceList{}
	for i := range 1000 {
		quantities[corev1.ResourceName(fmt.Sprintf("example.com/device-%d", i))] = resource.MustParse("1")
	}
	out := map[string]v1alpha1.OperatorInstallStatus{
		"a large bundle on its path": {Path: []string{huge}},
		"a large field": {Correction: &v1alpha1.DriftCorrection{Fields: []string{huge}, FirstTime: metav1.Now(),
			LastTime: metav1.Now()}},
		"a large version": {StorageMigrations: []v1alpha1.StorageMigrationProgress{{Resource: "a.b",
			From: []string{huge}, To: "v1", StartTime: metav1.Now()}}},
		"a large condition": {Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: "True",
			Reason: v1alpha1.ReasonSucceeded, Message: huge[:32<<10], LastTransitionTime: metav1.Now()}}},
	}
	for name, config := range map[string]v1alpha1.OperatorConfig{
		"a large variable":   {Env: []corev1.EnvVar{{Name: "A", Value: huge}}},
		"a large name":       {Env: []corev1.EnvVar{{Name: huge}}},
		"a large node label": {NodeSelector: map[string]string{"a": huge}},
		"a large toleration": {Tolerations: []corev1.Toleration{{Key: "a", Value: huge}}},
		"many limits":        {Resources: &corev1.ResourceRequirements{Limits: quantities}},
		"many requests":      {Resources: &corev1.ResourceRequirements{Requests: quantities}},
		"a large reference": {Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: huge}}}}},
	} {
		settings := v1alpha1.InstallSettings{Mode: v1alpha1.InstallAllNamespaces, Config: &config}
		release := v1alpha1.Release{Version: "1.0.0", Catalog: v1alpha1.CatalogPin{Digest: "sha256:a",
			Source: v1alpha1.CatalogSource{Directory: "/catalog"}}}
		release.Install.Mode = v1alpha1.InstallAllNamespaces
		before := v1alpha1.Admission{Rollout: "echo-1", Revision: 1, AdmittedAt: metav1.Now(), Release: release,
			Previous: &v1alpha1.PreviousRelease{Install: &settings}}
		out[name+" of the release before"] = v1alpha1.OperatorInstallStatus{
			Kept: &v1alpha1.KeptAdmission{Admission: before}}
		release.Install = settings
		out[name+" of the release"] = v1alpha1.OperatorInstallStatus{Kept: &v1alpha1.KeptAdmission{
			Admission: v1alpha1.Admission{Rollout: "echo-1", Revision: 1, AdmittedAt: metav1.Now(), Release: release}}}
	}
	return out
}

// hasFewManagers applies the same field under ever new names. The API server keeps an entry for each of them.
func (a *agent) hasFewManagers(t *testing.T, install *v1alpha1.OperatorInstall) {
	t.Helper()
	const most = 100
	for name, apply := range map[string]func(manager string) error{
		"an OperatorInstall": func(manager string) error {
			of := &v1alpha1.OperatorInstall{}
			of.Namespace, of.Name = install.Namespace, install.Name
			part := kit.Part{Object: of, Status: map[string]any{"observedRevision": 0}}
			return part.ApplyStatus(t.Context(), a, client.FieldOwner(manager))
		},
		"its Lease": func(manager string) error {
			return a.Apply(t.Context(), applycoordinationv1.Lease(v1alpha1.LeaseName, a.namespace).WithAnnotations(
				map[string]string{v1alpha1.AnnotationAgentVersion: "test"}), client.FieldOwner(manager))
		},
	} {
		var err error
		for i := 0; i < most && err == nil; i++ {
			err = apply(fmt.Sprintf("manager-%d", i))
		}
		if !apierrors.IsForbidden(err) {
			t.Errorf("an agent can add %d field managers to %s: %v", most, name, err)
		}
	}
}

// reportsNoFields writes what large fields the agent owns together with a status. The API server does not store it.
func (a *agent) reportsNoFields(t *testing.T, install *v1alpha1.OperatorInstall) {
	t.Helper()
	const most = 16 << 10
	scan := &v1alpha1.OperatorScan{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: v1alpha1.ScanName}}
	install = install.DeepCopy()
	for name, owned := range largeFields() {
		for o, report := range map[client.Object]func(){
			scan:    func() { scan.Status.NotRead = name },
			install: func() { install.Status.SucceededHash = name },
		} {
			must(t, a.Get(t.Context(), client.ObjectKeyFromObject(o), o))
			o.SetManagedFields(append(o.GetManagedFields(), owned(v1alpha1.SchemeGroupVersion.String())...))
			report()
			must(t, a.Status().Update(t.Context(), o))
			stored, err := json.Marshal(o.GetManagedFields())
			must(t, err)
			if len(stored) > most {
				t.Errorf("an agent can write %T with %s: %d bytes of managedFields", o, name, len(stored))
			}
		}
	}
}

// isCounted makes a backup and waits until the quota of the agent's namespace counts it.
func (a *agent) isCounted(t *testing.T) {
	t.Helper()
	quota := &corev1.ResourceQuota{}
	key := client.ObjectKey{Namespace: a.namespace, Name: v1alpha1.AgentServiceAccount}
	eventually(t, func() error {
		err := a.Create(t.Context(), &v1alpha1.OperatorBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "one"},
			Spec: v1alpha1.OperatorBackupSpec{
				Operator: v1alpha1.OperatorReference{Namespace: "team", Name: "echo"}}})
		if client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		if err := a.h.Get(t.Context(), key, quota); err != nil {
			return err
		}
		used := quota.Status.Used["count/operatorbackups.bellwether.dev"]
		if used.Value() != 1 {
			return fmt.Errorf("%w: %s backups are counted", errNotYet, used.String())
		}
		return nil
	})
}

// works has a flood run until the hub has taken in a new cluster.
func (h *harness) works(t *testing.T, name string, flood func(ctx context.Context, i int) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	for worker := range 4 {
		group.Go(func() error {
			for i := worker; ctx.Err() == nil; i += 4 {
				if err := flood(ctx, i); err != nil && ctx.Err() == nil {
					return err
				}
			}
			return nil
		})
	}
	h.join(t, fleetCluster(name))
	cancel()
	must(t, group.Wait())
}

// floodOfAcceptedWrites has one agent change its Lease and its report without end, which it may. A rollout reaches
// another cluster meanwhile, and what the hub has to do does not pile up.
func floodOfAcceptedWrites(t *testing.T, h *harness) {
	f := newFixtureOn(t, h, first, "a", "noisy")
	f.agents["a"].work(t)
	f.agents["noisy"].work(t)
	f.create()
	f.reaches(t, f.operator, "True Succeeded", "2 of 2 clusters run 1.0.0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	var writes atomic.Int64
	for worker := range 4 {
		group.Go(func() error {
			for i := worker; ctx.Err() == nil; i += 4 {
				if err := f.agents["noisy"].reportAnything(ctx, f.namespace, i); err != nil && ctx.Err() == nil {
					return err
				}
				writes.Add(1)
			}
			return nil
		})
	}
	f.republish(second)
	deepest := 0.0
	eventually(t, func() error {
		deepest = max(deepest, queued(t))
		a, err := f.installOn("a")
		if err != nil {
			return err
		}
		if a.Status.Installed == nil || a.Status.Installed.Version != "1.1.0" || writes.Load() < 500 {
			return fmt.Errorf("%w: cluster a has %+v after %d writes", errNotYet, a.Status.Installed, writes.Load())
		}
		return nil
	})
	f.addCluster("late").work(t)
	cancel()
	must(t, group.Wait())
	t.Logf("%d writes were accepted, %.0f objects were queued at most", writes.Load(), deepest)
	// A queue has an object once, so it is as long as there are objects, however often one changes.
	if deepest > 100 {
		t.Errorf("%.0f objects were queued, of a fleet that has far fewer", deepest)
	}
	f.reaches(t, f.operator, "True Succeeded", "3 of 3 clusters run 1.1.0")
}

// reportAnything changes the annotations of the agent's Lease or the status of its install.
func (a *agent) reportAnything(ctx context.Context, namespace string, i int) error {
	if i%2 == 0 {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: v1alpha1.LeaseName}}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"test-%d"}}}`, v1alpha1.AnnotationAgentVersion, i)
		return a.Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	name := v1alpha1.OperatorReference{Namespace: namespace, Name: "echo"}.InstallName()
	install := &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name}}
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"status":{"correction":{"fields":["a"],"count":%d,"firstTime":%q,"lastTime":%q}}}`, i, now,
		now)
	return a.Status().Patch(ctx, install, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// queued counts the objects that controllers of this process have still to reconcile.
func queued(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	must(t, err)
	n := 0.0
	for _, f := range families {
		if f.GetName() == "workqueue_depth" {
			for _, m := range f.GetMetric() {
				n += m.GetGauge().GetValue()
			}
		}
	}
	return n
}
