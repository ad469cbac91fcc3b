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
	"github.com/bellwether-dev/bellwether/internal/phrase"
	"github.com/bellwether-dev/bellwether/internal/redact"
)

// Limits for the memory of this program, and for the requests to an API server that may be overloaded.
const (
	readTimeout = 30 * time.Second
	pageSize    = 500
	maxObjects  = 20000
	maxLog      = 16 << 20
	maxMetrics  = 16 << 20
)

// apiServer is an API server whose data is collected.
type apiServer struct {
	// folder is the folder of its files in the bundle. name is its name in texts.
	folder, name string
	objects      client.Reader
	// kube reads logs, metrics and versions. If it is nil, kubeErr is the reason.
	kube    kubernetes.Interface
	kubeErr error
	// namespaces are the namespaces of Bellwether and OLM. Their pods, logs and other objects are read.
	namespaces []string
	// since is the maximum age of log lines.
	since time.Duration
}

// objectList is a kind of objects to read.
type objectList struct {
	kind schema.GroupVersionKind
	// file is the name of the file below the folder objects. If it is empty, the name is the kind in lower case.
	file string
	// namespaced lists are read in each namespace of the API server. Other lists are read once.
	namespaced bool
	opts       []client.ListOption
	// skip reports whether an object is omitted.
	skip func(*unstructured.Unstructured) bool
}

