// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/redact"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Bounds of what one bundle takes, of memory here and of time from an API server that is in trouble already.
const (
	readTimeout = 30 * time.Second
	pageSize    = 500
	maxObjects  = 20000
	maxLog      = 16 << 20
	maxMetrics  = 16 << 20
)

// site is one API server that is read.
type site struct {
	// folder of the bundle that its files are in, and name for people.
	folder, name string
	objects      client.Reader
	// kube reads logs, metrics and versions; nil where kubeErr says why there is none.
	kube    kubernetes.Interface
	kubeErr error
	// namespaces whose pods, with logs, and other objects are read: those of Bellwether and of OLM.
	namespaces []string
	// since is how old log lines may be.
	since time.Duration
}

// list is a kind of objects to be read.
type list struct {
	kind schema.GroupVersionKind
	// file that they are written to, below objects; the kind in small letters where empty.
	file string
	// namespaced lists are read in each namespace of the site, others once.
	namespaced bool
	opts       []client.ListOption
	// skip leaves an object out.
	skip func(*unstructured.Unstructured) bool
}

// kind is one of Kubernetes' own, all of which have this version.
func kind(group, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

const (
	rbac      = "rbac.authorization.k8s.io"
	admission = "admissionregistration.k8s.io"
)

var partOfBellwether = []client.ListOption{client.MatchingLabels{"app.kubernetes.io/part-of": "bellwether"}}

// ofHub are the kinds that are read on the hub, and ofFleet those on a cluster of the fleet. Secrets and ConfigMaps are
// not among them.
func ofHub() []list {
	out := ofBoth()
	for name := range hub.Scheme.KnownTypes(v1alpha1.SchemeGroupVersion) {
		if own, isList := strings.CutSuffix(name, "List"); isList && own != "" {
			out = append(out, list{kind: v1alpha1.SchemeGroupVersion.WithKind(own)})
		}
	}
	out = append(out, list{kind: kind("coordination.k8s.io", "Lease"), file: "leases-of-agents",
		opts: []client.ListOption{client.MatchingFields{"metadata.name": v1alpha1.LeaseName}}},
		eventsAbout(v1alpha1.SchemeGroupVersion))
	slices.SortFunc(out, func(a, b list) int { return strings.Compare(a.name(), b.name()) })
	return out
}

func ofFleet() []list {
	copied := func(o *unstructured.Unstructured) bool { return o.GetLabels()["olm.copiedFrom"] != "" }
	v1, v1alpha := operatorsv1.GroupVersion, operatorsv1alpha1.SchemeGroupVersion
	return append(ofBoth(),
		list{kind: v1alpha1.SchemeGroupVersion.WithKind("EndpointProbe")},
		list{kind: v1alpha.WithKind("CatalogSource")},
		list{kind: v1alpha.WithKind("ClusterServiceVersion"), skip: copied},
		list{kind: v1alpha.WithKind("InstallPlan")},
		list{kind: v1alpha.WithKind("Subscription")},
		list{kind: v1.WithKind("OperatorGroup")},
		list{kind: v1.WithKind("Operator")},
		eventsAbout(v1alpha))
}

// eventsAbout are the Events about the objects of one version of an API, in all namespaces.
func eventsAbout(version schema.GroupVersion) list {
	return list{kind: kind("", "Event"), file: "events-of-" + version.Group,
		opts: []client.ListOption{client.MatchingFields{"involvedObject.apiVersion": version.String()}}}
}

func ofBoth() []list {
	var out []list
	for _, k := range []schema.GroupVersionKind{kind("", "Pod"), kind("", "Service"),
		kind("", "ServiceAccount"), kind("", "ResourceQuota"), kind("apps", "Deployment"),
		kind("apps", "ReplicaSet"), kind("discovery.k8s.io", "EndpointSlice"),
		kind("coordination.k8s.io", "Lease"), kind("networking.k8s.io", "NetworkPolicy"),
		kind("policy", "PodDisruptionBudget"), kind(rbac, "Role"), kind(rbac, "RoleBinding")} {
		out = append(out, list{kind: k, namespaced: true})
	}
	for _, k := range []schema.GroupVersionKind{kind(rbac, "ClusterRole"), kind(rbac, "ClusterRoleBinding"),
		kind(admission, "ValidatingAdmissionPolicy"), kind(admission, "ValidatingAdmissionPolicyBinding")} {
		out = append(out, list{kind: k, opts: partOfBellwether})
	}
	for _, k := range []schema.GroupVersionKind{kind(admission, "ValidatingWebhookConfiguration"),
		kind(admission, "MutatingWebhookConfiguration"), kind("", "Node")} {
		out = append(out, list{kind: k})
	}
	return append(out, list{kind: kind("", "Event"), namespaced: true})
}

func (l list) name() string {
	if l.file != "" {
		return l.file
	}
	return strings.ToLower(l.kind.Kind) + "s"
}

func (s *site) collect(ctx context.Context, b *bundle, lists []list) {
	s.collectVersion(ctx, b)
	for _, l := range lists {
		if !l.namespaced {
			s.collectList(ctx, b, l, "")
			continue
		}
		for _, namespace := range s.namespaces {
			s.collectList(ctx, b, l, namespace)
		}
	}
	for _, namespace := range s.namespaces {
		s.collectPods(ctx, b, namespace)
	}
}

func (s *site) collectVersion(ctx context.Context, b *bundle) {
	what := "the version of Kubernetes of " + s.name
	if s.kubeErr != nil {
		b.missing(what, s.kubeErr)
		return
	}
	bounded, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	data, err := s.kube.Discovery().RESTClient().Get().AbsPath("/version").Do(bounded).Raw()
	if err != nil {
		b.missing(what, err)
		return
	}
	b.text(s.folder+"/version.json", what, "", string(data))
}

// collectList reads the objects of one kind.
func (s *site) collectList(ctx context.Context, b *bundle, l list, namespace string) {
	what, file := fmt.Sprintf("%s of %s", l.kind.Kind, s.name), s.folder+"/objects/"+l.name()+".json"
	if namespace != "" {
		what = fmt.Sprintf("%s in namespace %s of %s", l.kind.Kind, namespace, s.name)
		file = s.folder + "/objects/" + namespace + "/" + l.name() + ".json"
	}
	if l.file != "" {
		what = l.file + ": " + what
	}
	items, note, err := s.pages(ctx, l, namespace)
	if err != nil && len(items) == 0 {
		b.missing(what, err)
		return
	}
	if err != nil {
		note = "not complete: " + err.Error()
		b.missing("a part of "+what, err)
	}
	if len(items) > 0 {
		b.object(file, phrase.Count(len(items), "object")+": "+what, redact.Text(note), map[string]any{"items": items})
	}
}

// pages reads the objects of one kind, page by page. Those before an error are returned with it. The note says whether
// there are more.
func (s *site) pages(ctx context.Context, l list, namespace string) (items []map[string]any, note string, err error) {
	for token := ""; ; {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(l.kind.GroupVersion().WithKind(l.kind.Kind + "List"))
		if err := s.list(ctx, page, append(slices.Clone(l.opts), client.InNamespace(namespace), client.Limit(pageSize),
			client.Continue(token))); err != nil {
			return items, "", err
		}
		for i := range page.Items {
			if l.skip == nil || !l.skip(&page.Items[i]) {
				items = append(items, page.Items[i].Object)
			}
		}
		if token = page.GetContinue(); token == "" {
			return items, "", nil
		}
		if len(items) >= maxObjects {
			return items, fmt.Sprintf("cut after %d objects", len(items)), nil
		}
	}
}

func (s *site) list(ctx context.Context, page *unstructured.UnstructuredList, opts []client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return s.objects.List(ctx, page, opts...)
}

// collectPods reads logs and metrics of the pods in a namespace.
func (s *site) collectPods(ctx context.Context, b *bundle, namespace string) {
	pods := &corev1.PodList{}
	bounded, cancel := context.WithTimeout(ctx, readTimeout)
	err := s.objects.List(bounded, pods, client.InNamespace(namespace))
	cancel()
	what := fmt.Sprintf("logs and metrics in namespace %s of %s", namespace, s.name)
	if err == nil && len(pods.Items) > 0 {
		err = s.kubeErr
	}
	if err != nil {
		b.missing(what, err)
		return
	}
	for i := range pods.Items {
		s.collectPod(ctx, b, &pods.Items[i])
	}
}

func (s *site) collectPod(ctx context.Context, b *bundle, pod *corev1.Pod) {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		s.collectLog(ctx, b, pod, c.Name, false)
		if restarted(pod, c.Name) {
			s.collectLog(ctx, b, pod, c.Name, true)
		}
		for _, p := range c.Ports {
			if p.Name == "metrics" && pod.Labels["app.kubernetes.io/name"] == "bellwether" {
				s.collectMetrics(ctx, b, pod, p.ContainerPort)
			}
		}
	}
}

