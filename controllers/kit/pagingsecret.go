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

// PagingSecrets reads the Secrets of PagingPolicies. The owner of a Secret allows this with a
// label on the Secret, and with a permission for that single Secret.
type PagingSecrets struct {
	// Live reads without the cache, because a watch would need the
	// permission to list all Secrets.
	Live client.Reader
	// ServiceAccount is the hub's account as namespace:name. It is used in the message
	// about a missing permission.
	ServiceAccount string
}

// DescribeSecretPermission returns the instructions to let the hub read one Secret, as the end of a sentence:
// add the Secret to a value of the chart, or create a Role, whose name starts with prefix, for
// serviceAccount (namespace:name).
//
// The author of the policy or the catalog chooses the name of the Secret, so the commands are
// returned only if the name is valid for a Secret.
func DescribeSecretPermission(value, prefix, serviceAccount, namespace, name string) string {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "no Secret can have such a name: correct it"
	}
	role := prefix + "-" + name
	return fmt.Sprintf("add {namespace: %[1]s, name: %[2]s} to %[3]s of the chart, or run `kubectl create role %[4]s "+
		"-n %[1]s --verb=get --resource=secrets --resource-name=%[2]s` and `kubectl create rolebinding "+
		"%[4]s -n %[1]s --role=%[4]s --serviceaccount=%[5]s`", namespace, name, value, role, serviceAccount)
}

// Read returns the value of a key. If there is no value, problem has the reason as a message for
// a person.
func (r PagingSecrets) Read(ctx context.Context, namespace string, ref v1alpha1.SecretKey) (value []byte,
	problem string) {
	var s corev1.Secret
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, &s)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "there is no such Secret"
	case apierrors.IsForbidden(err):
		return nil, "the hub may not read it: " +
			DescribeSecretPermission("hub.paging.secrets", "bellwether-paging", r.ServiceAccount, namespace, ref.Name)
	case err != nil:
		return nil, "it cannot be read: " + err.Error()
	case s.Labels[v1alpha1.LabelPagingSecret] != "true":
		return nil, fmt.Sprintf("the Secret lacks the label %s=true, which its owner sets to allow this",
			v1alpha1.LabelPagingSecret)
	}
	value, exists := s.Data[ref.Key]
	if !exists {
		return nil, "the Secret has no such key"
	}
	return value, ""
}