// newKind returns a kind of Kubernetes with the version v1.
func newKind(group, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

const (
	rbac      = "rbac.authorization.k8s.io"
	admission = "admissionregistration.k8s.io"
)

var bellwetherSelector = []client.ListOption{client.MatchingLabels{"app.kubernetes.io/part-of": "bellwether"}}

// listHubKinds returns the kinds that are read on the hub. They do not include Secrets and ConfigMaps.
func listHubKinds() []objectList {
	out := listCommonKinds()
	for name := range hub.Scheme.KnownTypes(v1alpha1.SchemeGroupVersion) {
		if kindName, isList := strings.CutSuffix(name, "List"); isList && kindName != "" {
			out = append(out, objectList{kind: v1alpha1.SchemeGroupVersion.WithKind(kindName)})
		}
	}
	out = append(out, objectList{kind: newKind("coordination.k8s.io", "Lease"), file: "leases-of-agents",
		opts: []client.ListOption{client.MatchingFields{"metadata.name": v1alpha1.LeaseName}}},
		newEventList(v1alpha1.SchemeGroupVersion))
	slices.SortFunc(out, func(a, b objectList) int { return strings.Compare(a.fileName(), b.fileName()) })
	return out
}

// listFleetKinds returns the kinds that are read on a cluster of the fleet. They do not
// include Secrets and ConfigMaps.
func listFleetKinds() []objectList {
	isCopied := func(o *unstructured.Unstructured) bool { return o.GetLabels()["olm.copiedFrom"] != "" }
	v1, v1alpha := operatorsv1.GroupVersion, operatorsv1alpha1.SchemeGroupVersion
	return append(listCommonKinds(),
		objectList{kind: v1alpha1.SchemeGroupVersion.WithKind("EndpointProbe")},
		objectList{kind: v1alpha.WithKind("CatalogSource")},
		objectList{kind: v1alpha.WithKind("ClusterServiceVersion"), skip: isCopied},
		objectList{kind: v1alpha.WithKind("InstallPlan")},
		objectList{kind: v1alpha.WithKind("Subscription")},
		objectList{kind: v1.WithKind("OperatorGroup")},
		objectList{kind: v1.WithKind("Operator")},
		newEventList(v1alpha))
}

// newEventList returns the list of the Events about objects of one API version, in all namespaces.
func newEventList(version schema.GroupVersion) objectList {
	return objectList{kind: newKind("", "Event"), file: "events-of-" + version.Group,
		opts: []client.ListOption{client.MatchingFields{"involvedObject.apiVersion": version.String()}}}
}

// listCommonKinds returns the kinds that are read on the hub and on clusters of the fleet.
func listCommonKinds() []objectList {
	var out []objectList
	for _, k := range []schema.GroupVersionKind{newKind("", "Pod"), newKind("", "Service"),
		newKind("", "ServiceAccount"), newKind("", "ResourceQuota"), newKind("apps", "Deployment"),
		newKind("apps", "ReplicaSet"), newKind("discovery.k8s.io", "EndpointSlice"),
		newKind("coordination.k8s.io", "Lease"), newKind("networking.k8s.io", "NetworkPolicy"),
		newKind("policy", "PodDisruptionBudget"), newKind(rbac, "Role"), newKind(rbac, "RoleBinding")} {
		out = append(out, objectList{kind: k, namespaced: true})
	}
	for _, k := range []schema.GroupVersionKind{newKind(rbac, "ClusterRole"), newKind(rbac, "ClusterRoleBinding"),
		newKind(admission, "ValidatingAdmissionPolicy"), newKind(admission, "ValidatingAdmissionPolicyBinding")} {
		out = append(out, objectList{kind: k, opts: bellwetherSelector})
	}
	for _, k := range []schema.GroupVersionKind{newKind(admission, "ValidatingWebhookConfiguration"),
		newKind(admission, "MutatingWebhookConfiguration"), newKind("", "Node")} {
		out = append(out, objectList{kind: k})
	}
	return append(out, objectList{kind: newKind("", "Event"), namespaced: true})
}

func (l objectList) fileName() string {
	if l.file != "" {
		return l.file
	}
	return strings.ToLower(l.kind.Kind) + "s"
}

// collect adds the version, the objects of the lists, the logs and the metrics of an API server to the bundle. Data
// that cannot be read is added as missing.
func (s *apiServer) collect(ctx context.Context, b *bundle, lists []objectList) {
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

// collectVersion adds the version of Kubernetes, as the API server reports it in JSON.
func (s *apiServer) collectVersion(ctx context.Context, b *bundle) {
	description := "the version of Kubernetes of " + s.name
	if s.kubeErr != nil {
		b.addMissing(description, s.kubeErr)
		return
	}
	limitedCtx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	data, err := s.kube.Discovery().RESTClient().Get().AbsPath("/version").Do(limitedCtx).Raw()
	if err != nil {
		b.addMissing(description, err)
		return
	}
	b.addText(s.folder+"/version.json", description, "", string(data))
}

// collectList adds the objects of one kind to the bundle. An empty namespace means all namespaces.
func (s *apiServer) collectList(ctx context.Context, b *bundle, l objectList, namespace string) {
	description, file := fmt.Sprintf("%s of %s", l.kind.Kind, s.name), s.folder+"/objects/"+l.fileName()+".json"
	if namespace != "" {
		description = fmt.Sprintf("%s in namespace %s of %s", l.kind.Kind, namespace, s.name)
		file = s.folder + "/objects/" + namespace + "/" + l.fileName() + ".json"
	}
	if l.file != "" {
		description = l.file + ": " + description
	}
	items, note, err := s.readPages(ctx, l, namespace)
	if err != nil && len(items) == 0 {
		b.addMissing(description, err)
		return
	}
	if err != nil {
		note = "not complete: " + err.Error()
		b.addMissing("a part of "+description, err)
	}
	if len(items) > 0 {
		b.addObject(file, phrase.Count(len(items), "object")+": "+description, redact.Text(note),
			map[string]any{"items": items})
	}
}

// readPages reads the objects of one kind page by page. An error is returned with the objects before the error. The
// note is set if there are more objects than maxObjects.
func (s *apiServer) readPages(ctx context.Context, l objectList, namespace string) (items []map[string]any,
	note string, err error) {
	for token := ""; ; {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(l.kind.GroupVersion().WithKind(l.kind.Kind + "List"))
		if err := s.listPage(ctx, page, append(slices.Clone(l.opts), client.InNamespace(namespace),
			client.Limit(pageSize), client.Continue(token))); err != nil {
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

// listPage reads one page of objects, within the timeout.
func (s *apiServer) listPage(ctx context.Context, page *unstructured.UnstructuredList, opts []client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return s.objects.List(ctx, page, opts...)
}

// collectPods adds the logs and metrics of the pods in a namespace to the bundle.
func (s *apiServer) collectPods(ctx context.Context, b *bundle, namespace string) {
	pods := &corev1.PodList{}
	limitedCtx, cancel := context.WithTimeout(ctx, readTimeout)
	err := s.objects.List(limitedCtx, pods, client.InNamespace(namespace))
	cancel()
	description := fmt.Sprintf("logs and metrics in namespace %s of %s", namespace, s.name)
	if err == nil && len(pods.Items) > 0 { // without pods there are no logs to miss
		err = s.kubeErr
	}
	if err != nil {
		b.addMissing(description, err)
		return
	}
	for i := range pods.Items {
		s.collectPod(ctx, b, &pods.Items[i])
	}
}

// collectPod adds the logs of all containers of a pod and, for pods of Bellwether, the metrics.
func (s *apiServer) collectPod(ctx context.Context, b *bundle, pod *corev1.Pod) {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		s.collectLog(ctx, b, pod, c.Name, false)
		if hasRestarted(pod, c.Name) {
			s.collectLog(ctx, b, pod, c.Name, true)
		}
		for _, p := range c.Ports {
			if p.Name == "metrics" && pod.Labels["app.kubernetes.io/name"] == "bellwether" {
				s.collectMetrics(ctx, b, pod, p.ContainerPort)
			}
		}
	}
}

// hasRestarted reports whether a container of a pod was restarted.
func hasRestarted(pod *corev1.Pod, container string) bool {
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses),
		func(c corev1.ContainerStatus) bool { return c.Name == container && c.RestartCount > 0 })
}

// collectLog adds the log of a container. previous selects the log before the last restart,
// which is not limited by since.
func (s *apiServer) collectLog(ctx context.Context, b *bundle, pod *corev1.Pod, container string, previous bool) {
	description := fmt.Sprintf("log of container %s of pod %s/%s of %s", container, pod.Namespace, pod.Name, s.name)
	file := fmt.Sprintf("%s/logs/%s/%s/%s.log", s.folder, pod.Namespace, pod.Name, container)
	options := &corev1.PodLogOptions{Container: container, Previous: previous, Timestamps: true,
		SinceSeconds: ptr.To(int64(s.since / time.Second)), LimitBytes: ptr.To[int64](maxLog)}
	if previous {
		description = "previous " + description
		file = strings.TrimSuffix(file, ".log") + ".previous.log"
		options.SinceSeconds = nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stream, err := s.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		b.addMissing(description, err)
		return
	}
	defer func() { _ = stream.Close() }()
	s.copyText(b, file, description, stream, maxLog)
}

// collectMetrics adds the metrics of a pod, which it reads through the API server's proxy.
func (s *apiServer) collectMetrics(ctx context.Context, b *bundle, pod *corev1.Pod, port int32) {
	description := fmt.Sprintf("metrics of pod %s/%s of %s", pod.Namespace, pod.Name, s.name)
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stream, err := s.kube.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, fmt.Sprint(port), "/metrics", nil).
		Stream(ctx)
	if err != nil {
		b.addMissing(description, err)
		return
	}
	defer func() { _ = stream.Close() }()
	s.copyText(b, fmt.Sprintf("%s/metrics/%s/%s.txt", s.folder, pod.Namespace, pod.Name), description, stream,
		maxMetrics)
}

// copyText adds the text of a stream to the bundle, up to maxBytes. If reading fails, the
// text before the error is added.
func (s *apiServer) copyText(b *bundle, file, description string, stream io.Reader, maxBytes int) {
	data, err := io.ReadAll(io.LimitReader(stream, int64(maxBytes)))
	note := ""
	switch {
	case err != nil && len(data) == 0:
		b.addMissing(description, err)
		return
	case err != nil:
		note = redact.Text("not complete: " + err.Error())
		b.addMissing("a part of the "+description, err)
	case len(data) == maxBytes:
		note = fmt.Sprintf("cut after %d bytes: use a smaller --since", maxBytes)
	}
	b.addText(file, description, note, string(data))
}