func restarted(pod *corev1.Pod, container string) bool {
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses),
		func(c corev1.ContainerStatus) bool { return c.Name == container && c.RestartCount > 0 })
}

func (s *site) collectLog(ctx context.Context, b *bundle, pod *corev1.Pod, container string, previous bool) {
	what := fmt.Sprintf("log of container %s of pod %s/%s of %s", container, pod.Namespace, pod.Name, s.name)
	file := fmt.Sprintf("%s/logs/%s/%s/%s.log", s.folder, pod.Namespace, pod.Name, container)
	options := &corev1.PodLogOptions{Container: container, Previous: previous, Timestamps: true,
		SinceSeconds: ptr.To(int64(s.since / time.Second)), LimitBytes: ptr.To[int64](maxLog)}
	if previous {
		what = "previous " + what
		file = strings.TrimSuffix(file, ".log") + ".previous.log"
		options.SinceSeconds = nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stream, err := s.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		b.missing(what, err)
		return
	}
	defer func() { _ = stream.Close() }()
	s.copyText(b, file, what, stream, maxLog)
}

func (s *site) collectMetrics(ctx context.Context, b *bundle, pod *corev1.Pod, port int32) {
	what := fmt.Sprintf("metrics of pod %s/%s of %s", pod.Namespace, pod.Name, s.name)
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stream, err := s.kube.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, fmt.Sprint(port), "/metrics", nil).
		Stream(ctx)
	if err != nil {
		b.missing(what, err)
		return
	}
	defer func() { _ = stream.Close() }()
	s.copyText(b, fmt.Sprintf("%s/metrics/%s/%s.txt", s.folder, pod.Namespace, pod.Name), what, stream, maxMetrics)
}

// copyText adds what a stream says, within a bound. What was read before an error is kept.
func (s *site) copyText(b *bundle, file, what string, from io.Reader, most int) {
	data, err := io.ReadAll(io.LimitReader(from, int64(most)))
	note := ""
	switch {
	case err != nil && len(data) == 0:
		b.missing(what, err)
		return
	case err != nil:
		note = redact.Text("not complete: " + err.Error())
		b.missing("a part of the "+what, err)
	case len(data) == most:
		note = fmt.Sprintf("cut after %d bytes: use a smaller --since", most)
	}
	b.text(file, what, note, string(data))
}
