// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package startup has the common startup code of hub and agent: logging, types,
// kubeconfigs and health checks.
package startup

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// NewScheme returns a scheme with the types of Kubernetes, of Bellwether,
// and of the given functions.
func NewScheme(additional ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range append(additional, clientgoscheme.AddToScheme, v1alpha1.AddToScheme) {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build scheme: %w", err)
		}
	}
	return scheme, nil
}

// LoadConfig reads a kubeconfig file. An empty path means the file in $KUBECONFIG, or else
// the pod's service account.
func LoadConfig(path, userAgent string) (*rest.Config, error) {
	if path == "" {
		path = os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	return rest.AddUserAgent(config, userAgent), nil
}

// AddPing adds health checks that succeed as soon as the manager runs.
func AddPing(mgr ctrl.Manager) error {
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return fmt.Errorf("add health check: %w", err)
		}
	}
	return nil
}
