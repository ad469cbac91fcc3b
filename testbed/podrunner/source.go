// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bellwether-dev/bellwether/testbed/podrunner/plan"
)

// fromCache lets the API server answer from memory: a pod's volumes are looked
// at often, and a moment's delay does not matter.
var fromCache = metav1.GetOptions{ResourceVersion: "0"}

// source reads the objects that pods refer to.
type source struct{ client kubernetes.Interface }

// Secret returns the data of a Secret.
func (s source) Secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	secret, err := s.client.CoreV1().Secrets(namespace).Get(ctx, name, fromCache)
	if err != nil {
		return nil, err
	}
	return secret.Data, nil
}

// ConfigMap returns the data of a ConfigMap, text and binary.
func (s source) ConfigMap(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	cm, err := s.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, fromCache)
	if err != nil {
		return nil, err
	}
	data := make(map[string][]byte, len(cm.Data)+len(cm.BinaryData))
	for key, value := range cm.Data {
		data[key] = []byte(value)
	}
	for key, value := range cm.BinaryData {
		data[key] = value
	}
	return data, nil
}

// Token requests a token for the pod's service account that ends with the pod.
func (s source) Token(ctx context.Context, pod *corev1.Pod, p *corev1.ServiceAccountTokenProjection) ([]byte, time.Time,
	error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: p.ExpirationSeconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		},
	}}
	if p.Audience != "" {
		request.Spec.Audiences = []string{p.Audience}
	}
	answer, err := s.client.CoreV1().ServiceAccounts(pod.Namespace).
		CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("create token of service account %s: %w", pod.Spec.ServiceAccountName, err)
	}
	return []byte(answer.Status.Token), answer.Status.ExpirationTimestamp.Time, nil
}

// environmentSources reads what the environment of c refers to. Missing
// objects are left out: whether they may be missing is the plan's to say.
func (s source) environmentSources(ctx context.Context, namespace string, c *corev1.Container) (plan.Sources, error) {
	src := plan.Sources{Secrets: map[string]map[string][]byte{}, ConfigMaps: map[string]map[string]string{}}
	secrets, configMaps := plan.References(c)
	for _, name := range secrets {
		data, err := s.Secret(ctx, namespace, name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return src, fmt.Errorf("read secret %q: %w", name, err)
		}
		src.Secrets[name] = data
	}
	for _, name := range configMaps {
		cm, err := s.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, fromCache)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return src, fmt.Errorf("read configmap %q: %w", name, err)
		}
		src.ConfigMaps[name] = cm.Data
	}
	return src, nil
}
