// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// isConfigured reports whether a pod template has the configuration of the install settings. OLM sets env and
// resources on every container, and adds node selectors and tolerations to the pod.
func isConfigured(pod corev1.PodSpec, config *v1alpha1.OperatorConfig) bool {
	if config == nil {
		return true
	}
	for _, container := range pod.Containers {
		if !hasEnv(container.Env, config.Env) {
			return false
		}
		if config.Resources != nil && !equality.Semantic.DeepEqual(container.Resources, *config.Resources) {
			return false
		}
	}
	for key, value := range config.NodeSelector {
		if pod.NodeSelector[key] != value {
			return false
		}
	}
	for _, toleration := range config.Tolerations {
		if !slices.ContainsFunc(pod.Tolerations, func(have corev1.Toleration) bool {
			return equality.Semantic.DeepEqual(have, toleration)
		}) {
			return false
		}
	}
	return true
}

// hasEnv reports whether the environment variables include all wanted variables.
func hasEnv(have, want []corev1.EnvVar) bool {
	for _, variable := range want {
		if !slices.ContainsFunc(have, func(v corev1.EnvVar) bool { return equality.Semantic.DeepEqual(v, variable) }) {
			return false
		}
	}
	return true
}
