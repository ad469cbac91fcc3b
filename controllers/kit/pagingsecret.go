// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// PagingSecrets reads the Secrets of PagingPolicies. The owner of a Secret allows that
// with a label on the Secret, and with a right to that one Secret.
type PagingSecrets struct {
	// Live reads past the cache: a watch would need the permission to list all Secrets.
	Live client.Reader
	// ServiceAccount of the hub, as namespace:name, for the message that says what is missing.
	ServiceAccount string
}

// AllowSecret is what somebody does who lets the hub read one Secret: he adds it to a value of the chart, or makes a
// Role, whose name starts with prefix, for serviceAccount, as namespace:name. It ends a sentence.
//
// Whoever writes the policy or the catalog chooses the name, so a command is told only with one that a Secret can have.
func AllowSecret(value, prefix, serviceAccount, namespace, name string) string {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "no Secret can have such a name: correct it"
	}
	role := prefix + "-" + name
	return fmt.Sprintf("add {namespace: %[1]s, name: %[2]s} to %[3]s of the chart, or run `kubectl create role %[4]s "+
		"-n %[1]s --verb=get --resource=secrets --resource-name=%[2]s` and `kubectl create rolebinding "+
		"%[4]s -n %[1]s --role=%[4]s --serviceaccount=%[5]s`", namespace, name, value, role, serviceAccount)
}

// Read returns the value of a key, or else why there is none, for a person. A Secret that
// cannot be read is an observation, not an error.
func (r PagingSecrets) Read(ctx context.Context, namespace string, ref v1alpha1.SecretKey) (value []byte,
	problem string) {
	var s corev1.Secret
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, &s)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "there is no such Secret"
	case apierrors.IsForbidden(err):
		return nil, "the hub may not read it: " +
			AllowSecret("hub.paging.secrets", "bellwether-paging", r.ServiceAccount, namespace, ref.Name)
	case err != nil:
		return nil, "it cannot be read: " + err.Error()
	case s.Labels[v1alpha1.LabelPagingSecret] != "true":
		return nil, fmt.Sprintf("the Secret lacks the label %s=true, which its owner sets to allow this",
			v1alpha1.LabelPagingSecret)
	}
	value, has := s.Data[ref.Key]
	if !has {
		return nil, "the Secret has no such key"
	}
	return value, ""
}
